"""Why an action failed: was the knowledge missing, wrong, or ignored?

Judged for every action that the world refused, and for the one that ended an episode badly, from
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
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from rpms.evals.obedience import KNOWN_ACTION, Judgement, judge
from rpms.rules import Manual, match_action
from rpms.rules.predicates import evaluate, parse_predicate
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import Truth

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
    found = [evaluate(need, step["belief"], manual.world, matched[1]) for need in needs]
    return False if False in found else None if None in found else True


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
