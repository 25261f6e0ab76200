"""Wiring the stages into a LangGraph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

import rpms.nodes as stages
from rpms.graph import routing
from rpms.nodes.context import RunContext
from rpms.nodes.llm_call import RETRY
from rpms.nodes.prompt_build import make_prompt_build
from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.errors import RpmsError

Stage = Callable[..., Any]
RpmsGraph = CompiledStateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]

STAGES: tuple[str, ...] = (
    "reset_env",
    "belief_update",
    "rule_assembly",
    "goal_retrieval",
    "scf",
    "arbitration",
    "prompt_build",
    "llm_call",
    "action_arbitration",
    "env_step",
)


def build_graph(
    nodes: Mapping[str, Stage] | None = None,
    model: BaseChatModel | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
    settled: RunContext | None = None,
) -> RpmsGraph:
    """The compiled agent graph.

    Args:
        nodes: replacements by stage name, e.g. ``{"scf": my_scf}``. A stage is a function of
            the state (and, if it wants, the runtime) that returns the keys it changes.
        model: a chat model object; without it the context's ``model`` setting is opened.
        checkpointer: keeps episodes resumable; evaluation runs without one.
        store: LangGraph store for deployments that keep memory in a database.
        cache: node cache, if any.
        settled: the one context this graph will be run with. Edges that only the context
            decides are then plain edges: the way through is the same, and each step is spared
            asking for it four times.
    """
    swapped = dict(nodes or {})
    unknown = sorted(set(swapped) - set(STAGES))
    if unknown:
        raise RpmsError(f"no stage called {', '.join(unknown)}; the stages are {', '.join(STAGES)}")
    builder: StateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput] = StateGraph(
        EpisodeState,
        context_schema=RunContext,
        input_schema=EpisodeInput,
        output_schema=EpisodeOutput,
    )
    for name in STAGES:
        if name == "llm_call":
            builder.add_node(
                name,
                swapped.get(name) or stages.make_llm_call(model),
                retry_policy=RETRY,
            )
        elif name == "prompt_build":
            builder.add_node(name, swapped.get(name) or make_prompt_build(model))
        else:
            builder.add_node(name, swapped.get(name) or getattr(stages, name))
    builder.add_edge(START, "reset_env")
    builder.add_conditional_edges("reset_env", routing.after_reset)
    for name, route in routing.BY_CONTEXT.items():
        if settled is None:
            builder.add_conditional_edges(name, route)
        else:
            builder.add_edge(name, route(EpisodeState(), Runtime(context=settled)))
    builder.add_edge("arbitration", "prompt_build")
    builder.add_edge("prompt_build", "llm_call")
    builder.add_conditional_edges("llm_call", routing.after_llm)
    builder.add_conditional_edges("action_arbitration", routing.after_action)
    builder.add_conditional_edges("env_step", routing.after_step)
    return builder.compile(checkpointer=checkpointer, store=store, cache=cache, name="rpms")
