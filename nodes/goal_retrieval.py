"""Stage 3: M_cand, the memories whose goal resembles this one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from langgraph.runtime import Runtime

from memory_store import MemoryIndex, load_snapshot
from nodes.context import RunContext, settings
from nodes.state import EpisodeState
from rules import load_manual
from vocabulary.signature import goal_signature


def goal_retrieval(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the goal; return the candidates, best first, with their scores."""
    context = settings(runtime.context)
    index = open_memory(state["env"], context.memory_file)
    return EpisodeState(
        recalls=index.recall(goal_signature(state["goal"]), context.theta, context.k)
    )


@lru_cache(maxsize=4)
def open_memory(env: str, file: str) -> MemoryIndex:
    """The named snapshot, or an empty memory: the agent then has nothing to recall."""
    entries = load_snapshot(Path(file)) if file else []
    return MemoryIndex(entries, load_manual(env).domain.categories)
