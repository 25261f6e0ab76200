"""Which rules the model's own proposals kept: counted by machine, shown to the model or not.

The manual judges every proposal before any guard does: the Tier-3 rule of the action (do its
preconditions hold in the belief?) and the rules that forbid some actions of that kind under the
goal. Rules without a machine-readable part (most of Tiers 1 and 2) are not judged. The manual
judges in every condition, so that a baseline that was told nothing can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rpms.nodes.manual import load_manual
from rpms.rules import Manual, check_action, spoken_of
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec

Verdict = Literal["kept", "broken", "unsure"]

KNOWN_ACTION = "known action"
"""Stands for the list of actions in the system prompt, which every condition is shown."""

# Ends of the spans of steps in which obedience is compared; what comes later is one span more.
ENDS = (5, 10, 20, 30, 50)
_VERDICTS: dict[str, Verdict] = {"holds": "kept", "fails": "broken", "unknown": "unsure"}


class Judgement(NamedTuple):
    """One rule on one proposal."""

    rule: str
    verdict: Verdict


def judging_manual(env: str, settings: Mapping[str, Any]) -> Manual:
    """The manual that judges an episode, by its world and the settings it was played under."""
    known = {name: settings.get(name, "") for name in ("rules_dir", "without_rules")}
    return load_manual(env, known["rules_dir"], known["without_rules"])


def judge(manual: Manual, proposal: str, belief: Belief, goal: GoalSpec) -> list[Judgement]:
    """Every rule that speaks of a proposal; none where no action could be read."""
    if not proposal:
        return []
    if belief["asked"]:
        # A request was asked back: the number of a choice is the one answer there is a rule for.
        rule, meant = manual.environment.asked_back.rule, proposal in belief["asked"]
        answer = [Judgement(rule, "kept" if meant else "broken")] if rule else []
        if meant:
            return [Judgement(KNOWN_ACTION, "kept"), *answer]
        return [*answer, *judge(manual, proposal, {**belief, "asked": {}}, goal)]
    diagnosis = check_action(manual, proposal, belief)
    if diagnosis.verdict == "no_such_action":
        return [Judgement(KNOWN_ACTION, "broken")]
    found = [Judgement(KNOWN_ACTION, "kept")]
    found.append(Judgement(diagnosis.rule, _VERDICTS[diagnosis.verdict]))
    hits: dict[str, bool] = {}
    for rule, hit in spoken_of(manual, proposal, goal):
        hits[rule] = hits.get(rule, False) or hit
    return [*found, *(Judgement(rule, "broken" if hit else "kept") for rule, hit in hits.items())]


def span_of(step: int) -> str:
    """``1-5``, ``6-10``, ... ``51+``."""
    start = 1
    for end in ENDS:
        if step <= end:
            return f"{start}-{end}"
        start = end + 1
    return f"{start}+"


def spans() -> list[str]:
    """Every span of steps, in order."""
    return [span_of(end) for end in ENDS] + [span_of(ENDS[-1] + 1)]


def obedience_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An episode's line: per rule how often it was settled, kept and left open; and by step.

    ``obeyed`` has ``[settled, kept, unsure]`` for each rule. ``obeyed_by_step`` has ``[proposals,
    obedient]`` for each span of steps: proposals that some rule settles, and those of them that
    break none.
    """
    rules: dict[str, list[int]] = {}
    by_step: dict[str, list[int]] = {}
    for step in steps:
        judged = [Judgement(*one) for one in step.get("judged", [])]
        for rule, verdict in judged:
            row = rules.setdefault(rule, [0, 0, 0])
            row[0] += verdict != "unsure"
            row[1] += verdict == "kept"
            row[2] += verdict == "unsure"
        if settled := settled_by(judged):
            row = by_step.setdefault(span_of(step["step"]), [0, 0])
            row[0] += 1
            row[1] += "broken" not in settled
    return {"obeyed": dict(sorted(rules.items())), "obeyed_by_step": by_step}


def prediction_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An episode's line: how each action's rule foretold what the world made of the action.

    ``foretold`` has ``[called possible, refused after all, called impossible, accepted after all]``
    for each rule, over the actions that were played as they were proposed.
    """
    found: dict[str, list[int]] = {}
    for step in steps:
        judged = [Judgement(*one) for one in step.get("judged", [])]
        # The list of actions speaks first, then the action's own rule; forbidding rules foretell
        # nothing: what they forbid is possible.
        if len(judged) < 2 or not step["action"] or step["action"] != step.get("proposal"):
            continue
        rule, verdict = judged[1]
        if verdict == "unsure":
            continue
        row = found.setdefault(rule, [0, 0, 0, 0])
        possible = verdict == "kept"
        row[0 if possible else 2] += 1
        row[1 if possible else 3] += step["failed"] == possible
    return {"foretold": dict(sorted(found.items()))}


def settled_by(judged: Iterable[Judgement]) -> list[Verdict]:
    """The verdicts that are no guess.

    Being a known action alone settles nothing: it would make every walk into the unknown obedient.
    """
    return [
        verdict
        for rule, verdict in judged
        if verdict == "broken" or (verdict == "kept" and rule != KNOWN_ACTION)
    ]
