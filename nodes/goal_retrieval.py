"""Stage 3: M_cand, the memories whose goal resembles this one (Eq. 4)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from rpms.envs import get_environment
from rpms.memory_store import MemoryIndex, load_from_store, load_index
from rpms.memory_store.stores import store_size
from rpms.nodes.context import RunContext, settings
from rpms.nodes.manual import load_manual
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.recall import Recall


def goal_retrieval(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the goal; return the candidates, best first, with their scores."""
    context = settings(runtime.context)
    index = find_memory(state["env"], context.memory_file, runtime.store)
    return EpisodeState(recalls=recall(index, state["env"], state["goal"], context))


def recall(index: MemoryIndex, env: str, goal: GoalSpec, context: RunContext) -> list[Recall]:
    """Ask an index for a goal, with the schemas of the actions its procedure uses."""
    domain = load_manual(env).domain
    steps = domain.procedures.get(goal["type"], [])
    actions = tuple(domain.advances[step] for step in steps if step in domain.advances)
    gamma = get_environment(env).read_signature(goal["signature"])
    return index.recall(gamma, context.theta, context.k, actions)


def find_memory(env: str, file: str, store: BaseStore | None) -> MemoryIndex:
    """The named snapshot; else the deployment's store; else the snapshot that the world ships."""
    if not file and store is not None and (size := _size(store, env)):
        return _from_store(store, env, size)
    return open_memory(env, file)


@lru_cache(maxsize=4)
def open_memory(env: str, file: str) -> MemoryIndex:
    """A snapshot, loaded once per process; a world without one has an empty memory."""
    world = get_environment(env)
    path = Path(file) if file else world.memory
    if not file and not path.exists():
        return MemoryIndex()
    return load_index(path, env, load_manual(env).domain.categories, world.keys)


# A memory is frozen while it is used, so its size tells whether a new one was saved. Asking the
# store for that at every step would be a query per step; once per process is enough to find it.
@lru_cache(maxsize=4)
def _size(store: BaseStore, env: str) -> int:
    return store_size(store, env)


@lru_cache(maxsize=4)
def _from_store(store: BaseStore, env: str, size: int) -> MemoryIndex:
    categories, keys = load_manual(env).domain.categories, get_environment(env).keys
    return MemoryIndex.of(load_from_store(store, env), categories, keys)
