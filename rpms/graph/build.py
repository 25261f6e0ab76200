"""The RPMS agent as a LangGraph graph, with one node for each stage of the paper's Algorithm 1.

Conditional edges skip the stages that a setting switches off, so every condition of the paper is a
path through this one graph. The edges read only the state. ``reset_env`` writes the episode's
settings into it, so an episode can be resumed at any stage, for example in Studio. LangGraph draws
the edges from the ``Literal`` return types.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

import rpms.nodes as stages
from rpms.graph.custom import Builder, Node, Route, StageGraph, StageNodes, require_chat_model
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
LLM_CALL: dict[str, Any] = {"retry_policy": RETRY, "error_handler": stages.model_failed}
# A custom stage gets few retries, so that its errors show soon.
CUSTOM_LLM_CALL = {"retry_policy": RETRY._replace(max_attempts=FIRST_TRIES)}


def make_builder(
    nodes: StageNodes | None = None,
    *,
    after: StageNodes | None = None,
    before: StageNodes | None = None,
    state_schema: type[EpisodeState] = EpisodeState,
    output_schema: type[EpisodeOutput] = EpisodeOutput,
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    reply_cache: str = "",
) -> Builder:
    """Return the graph before it is compiled; the arguments are those of ``build_graph``."""
    require_chat_model(model)
    graph = StageGraph(STAGES, state_schema, nodes, before, after, output_schema)
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
    graph.add_node("llm_call", llm_call, **LLM_CALL, replacement=CUSTOM_LLM_CALL)
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


class RoutingState(TypedDict, total=False):
    """The keys that the conditional edges read; LangGraph passes them no others."""

    settings: dict[str, Any]
    done: bool
    decisions: Decisions


def after_belief(state: RoutingState) -> Literal["rule_assembly", "goal_retrieval", "prompt_build"]:
    """Without rules, continue with memory; the baseline goes straight to the prompt."""
    return "rule_assembly" if settings_of(state).rules else after_rules(state)


def after_rules(state: RoutingState) -> Literal["goal_retrieval", "prompt_build"]:
    """Without memory, skip every memory stage."""
    return "goal_retrieval" if settings_of(state).memory else "prompt_build"


def after_retrieval(state: RoutingState) -> Literal["scf", "arbitration", "memory_selection"]:
    return "scf" if settings_of(state).scf != "off" else after_scf(state)


def after_scf(state: RoutingState) -> Literal["arbitration", "memory_selection"]:
    """Arbitration checks memories against rules, so it is skipped when rules are off."""
    context = settings_of(state)
    arbitrates = context.rules and context.arbitration != "none"
    return "arbitration" if arbitrates else "memory_selection"


def after_llm(state: RoutingState) -> Literal["action_arbitration", "env_step", "__end__"]:
    """Without a guard, execute the action; a custom ``llm_call`` may end the episode here."""
    if state["done"]:
        return "__end__"
    return "env_step" if settings_of(state).guard == "off" else "action_arbitration"


def after_action(state: RoutingState) -> Literal["llm_call", "env_step"]:
    """Return a vetoed action to the model when ``action_arbitration`` asked for a retry."""
    return "llm_call" if state["decisions"][-1]["verdict"] == "retried" else "env_step"


def after_step(state: RoutingState) -> Literal["belief_update", "__end__"]:
    """Make the next decision, unless the episode ended or its environment failed to start."""
    return "__end__" if state["done"] else "belief_update"


def next_stage(stage: str, state: RoutingState) -> str:
    """Return the stage that follows, for callers that run the stages without the graph."""
    route = _routes().get(stage)
    return route(state) if route else STAGES[STAGES.index(stage) + 1]


@cache
def _routes() -> dict[str, Route]:
    graph = StageGraph(STAGES, EpisodeState)
    _wire(graph, None, None, "")
    return graph.routes


def build_graph(
    nodes: StageNodes | None = None,
    *,
    after: StageNodes | None = None,
    before: StageNodes | None = None,
    state_schema: type[EpisodeState] = EpisodeState,
    output_schema: type[EpisodeOutput] = EpisodeOutput,
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    reply_cache: str = "",
    **compile_options: Any,
) -> RpmsGraph:
    """Compile the agent graph, with your own nodes in it if you like.

    A node is anything LangGraph accepts as one: a function of the state (and optionally the
    runtime) that returns the keys it changes, a coroutine function, a Runnable or a compiled graph.

    Args:
        nodes: replacements by stage name, e.g. ``{"scf": my_scf}``.
        after: custom nodes to run after a stage, one or a list, by stage name. A node annotated to
            return ``Command[Literal[...]]`` chooses the next node itself.
        before: custom nodes to run before a stage; they are skipped when the stage is skipped.
        state_schema: a subclass of ``EpisodeState`` with extra keys, which become part of the
            graph's input and output.
        output_schema: the keys that a run returns; a server streams updates of these keys only.
        context: default settings for runs that pass none, for example inside another graph.
        model: a chat model object; by default the graph opens the model that the settings name.
        reply_cache: file of model replies. A prompt that is in the file is answered from it, so a
            repeated or resumed run pays for no call twice.
        compile_options: options of LangGraph's ``compile``: ``checkpointer``, ``store``, ``cache``,
            ``interrupt_before``, ``interrupt_after``, ``name``.
    """
    builder = make_builder(
        nodes, after=after, before=before, state_schema=state_schema, output_schema=output_schema,
        context=context, model=model, reply_cache=reply_cache,
    )  # fmt: skip
    return builder.compile(**{"name": "rpms", **compile_options})
