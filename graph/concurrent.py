"""The same graph for one event loop with many episodes in flight.

LangGraph hands a synchronous stage to a thread; with many episodes that is eight hand-overs per
step, more than the stages themselves take. Here every stage is a coroutine: those that only
compute run in place, those that wait (the simulator, the model) let the other episodes go on.
What the stages do is exactly what ``build_graph`` makes of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import signature
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.runtime import Runtime

import rpms.nodes as stages
from rpms.envs import Task
from rpms.graph.build import RpmsGraph, Stage, build_graph
from rpms.nodes.context import RunContext
from rpms.nodes.env_step import async_env_step
from rpms.nodes.llm_call import make_async_llm_call
from rpms.nodes.prompt_build import make_async_prompt_build
from rpms.nodes.reset_env import make_async_reset_env, resolve
from rpms.nodes.state import EpisodeState

COMPUTING = (
    "belief_update", "rule_assembly", "goal_retrieval", "scf", "arbitration",
    "action_arbitration",
)  # fmt: skip


def build_concurrent_graph(
    model: BaseChatModel | None = None,
    cache: str = "",
    find: Callable[[EpisodeState], Task] = resolve,
    nodes: Mapping[str, Stage] | None = None,
    settled: RunContext | None = None,
) -> RpmsGraph:
    """The compiled graph, to be used with ``ainvoke`` and ``astream`` only.

    Args:
        model: a chat model object; without it the context's ``model`` setting is opened.
        cache: file of replies that need no new model call; empty for none.
        find: which task a state asks for.
        nodes: replacements by stage name, as in ``build_graph``.
        settled: the one context the graph will be run with, as in ``build_graph``.
    """
    own: dict[str, Stage] = {name: _in_place(getattr(stages, name)) for name in COMPUTING}
    own["reset_env"] = make_async_reset_env(find)
    own["prompt_build"] = make_async_prompt_build(model)
    own["llm_call"] = make_async_llm_call(model, cache)
    own["env_step"] = async_env_step
    return build_graph(nodes={**own, **(nodes or {})}, settled=settled)


def _in_place(stage: Stage) -> Callable[..., Awaitable[Any]]:
    """A computing stage as a coroutine function of the same shape."""
    if len(signature(stage).parameters) == 1:

        async def alone(state: EpisodeState) -> Any:
            return stage(state)

        return alone

    async def told(state: EpisodeState, runtime: Runtime[RunContext]) -> Any:
        return stage(state, runtime)

    return told
