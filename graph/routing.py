"""Conditional edges: a stage that is switched off is not visited.

The ``Literal`` return types are what LangGraph draws, so the picture of the graph shows every
way through it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from langgraph.runtime import Runtime

from rpms.nodes.context import RunContext, settings
from rpms.nodes.state import EpisodeState


def after_reset(state: EpisodeState) -> Literal["belief_update", "__end__"]:
    """A world that does not start ends the episode as an infrastructure error."""
    return "__end__" if state["done"] else "belief_update"


def after_belief(
    state: EpisodeState, runtime: Runtime[RunContext]
) -> Literal["rule_assembly", "goal_retrieval", "prompt_build"]:
    """Rules first, then memory, or straight to the prompt for the baseline."""
    context = settings(runtime.context)
    if context.rules:
        return "rule_assembly"
    return "goal_retrieval" if context.memory else "prompt_build"


def after_rules(
    state: EpisodeState, runtime: Runtime[RunContext]
) -> Literal["goal_retrieval", "prompt_build"]:
    """Rules-only skips every memory stage."""
    return "goal_retrieval" if settings(runtime.context).memory else "prompt_build"


def after_retrieval(
    state: EpisodeState, runtime: Runtime[RunContext]
) -> Literal["scf", "arbitration", "prompt_build"]:
    """SCF unless it is off; then whatever follows it."""
    return "scf" if settings(runtime.context).scf != "off" else after_scf(state, runtime)


def after_scf(
    state: EpisodeState, runtime: Runtime[RunContext]
) -> Literal["arbitration", "prompt_build"]:
    """Arbitration needs rules to arbitrate with: with rules off nothing is arbitrated."""
    context = settings(runtime.context)
    return "arbitration" if context.rules and context.arbitration != "none" else "prompt_build"


def after_llm(
    state: EpisodeState, runtime: Runtime[RunContext]
) -> Literal["action_arbitration", "env_step", "__end__"]:
    """Without a reply (a model error) there is nothing to play."""
    if state["done"]:
        return "__end__"
    return "env_step" if settings(runtime.context).guard == "off" else "action_arbitration"


def after_action(state: EpisodeState) -> Literal["llm_call", "env_step"]:
    """A vetoed action goes back to the model, once."""
    return "llm_call" if state["decisions"][-1]["verdict"] == "asked_again" else "env_step"


def after_step(state: EpisodeState) -> Literal["belief_update", "__end__"]:
    """Next decision, or the end of the episode."""
    return "__end__" if state["done"] else "belief_update"


BY_CONTEXT: dict[str, Callable[[EpisodeState, Runtime[RunContext]], str]] = {
    "belief_update": after_belief,
    "rule_assembly": after_rules,
    "goal_retrieval": after_retrieval,
    "scf": after_scf,
}
"""Edges that depend on nothing but the settings of the run."""
