"""What ``arbitration_extras`` adds to the paper's arbitration: memories that need not be printed.

Two kinds of entries lose, neither of which contradicts a rule:

- *redundant*: a lesson or a schema that says no more than a rule which the same prompt prints;
- *contradicted by another memory*: a warning of an action that another entry advises.

The setting is off by default and under plan ``paper``. With it D prints hardly any lesson, because
a lesson's violated need is usually the need of the printed rule that explained it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rpms.rules import ActiveRules, Manual, match_action
from rpms.rules.predicates import is_predicate, parse_predicate
from rpms.rules.wording import statement
from rpms.vocabulary.context import MemoryForm
from rpms.vocabulary.recall import ConflictKind, Recall, drop

# Literals that follow from others: a thing at the agent's place is here and in view; an agent that
# put its one thing down has an empty hand.
_FOLLOWS = ("here", "visible", "hand_empty", "holding")


def settle(
    recalls: Sequence[Recall], manual: Manual, rules: ActiveRules, form: MemoryForm
) -> list[Recall]:
    """Drop the memories that a printed rule or another memory makes needless."""
    printed = frozenset(line["id"] for lines in rules.values() for line in lines)
    after = list(recalls)
    for number, recall in enumerate(recalls):
        if not recall["dropped_by"] and (rule := repeated_rule(recall, manual, printed)):
            after[number] = _lose(recall, "redundant", f"[{rule}] says so already", rule)
    for loser, winner, action in _contradictions(after, form):
        reason = f"{after[winner]['entry']['id']} says otherwise of '{action}'"
        after[loser] = _lose(after[loser], "contradicted by another memory", reason)
    return after


def _lose(recall: Recall, conflict: ConflictKind, reason: str, rule: str = "") -> Recall:
    return drop({**recall, "conflict": conflict}, "arbitration", reason, rule)


def repeated_rule(recall: Recall, manual: Manual, printed: frozenset[str]) -> str:
    """Return the id of the printed rule that says all that a lesson or a schema says, or "".

    That is the action's own rule, or one that states a precondition of all actions.
    """
    entry = recall["entry"]
    if entry["type"] == "failure":
        rule, _ = match_action(manual, entry["failed_action"]) or (None, {})
        said, taught = entry["violated"], rule.preconditions if rule else []
        general = _states_needs_of_all(manual, printed, said)
        if rule is not None and general:
            return general
    elif entry["type"] == "schema":
        rule = manual.by_name.get(entry["action_type"])
        said = [*entry["preconditions"], *entry["effects"]]
        taught = [*rule.preconditions, *rule.effects] if rule else []
    else:
        return ""
    if rule is None or rule.id not in printed or not said:
        return ""
    return rule.id if _is_said(said, taught, manual) else ""


def _states_needs_of_all(manual: Manual, printed: frozenset[str], said: Sequence[str]) -> str:
    """Return a printed rule of Tier 3 that states these preconditions for every action."""
    general = next((rule.id for rule in manual.environment.rules if rule.id in printed), "")
    names = [parse_predicate(text).name for text in said if is_predicate(text)]
    understood = {*manual.environment.understood}
    return general if names and len(names) == len(said) and {*names} <= understood else ""


def _is_said(noticed: Iterable[str], taught: Iterable[str], manual: Manual) -> bool:
    """Return True if a rule states every observed condition, or one that it follows from.

    Conditions that were written by hand, in words, cannot be compared.
    """

    def words(text: str) -> str:
        return statement(parse_predicate(text), {}, manual.facts) if is_predicate(text) else text

    said = {words(text) for text in taught}
    new = [text for text in noticed if words(text) not in said]
    return all(is_predicate(text) and parse_predicate(text).name in _FOLLOWS for text in new)


def _contradictions(recalls: Sequence[Recall], form: MemoryForm) -> Iterator[tuple[int, int, str]]:
    """Yield the number of each entry that loses, that of the winner, and the action.

    If an action was right for one goal and fatal for another, the more similar goal wins; if both
    are equally similar, the fatal one does, because it cannot be undone. A lesson that only states
    what an action needs contradicts nothing, unless it is printed as the paper's AVOID.
    """
    shown = [n for n, recall in enumerate(recalls) if not recall["dropped_by"]]
    lost = set[int]()

    def of_type(kind: str) -> list[int]:
        return [n for n in shown if recalls[n]["entry"]["type"] == kind and n not in lost]

    def nearness(number: int) -> float:
        weight: float = recalls[number]["entry"].get("retrieval_weight", 1.0)
        return recalls[number]["score"] / weight

    for fatal in of_type("critical_failure"):
        action = "".join(recalls[fatal]["advice"]["printed"][-1:])
        for snippet in of_type("success"):
            if action not in recalls[snippet]["advice"]["printed"]:
                continue
            wins = nearness(fatal) >= nearness(snippet)
            loser, winner = (snippet, fatal) if wins else (fatal, snippet)
            lost.add(loser)
            yield loser, winner, action
            if loser == fatal:
                break
    advised = {a: n for n in of_type("success") for a in recalls[n]["advice"]["printed"]}
    for lesson in of_type("failure"):
        advice = recalls[lesson]["advice"]
        action = "".join(advice["printed"][-1:])
        if action in advised and (form == "recorded" or not advice["needs"]):
            yield lesson, advised[action], action
