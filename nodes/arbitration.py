"""Stage 5: rules-first arbitration of the surviving memories.

The entry's advice is played through in imagination, from the current belief and with Tier-3
effects. A definite violation or a forbidden pattern is a hard conflict; something the belief
does not settle is a soft one. Rules always win: memory is removed or annotated, never a rule.
"""

from __future__ import annotations

from typing import NamedTuple

from langgraph.runtime import Runtime

from nodes.context import RunContext, settings
from nodes.state import EpisodeState
from rules import Manual, check_action, forbidden_by, load_manual, simulate
from vocabulary.belief import Belief
from vocabulary.goal import GoalSpec
from vocabulary.recall import Recall


class Conflict(NamedTuple):
    """A conflict between an entry's advice and a rule."""

    hard: bool
    rule: str
    reason: str


def arbitration(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the candidates, belief and goal; return them with conflicts removed or annotated."""
    mode = settings(runtime.context).arbitration
    manual = load_manual(state["env"])
    judged = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            conflict = find_conflict(recall, state["belief"], state["goal"], manual)
            if conflict is not None:
                recall = _settle(recall, conflict, mode)
        judged.append(recall)
    return EpisodeState(recalls=judged)


def _settle(recall: Recall, conflict: Conflict, mode: str) -> Recall:
    if conflict.hard and "hard" in mode:
        return Recall(
            **{
                **recall,
                "dropped_by": "arbitration",
                "reason": conflict.reason,
                "rule": conflict.rule,
            }
        )
    if "soft" in mode:
        return Recall(**{**recall, "warning": conflict.reason, "rule": conflict.rule})
    return recall


def find_conflict(
    recall: Recall, belief: Belief, goal: GoalSpec, manual: Manual
) -> Conflict | None:
    """The first conflict met when the entry's advice is simulated; None when there is none."""
    imagined = belief
    soft: Conflict | None = None
    for action in recall["entry"].get("actions", []):
        rule = forbidden_by(manual, action, goal)
        if rule:
            return Conflict(True, rule, f"'{action}' is forbidden for this goal")
        diagnosis = check_action(manual, action, imagined)
        if diagnosis.verdict in ("fails", "no_such_action"):
            return Conflict(True, diagnosis.rule, f"'{action}' needs: {diagnosis.violated[0]}")
        if diagnosis.verdict == "unknown" and soft is None:
            soft = Conflict(False, diagnosis.rule, f"'{action}' needs: {diagnosis.unsure[0]}")
        imagined = simulate(manual, action, imagined)
    return soft
