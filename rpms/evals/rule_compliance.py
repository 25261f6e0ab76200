"""Which rules the model's own proposals kept, and why an action failed.

The manual judges every proposal before any guard does: the Tier-3 rule of the action (do its
preconditions hold in the belief?) and the rules that forbid some actions of that kind under the
goal. Rules without a machine-readable part (most of Tiers 1 and 2) are not judged. The manual
judges in every condition, so that a baseline that was told nothing can be compared.

Every action that the world refused, and the one that ended an episode badly, is also judged from
what stood in the prompt at that step. The first of these that is true:

ignored: a rule in the prompt definitely said that it could not work or must not be done; or a
    memory in the prompt said so (a lesson against this very action, a schema of it whose needs
    definitely do not hold); or it is no action of the list that every prompt shows.
wrong: a memory in the prompt said to do this very action now (a snippet that begins with it, a
    schema of it whose needs all hold); or a rule in the prompt names what the action needs, all
    of it held in the belief, and the world refused it all the same.
missing: nothing in the prompt settled it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from rpms.nodes.manual import load_manual
from rpms.rules import Manual, check_action, match_action, spoken_of
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import Truth

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
    judgements = [Judgement(KNOWN_ACTION, "kept")]
    judgements.append(Judgement(diagnosis.rule, _VERDICTS[diagnosis.verdict]))
    hits: dict[str, bool] = {}
    for rule, hit in spoken_of(manual, proposal, goal):
        hits[rule] = hits.get(rule, False) or hit
    return [
        *judgements,
        *(Judgement(rule, "broken" if hit else "kept") for rule, hit in hits.items()),
    ]


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


def compliance_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
    predictions: dict[str, list[int]] = {}
    for step in steps:
        judged = [Judgement(*one) for one in step.get("judged", [])]
        # The list of actions speaks first, then the action's own rule; forbidding rules foretell
        # nothing: what they forbid is possible.
        if len(judged) < 2 or not step["action"] or step["action"] != step.get("proposal"):
            continue
        rule, verdict = judged[1]
        if verdict == "unsure":
            continue
        row = predictions.setdefault(rule, [0, 0, 0, 0])
        possible = verdict == "kept"
        row[0 if possible else 2] += 1
        row[1 if possible else 3] += step["failed"] == possible
    return {"foretold": dict(sorted(predictions.items()))}


def settled_by(judged: Iterable[Judgement]) -> list[Verdict]:
    """The verdicts that are no guess.

    Being a known action alone settles nothing: it would make every walk into the unknown obedient.
    """
    return [
        verdict
        for rule, verdict in judged
        if verdict == "broken" or (verdict == "kept" and rule != KNOWN_ACTION)
    ]


Kind = Literal["missing", "wrong", "ignored"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NOTHING_REFUSED = "nothing refused"
LESSONS = ("failure", "critical_failure")


def in_prompt(step: Mapping[str, Any], settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The memories whose words the model could read at this step."""
    if settings.get("memory_control") == "filler":
        return []
    return [recall for recall in step.get("recalls", []) if not recall["dropped_by"]]


def shown_rules(step: Mapping[str, Any]) -> set[str]:
    """The ids of the rules in the prompt."""
    tiers: Mapping[str, Sequence[Any]] = step.get("rules", {})
    return {
        rule if isinstance(rule, str) else rule["id"] for tier in tiers.values() for rule in tier
    }


def kind_of_failure(
    step: Mapping[str, Any],
    manual: Manual,
    goal: GoalSpec,
    settings: Mapping[str, Any],
    refused: bool = True,
) -> Kind:
    """Missing, wrong or ignored, for the action of this step.

    An action that was not ``refused`` but ended the episode badly was possible, as its rule said:
    that rule was not wrong.
    """
    action = step["action"]
    judged = judge(manual, action, step["belief"], goal)
    shown = {KNOWN_ACTION, *shown_rules(step)}
    told = {_told(recall, step, manual) for recall in in_prompt(step, settings)}
    if False in told or any(verdict == "broken" and rule in shown for rule, verdict in judged):
        return "ignored"
    matched = match_action(manual, action)
    allowed = matched and Judgement(matched[0].id, "kept") in judged and matched[0].id in shown
    return "wrong" if True in told or (refused and allowed) else "missing"


def _told(recall: Mapping[str, Any], step: Mapping[str, Any], manual: Manual) -> Truth:
    """What a memory says about the action of this step: do it now, do not, or nothing.

    Advice is what is left to do: only its first action is advised now.
    """
    entry, advised = recall["entry"], recall.get("advice", {}).get("actions", [])
    if step["action"] not in advised[:1]:
        return None
    if entry.get("type") in LESSONS:
        return False
    return _needs_hold(entry, step, manual) if entry.get("type") == "schema" else True


def _needs_hold(entry: Mapping[str, Any], step: Mapping[str, Any], manual: Manual) -> Truth:
    """Whether what a schema says its action needs holds in the belief; unsure if told in words."""
    matched = match_action(manual, step["action"])
    if matched is None or not entry.get("uses") or not entry["preconditions"]:
        return None
    needs = [parse_predicate(text) for text in entry["preconditions"]]
    truths = [evaluate(need, step["belief"], manual.world, matched[1]) for need in needs]
    return False if False in truths else None if None in truths else True


def mark_failures(
    steps: Sequence[dict[str, Any]],
    manual: Manual,
    goal: GoalSpec,
    settings: Mapping[str, Any],
    failure_mode: str | None,
) -> None:
    """Note the kind on every step whose action failed; unreadable replies are no actions."""
    for step in steps:
        fatal = failure_mode == "wrong_termination" and step is steps[-1]
        if step["action"] and (step["failed"] or fatal):
            step["lacked"] = kind_of_failure(step, manual, goal, settings, step["failed"])


def failure_counts(steps: Sequence[Mapping[str, Any]], failure_mode: str | None) -> dict[str, Any]:
    """An episode's line: refused actions by kind, and the kind that dominates a lost episode."""
    refused = Counter(step["lacked"] for step in steps if step["failed"] and step["lacked"])
    return {
        "refused": {kind: refused[kind] for kind in KINDS},
        "lost_by": _dominant(steps, refused, failure_mode) if failure_mode else "",
    }


def _dominant(steps: Sequence[Mapping[str, Any]], refused: Counter[str], failure_mode: str) -> str:
    """The commonest kind; of equals, what was nearest at hand: ignored, then wrong.

    What ended an episode badly outweighs all that was merely refused before.
    """
    if failure_mode == "wrong_termination" and steps and steps[-1]["lacked"]:
        return str(steps[-1]["lacked"])
    if not refused.total():
        return NOTHING_REFUSED
    return max(reversed(KINDS), key=lambda kind: refused[kind])
