"""Memory methods: ours and those of other papers, behind one small interface."""

from rpms.memory_store.methods.method import Ask, Learned, MemoryMethod, Origin, RecallRequest
from rpms.memory_store.methods.registry import (
    METHODS,
    after_trial,
    check_memory,
    check_trials,
    file_of,
    find_method,
)
from rpms.memory_store.methods.writing import Writer, can_write

__all__ = [
    "METHODS",
    "Ask",
    "Learned",
    "MemoryMethod",
    "Origin",
    "RecallRequest",
    "Writer",
    "after_trial",
    "can_write",
    "check_memory",
    "check_trials",
    "file_of",
    "find_method",
]
