"""The RPMS agent as a LangGraph graph, with one node for each stage of the paper's Algorithm 1.

Conditional edges skip the stages that a setting switches off, so every condition of the paper is a
path through this one graph. The edges read only the state. ``reset_env`` writes the episode's
settings into it, so an episode can be resumed at any stage, for example in Studio. LangGraph draws
the edges from the ``Literal`` return types.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, cast

from langchain_core.language_models import BaseChatModel
from langgraph.graph import START
from typing_extensions import TypedDict

import rpms.nodes as stages
from rpms.graph.compiled import Builder, RpmsGraph
from rpms.graph.own_nodes import Node, StageNodes, put_in, require_chat_model, schemas
from rpms.models.retrying import RETRY
from rpms.nodes.state import Decisions, EpisodeOutput, EpisodeState, settings_of
from rpms.vocabulary.context import RunContext

__all__ = ["STAGES", "Node", "RpmsGraph", "build_graph", "make_builder", "next_stage"]

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
    "guard_check",
    "env_step",
)
LLM_CALL: dict[str, Any] = {"retry_policy": RETRY, "error_handler": stages.model_failed}


def make_builder(
    nodes: StageNodes | None = None,
    *,
    after: StageNodes | None = None,
    before: StageNodes | None = None,
    state_schema: type[EpisodeState] = EpisodeState,
    output_schema: type[EpisodeOutput] = EpisodeOutput,
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
) -> Builder:
    """Return the graph before it is compiled; the arguments are those of ``build_graph``."""
    require_chat_model(model)
    entry, result = schemas(state_schema, output_schema)
    builder = Builder(state_schema, RunContext, input_schema=entry, output_schema=result)
    builder.defaults = context or RunContext()

    reset_env: Node = stages.make_reset_env(context)
    prompt_build: Node = stages.make_prompt_build(model)
    llm_call: Node = stages.make_llm_call(model)

    builder.add_node("reset_env", reset_env)
    builder.add_node("belief_update", stages.belief_update)
    builder.add_node("rule_assembly", stages.rule_assembly)
    builder.add_node("goal_retrieval", stages.goal_retrieval)
    builder.add_node("scf", stages.scf)
    builder.add_node("arbitration", stages.arbitration)
    builder.add_node("memory_selection", stages.memory_selection)
    builder.add_node("prompt_build", prompt_build)
    builder.add_node("llm_call", llm_call, **LLM_CALL)
    builder.add_node("guard_check", stages.guard_check)
    builder.add_node("env_step", stages.env_step)

    builder.add_edge(START, "reset_env")
    builder.add_conditional_edges("reset_env", after_step)
    builder.add_conditional_edges("belief_update", after_belief)
    builder.add_conditional_edges("rule_assembly", after_rules)
    builder.add_conditional_edges("goal_retrieval", after_retrieval)
    builder.add_conditional_edges("scf", after_scf)
    builder.add_edge("arbitration", "memory_selection")
    builder.add_edge("memory_selection", "prompt_build")
    builder.add_edge("prompt_build", "llm_call")
    builder.add_conditional_edges("llm_call", after_llm)
    builder.add_conditional_edges("guard_check", after_guard)
    builder.add_conditional_edges("env_step", after_step)

    put_in(builder, STAGES, nodes or {}, before or {}, after or {})
    return builder


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


def after_llm(state: RoutingState) -> Literal["guard_check", "env_step", "__end__"]:
    """Without a guard, execute the action; a custom ``llm_call`` may end the episode here."""
    if state["done"]:
        return "__end__"
    return "env_step" if settings_of(state).guard == "off" else "guard_check"


def after_guard(state: RoutingState) -> Literal["llm_call", "env_step"]:
    """Return a vetoed action to the model when ``guard_check`` asked for a retry."""
    return "llm_call" if state["decisions"][-1]["verdict"] == "retried" else "env_step"


def after_step(state: RoutingState) -> Literal["belief_update", "__end__"]:
    """Make the next decision, unless the episode ended or its environment failed to start."""
    return "__end__" if state["done"] else "belief_update"


_plain_builder = cache(make_builder)


def next_stage(stage: str, state: RoutingState) -> str:
    """Return the stage that follows, for callers that run the stages without the graph."""
    builder = _plain_builder()
    for branch in builder.branches[stage].values():
        return cast(str, branch.path.invoke(state))
    return next(end for start, end in builder.edges if start == stage)


def build_graph(
    nodes: StageNodes | None = None,
    *,
    after: StageNodes | None = None,
    before: StageNodes | None = None,
    state_schema: type[EpisodeState] = EpisodeState,
    output_schema: type[EpisodeOutput] = EpisodeOutput,
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
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
        output_schema: the keys that a run returns.
        context: the graph's own settings. A call may change some of them (``context={"seed": 7}``)
            or give all (``context=RunContext(...)``).
        model: a chat model object; by default the graph opens the model that the settings name.
        compile_options: options of LangGraph's ``compile``: ``checkpointer``, ``store``, ``cache``,
            ``interrupt_before``, ``interrupt_after``, ``name``.
    """
    builder = make_builder(
        nodes, after=after, before=before, state_schema=state_schema, output_schema=output_schema,
        context=context, model=model,
    )  # fmt: skip
    return builder.compile(**compile_options)
