"""Memory methods by name, or by the import path of a class of one's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rpms.envs import get_environment
from rpms.nodes.context import RunContext
from rpms.nodes.memories.clin import Clin
from rpms.nodes.memories.expel import ExpeL
from rpms.nodes.memories.method import MemoryMethod
from rpms.nodes.memories.own import OwnMemory
from rpms.nodes.memories.reasoning_bank import ReasoningBank
from rpms.nodes.memories.reflexion import Reflexion
from rpms.nodes.memories.shape import made
from rpms.nodes.memories.trajectories import Trajectories
from rpms.nodes.memories.workflows import Workflows
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import is_path, load_object

METHODS: dict[str, type[MemoryMethod]] = {
    one.name: one
    for one in (OwnMemory, Trajectories, Reflexion, ExpeL, Clin, Workflows, ReasoningBank)
}


@cache
def find_method(name: str) -> MemoryMethod:
    """The method of that name; one object per process, which keeps no state of any episode."""
    if name in METHODS:
        return METHODS[name]()
    if not is_path(name):
        raise RpmsError(
            f"unknown memory method '{name}'; choose from {', '.join(METHODS)}, or give the import "
            "path of a class, package.module:Class"
        )
    return made(name, load_object(name, "memory method"))


def check_memory(env: str, context: RunContext) -> None:
    """Refuse at once what the first step would refuse: a wrong name, a missing or foreign file."""
    if context.memory:
        find_method(context.memory_method).check(env, context)


def file_of(env: str, context: RunContext) -> Path | None:
    """The frozen memory a run reads; None if its method does without one."""
    if context.memory_file:
        return Path(context.memory_file)
    own = context.memory_method == OwnMemory.name
    return get_environment(env).memory if own else None
