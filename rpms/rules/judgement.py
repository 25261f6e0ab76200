"""How the manual judges a proposed action.

Two kinds of rules judge: the Tier-3 rule of the action (do its preconditions hold in the belief?)
and rules that forbid some actions of that kind under the goal. Rules without a machine-readable
part (most of Tiers 1 and 2) judge nothing. The manual judges in every condition, so that a baseline
that was shown no rule can be compared.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from rpms.rules import Manual, check_action, forbidding_rules
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec

Verdict = Literal["kept", "broken", "open"]

KNOWN_ACTION = "known action"
"""Stands for the list of actions in the system prompt, which every condition is shown."""
_VERDICTS: dict[str, Verdict] = {"holds": "kept", "fails": "broken", "unknown": "open"}


class StepJudgement(NamedTuple):
    """The judgement of one rule about one proposed action."""

    rule: str
    verdict: Verdict


def judge(manual: Manual, proposal: str, belief: Belief, goal: GoalSpec) -> list[StepJudgement]:
    """Return the judgement of every rule that concerns a proposed action."""
    if not proposal:
        return []
    if belief["disambiguation"]:
        # The environment waits for the number of a choice; every other action breaks its rule.
        rule, is_choice = (
            manual.environment.disambiguation.rule,
            proposal in belief["disambiguation"],
        )
        answer = [StepJudgement(rule, "kept" if is_choice else "broken")] if rule else []
        if is_choice:
            return [StepJudgement(KNOWN_ACTION, "kept"), *answer]
        return [*answer, *judge(manual, proposal, {**belief, "disambiguation": {}}, goal)]
    diagnosis = check_action(manual, proposal, belief)
    if diagnosis.verdict == "no_such_action":
        return [StepJudgement(KNOWN_ACTION, "broken")]
    judgements = [StepJudgement(KNOWN_ACTION, "kept")]
    judgements.append(StepJudgement(diagnosis.rule, _VERDICTS[diagnosis.verdict]))
    hits: dict[str, bool] = {}
    for rule, hit in forbidding_rules(manual, proposal, goal):
        hits[rule] = hits.get(rule, False) or hit
    return [
        *judgements,
        *(StepJudgement(rule, "broken" if hit else "kept") for rule, hit in hits.items()),
    ]
