"""Stage 2: R_active = R_U + R_D(g_type) + R_E, plus the rule lines for the current situation."""

from __future__ import annotations

from rpms.envs import get_environment
from rpms.nodes.state import EpisodeState, manual_of, settings_of
from rpms.prompts.blocks import unlisted_actions
from rpms.rules import Manual, Rejection, explain_rejection
from rpms.vocabulary.turn import rejected_since


def rule_assembly(state: EpisodeState) -> EpisodeState:
    """Read goal, belief, the last turn and its decision; return the active rules.

    In the paper's style they neither diagnose the last action nor name an action that the paper's
    listing of the system prompt lacks.
    """
    context = settings_of(state)
    manual = manual_of(state)
    paper = context.prompt_style == "paper"
    rejected = None if paper else last_rejection(state, manual)
    rules = manual.active(state["goal"], state["belief"], rejected, context.rules_scope)
    if paper:
        unlisted = unlisted_actions(get_environment(state["env"]).prompts, manual)
        lines = rules["environment"]
        rules["environment"] = [line for line in lines if line["id"] not in unlisted]
    return EpisodeState(rules=rules)


def last_rejection(state: EpisodeState, manual: Manual) -> Rejection | None:
    """Explain why the last action was rejected, or not executed; None if it was executed.

    Tier 3 explains a rejection by the belief, which a rejected action leaves unchanged. An action
    that the guard replaced by a fallback is explained too, while the belief does not change: the
    model is not asked about it again, and would otherwise keep proposing it.
    """
    last = state["history"][-1] if state["history"] else None
    decision = state["decisions"][-1] if state.get("decisions") else None
    if last and last["failed"] and last["action"]:
        action, belief = last["action"], state["belief"]
        turns = rejected_since(state["history"], state["ineffective"])
        count = sum(turn["action"] == action for turn in turns)
        times = {0: "", 1: "", 2: " twice"}.get(count, f" {count} times")
        answer = get_environment(state["env"]).rejection_reason(last["observation"])
        reason = explain_rejection(manual, action, belief, answer)
        return Rejection(action, f"was rejected{times}", reason)
    if decision and decision["verdict"] == "fallback" and state["ineffective"]:
        proposal, reason = decision["proposal"], decision["reason"]
        return Rejection(proposal, "was not carried out", reason) if proposal else None
    return None
