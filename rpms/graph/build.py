"""The agent as a LangGraph: one node for each stage of the paper's Algorithm 1.

A stage that a setting switches off is skipped by a conditional edge, so every condition of the
paper is a path through this graph. The edges read the state alone, where ``reset_env`` writes the
settings of the episode: a person may then take an episode up at any stage, for example in Studio.
The ``Literal`` return types are what LangGraph draws.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

import rpms.nodes as stages
from rpms.graph.custom import Added, Builder, Node, Route, StageGraph, refuse_non_model
from rpms.models.retrying import FIRST_TRIES, RETRY
from rpms.nodes.state import (
    Decisions,
    EpisodeInput,
    EpisodeOutput,
    EpisodeState,
    settings_of,
)
from rpms.vocabulary.context import RunContext

__all__ = ["STAGES", "Node", "RpmsGraph", "build_graph", "make_builder", "next_stage"]

RpmsGraph = CompiledStateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]

STAGES: tuple[str, ...] = (
    "reset_env",
    "belief_update",
    "rule_assembly",
    "goal_retrieval",
    "scf",
    "arbitration",
    "memory_selection",
    "prompt_build",
    "llm_call",
    "action_arbitration",
    "env_step",
)
OUR_CALL: dict[str, Any] = {"retry_policy": RETRY, "error_handler": stages.model_failed}
# Whoever brings a stage of their own wants to see its errors, and soon.
OWN_CALL = {"retry_policy": RETRY._replace(max_attempts=FIRST_TRIES)}


def make_builder(
    nodes: Added | None = None,
    *,
    after: Added | None = None,
    before: Added | None = None,
    state_schema: type[EpisodeState] = EpisodeState,
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    reply_cache: str = "",
) -> Builder:
    """The graph before it is compiled; the arguments are those of ``build_graph``."""
    refuse_non_model(model)
    graph = StageGraph(STAGES, state_schema, nodes, before, after)
    _wire(graph, context, model, reply_cache)
    return graph.builder


def _wire(
    graph: StageGraph, context: RunContext | None, model: BaseChatModel | None, reply_cache: str
) -> None:
    llm_call = stages.make_llm_call(model, reply_cache)

    graph.add_node("reset_env", stages.make_reset_env(context))
    graph.add_node("belief_update", stages.belief_update)
    graph.add_node("rule_assembly", stages.rule_assembly)
    graph.add_node("goal_retrieval", stages.goal_retrieval)
    graph.add_node("scf", stages.scf)
    graph.add_node("arbitration", stages.arbitration)
    graph.add_node("memory_selection", stages.memory_selection)
    graph.add_node("prompt_build", stages.make_prompt_build(model))
    graph.add_node("llm_call", llm_call, **OUR_CALL, swapped=OWN_CALL)
    graph.add_node("action_arbitration", stages.action_arbitration)
    graph.add_node("env_step", stages.env_step)

    graph.add_edge(START, "reset_env")
    graph.add_conditional_edges("reset_env", after_step)
    graph.add_conditional_edges("belief_update", after_belief)
    graph.add_conditional_edges("rule_assembly", after_rules)
    graph.add_conditional_edges("goal_retrieval", after_retrieval)
    graph.add_conditional_edges("scf", after_scf)
    graph.add_edge("arbitration", "memory_selection")
    graph.add_edge("memory_selection", "prompt_build")
    graph.add_edge("prompt_build", "llm_call")
    graph.add_conditional_edges("llm_call", after_llm)
    graph.add_conditional_edges("action_arbitration", after_action)
    graph.add_conditional_edges("env_step", after_step)


class Junction(TypedDict, total=False):
    """The part of the state that decides where to go; LangGraph collects no more for an edge."""

    settings: dict[str, Any]
    done: bool
    decisions: Decisions


def after_belief(state: Junction) -> Literal["rule_assembly", "goal_retrieval", "prompt_build"]:
    """Rules first, then memory, or straight to the prompt for the baseline."""
    return "rule_assembly" if settings_of(state).rules else after_rules(state)


def after_rules(state: Junction) -> Literal["goal_retrieval", "prompt_build"]:
    """Rules-only skips every memory stage."""
    return "goal_retrieval" if settings_of(state).memory else "prompt_build"


def after_retrieval(state: Junction) -> Literal["scf", "arbitration", "memory_selection"]:
    """SCF unless it is off; then whatever follows it."""
    return "scf" if settings_of(state).scf != "off" else after_scf(state)


def after_scf(state: Junction) -> Literal["arbitration", "memory_selection"]:
    """Arbitration needs rules to arbitrate with: with rules off nothing is arbitrated."""
    on = settings_of(state).rules and settings_of(state).arbitration != "none"
    return "arbitration" if on else "memory_selection"


def after_llm(state: Junction) -> Literal["action_arbitration", "env_step", "__end__"]:
    """With the guard off the action is played as it is; a stage of one's own may end it here."""
    if state["done"]:
        return "__end__"
    return "env_step" if settings_of(state).guard == "off" else "action_arbitration"


def after_action(state: Junction) -> Literal["llm_call", "env_step"]:
    """A vetoed action goes back to the model, as often as the stage before decides."""
    return "llm_call" if state["decisions"][-1]["verdict"] == "retried" else "env_step"


def after_step(state: Junction) -> Literal["belief_update", "__end__"]:
    """Next decision, or the end: also of an episode whose world did not start."""
    return "__end__" if state["done"] else "belief_update"


def next_stage(stage: str, state: Junction) -> str:
    """The stage that follows, for whoever runs the stages without the graph."""
    route = _routes().get(stage)
    return route(state) if route else STAGES[STAGES.index(stage) + 1]


@cache
def _routes() -> dict[str, Route]:
    graph = StageGraph(STAGES, EpisodeState)
    _wire(graph, None, None, "")
    return graph.routes


def build_graph(
    nodes: Added | None = None,
    *,
    after: Added | None = None,
    before: Added | None = None,
    state_schema: type[EpisodeState] = EpisodeState,
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    reply_cache: str = "",
    **compiling: Any,
) -> RpmsGraph:
    """The compiled agent graph, for plain runs and for many episodes on one event loop.

    A node is what LangGraph takes as one: a function of the state (and, if it wants, of the
    runtime) that returns the keys it changes, a coroutine function, a Runnable, a compiled graph.

    Args:
        nodes: replacements by stage name, e.g. ``{"scf": my_scf}``.
        after: nodes of your own that follow a stage, one or a list; each keeps its own name. One
            that is annotated to return ``Command[Literal[...]]`` says itself where it goes on.
        before: the same, for what comes right before a stage; skipped where the stage is.
        state_schema: ``EpisodeState`` with more keys; they are taken with the input, and come
            out with the output.
        context: settings of runs that give none, for example within another graph.
        model: a chat model object; without it the context's ``model`` setting is opened.
        reply_cache: file of model replies; what was asked before is answered from it, so that a
            run that is repeated or taken up again costs nothing twice.
        compiling: what LangGraph's ``compile`` takes: ``checkpointer``, ``store``, ``cache``,
            ``interrupt_before``, ``interrupt_after``, ``name``.
    """
    builder = make_builder(
        nodes, after=after, before=before, state_schema=state_schema, context=context, model=model,
        reply_cache=reply_cache,
    )  # fmt: skip
    return builder.compile(**{"name": "rpms", **compiling})
