"""Conditional edges: a stage that is switched off is not visited.

Edges read the state alone, where the settings of the run are kept: a person may then take an
episode up at any stage, e.g. in Studio, and LangGraph can say where it goes from there. The
``Literal`` return types are what it draws: the picture of the graph shows every way through it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from typing_extensions import TypedDict

from rpms.nodes.state import Decisions
from rpms.vocabulary.context import RunContext

USUAL = RunContext().plain


class Junction(TypedDict, total=False):
    """The part of the state that decides where to go; LangGraph collects no more for an edge."""

    settings: dict[str, Any]
    done: bool
    decisions: Decisions


def after_belief(state: Junction) -> Literal["rule_assembly", "goal_retrieval", "prompt_build"]:
    """Rules first, then memory, or straight to the prompt for the baseline."""
    return "rule_assembly" if _settings(state)["rules"] else after_rules(state)


def after_rules(state: Junction) -> Literal["goal_retrieval", "prompt_build"]:
    """Rules-only skips every memory stage."""
    return "goal_retrieval" if _settings(state)["memory"] else "prompt_build"


def after_retrieval(state: Junction) -> Literal["scf", "arbitration", "prompt_build"]:
    """SCF unless it is off; then whatever follows it."""
    return "scf" if _settings(state)["scf"] != "off" else after_scf(state)


def after_scf(state: Junction) -> Literal["arbitration", "prompt_build"]:
    """Arbitration needs rules to arbitrate with: with rules off nothing is arbitrated."""
    on = _settings(state)["rules"] and _settings(state)["arbitration"] != "none"
    return "arbitration" if on else "prompt_build"


def after_llm(state: Junction) -> Literal["action_arbitration", "env_step", "__end__"]:
    """With the guard off the action is played as it is; a stage of one's own may end it here."""
    if state["done"]:
        return "__end__"
    return "env_step" if _settings(state)["guard"] == "off" else "action_arbitration"


def after_action(state: Junction) -> Literal["llm_call", "env_step"]:
    """A vetoed action goes back to the model, as often as the stage before decides."""
    return "llm_call" if state["decisions"][-1]["verdict"] == "asked_again" else "env_step"


def after_step(state: Junction) -> Literal["belief_update", "__end__"]:
    """Next decision, or the end: also of an episode whose world did not start."""
    return "__end__" if state["done"] else "belief_update"


def _settings(state: Junction) -> dict[str, Any]:
    return state.get("settings") or USUAL


ROUTES: dict[str, Callable[[Junction], str]] = {
    "reset_env": after_step,
    "belief_update": after_belief,
    "rule_assembly": after_rules,
    "goal_retrieval": after_retrieval,
    "scf": after_scf,
    "llm_call": after_llm,
    "action_arbitration": after_action,
    "env_step": after_step,
}
"""Where it goes on after each stage that has more than one way out."""
