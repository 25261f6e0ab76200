"""Stage 2: R_active = R_U + R_D(g_type) + R_E, plus the lines for this very situation."""

from __future__ import annotations

from langgraph.runtime import Runtime

from rpms.nodes.manual import manual_for
from rpms.nodes.state import EpisodeState
from rpms.rules import explain_refusal
from rpms.vocabulary.context import RunContext, settings


def rule_assembly(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read goal, belief, the last turn and its decision; return the active rules.

    If the last action was refused, Tier 3 diagnoses it against the belief (which a refused
    action left unchanged), so that the prompt can name the precondition that did not hold. What a
    guard sent back is named, too, while nothing changes: its player is not asked about it again,
    and would propose it for ever.
    """
    manual = manual_for(state["env"], settings(runtime.context))
    last = state["history"][-1] if state["history"] else None
    decision = state["decisions"][-1] if state.get("decisions") else None
    refused = None
    if last and last["failed"] and last["action"]:
        refused = (last["action"], explain_refusal(manual, last["action"], state["belief"]))
    elif decision and decision["verdict"] == "fell_back" and state["ineffective"]:
        proposal = decision["proposal"]
        reason = decision["reason"].removeprefix(f"'{proposal}' ")
        refused = (proposal, (reason,)) if proposal else None
    return EpisodeState(rules=manual.active(state["goal"], state["belief"], refused))
