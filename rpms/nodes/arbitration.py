"""Stage 5: rules-first arbitration of the surviving memories.

An entry's advice is simulated with Tier-3 effects, starting from the current belief. A violated
precondition or a forbidden action is a hard conflict; a precondition that the belief leaves open is
a soft conflict. A schema, and advice about things that were not seen yet, is checked only against
what holds for every thing of its kind. A lesson warns against an action. It conflicts with the
rules when the procedure demands that action or the manual says that it can work; when the manual
cannot tell, the conflict is soft. Rules always win: hard conflicts remove the memory, soft ones add
a warning that says what to check first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from rpms.guard.policy import applicable_actions
from rpms.nodes.state import EpisodeState, manual_of, settings_of
from rpms.rules import (
    Manual,
    can_work,
    check_action,
    forbidden_by,
    match_action,
    refers_to,
    simulate,
)
from rpms.rules.actions_in_text import never_works
from rpms.rules.conditions import DecisionPoint
from rpms.rules.predicates import parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.wording import statement
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.recall import NOTE, Recall, drop


class Conflict(NamedTuple):
    hard: bool
    rule: str
    reason: str


class Arbiter:
    """The rules at one decision point, shared by all entries that are arbitrated there."""

    def __init__(self, point: DecisionPoint) -> None:
        self.point = point

    @cached_property
    def demanded(self) -> frozenset[str]:
        """The actions that the procedure lists for the current sub-goal."""
        return frozenset(choice["action"] for choice in applicable_actions(self.point))


def arbitration(state: EpisodeState) -> EpisodeState:
    """Read the candidates, belief and goal; return the candidates, conflicts dropped or warned."""
    context = settings_of(state)
    manual = manual_of(state)
    arbiter = Arbiter(
        DecisionPoint(
            manual,
            state["goal"],
            state["sub_goal"],
            state["belief"],
            state.get("ineffective", []),
        )
    )
    recalls = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            conflict = find_conflict(recall, arbiter)
            if conflict is not None:
                recall = _resolve(recall, conflict, context.arbitration)
        recalls.append(recall)
    return EpisodeState(recalls=recalls)


def _resolve(recall: Recall, conflict: Conflict, mode: str) -> Recall:
    """Drop the memory or add a warning, as the mode asks.

    A note gets a warning instead of being dropped: one bad step need not cost a whole text.
    """
    hard = conflict.hard and "hard" in mode
    marked = hard and recall["entry"]["type"] == NOTE
    if hard and not marked:
        return drop(recall, "arbitration", conflict.reason, conflict.rule)
    if marked or "soft" in mode:
        return {**recall, "warning": conflict.reason, "rule": conflict.rule}
    return recall


def find_conflict(recall: Recall, arbiter: Arbiter) -> Conflict | None:
    """Return the conflict between an entry and the rules at this point, if there is one."""
    kind, actions = recall["entry"]["type"], recall["advice"]["actions"]
    point = arbiter.point
    if kind == "schema" or (recall["advice"]["by_kind"] and kind == "success"):
        return next(kind_conflicts(actions, point.belief, point.goal, point.manual), None)
    if recall["advice"]["by_kind"]:
        return None
    if kind == "success":
        return snippet_conflict(recall, point)
    if kind in ("failure", "critical_failure"):
        return lesson_conflict(recall, arbiter)
    if kind == NOTE:
        return note_conflict(recall, point.belief, point.goal, point.manual)
    return None


def snippet_conflict(recall: Recall, point: DecisionPoint) -> Conflict | None:
    """Simulate the advice; return the first hard conflict, else a soft one of its first step.

    Open preconditions of later steps get no warning, because the agent will know more by then. Nor
    do negated ones (not to be at a place already), because trying settles them at no cost. The
    simulation stops at an action that the manual does not describe.
    """
    actions, manual = recall["advice"]["actions"], point.manual
    imagined, doubt = point.belief, None
    for number, action in enumerate(actions):
        if conflict := goal_conflict(action, point.goal, manual, imagined):
            return conflict
        diagnosis = check_action(manual, action, imagined)
        if diagnosis.verdict == "no_such_action":
            return Conflict(True, "", f"'{action}' is not one of the available actions")
        if diagnosis.verdict == "fails":
            return Conflict(True, diagnosis.rule, f"'{action}' cannot work: {diagnosis.reason}")
        unsure = [parse_predicate(text) for text in diagnosis.unsure_predicates]
        doubtful = [str(predicate) for predicate in unsure if predicate.positive]
        if not number and doubtful:
            doubt = Conflict(False, diagnosis.rule, to_check(recall, manual, doubtful[0]))
        if not diagnosis.rule:
            break
        imagined = simulate(manual, action, imagined)
    return doubt


def to_check(recall: Recall, manual: Manual, condition: str) -> str:
    """Word the open precondition of an entry's first action, with the names the entry prints."""
    action, printed = recall["advice"]["actions"][0], recall["advice"]["printed"][0]
    rule, names = match_action(manual, action) or (None, {})
    shown = match_action(manual, printed)
    if rule and (shown is None or shown[0] is not rule):
        names = {parameter: f"<{parameter}>" for parameter in rule.parameters}
    elif shown:
        names = shown[1]
    words = statement(parse_predicate(condition), names, manual.facts)
    return f"check first that {words}; that is not known yet"


def note_conflict(
    recall: Recall, belief: Belief, goal: GoalSpec, manual: Manual
) -> Conflict | None:
    """Find the actions in a note that conflict with the rules.

    Actions that are forbidden for this goal, or impossible with things of that kind, are a hard
    conflict wherever they stand in the text. The current state says little about a text for a whole
    task, so only the first action of a note about this same scene is checked against it; that
    conflict is soft.
    """
    actions = recall["advice"]["actions"]
    if faults := list(kind_conflicts(dict.fromkeys(actions), belief, goal, manual)):
        return Conflict(True, faults[0].rule, "; ".join(fault.reason for fault in faults))
    if recall["entry"]["here"] and actions:
        diagnosis = check_action(manual, actions[0], belief)
        if diagnosis.verdict == "fails":
            words = f"'{actions[0]}' cannot work yet: {diagnosis.reason}"
            return Conflict(False, diagnosis.rule, words)
    return None


def kind_conflicts(
    actions: Iterable[str], belief: Belief, goal: GoalSpec, manual: Manual
) -> Iterator[Conflict]:
    """Yield a conflict for each action that a rule forbids for this goal or for that kind."""
    names = {*belief["places"], *belief["last_seen"], *belief["holding"]}
    kinds = {kind_of(name) for name in names} | {goal["object"], goal["destination"]}
    for action in actions:
        if conflict := goal_conflict(action, goal, manual):
            yield conflict
            continue
        rule, words = never_works(manual, action, kinds)
        if rule:
            yield Conflict(True, rule, f"'{action}' cannot work: it needs {words}")


def goal_conflict(
    action: str, goal: GoalSpec, manual: Manual, belief: Belief | None = None
) -> Conflict | None:
    """Return a conflict if a rule forbids the action for this goal, or only other goals need it.

    Cooling is no step of heating: Tier 2 lists the steps of each goal type. Rules about the order
    of steps are only checked when a belief is given.
    """
    if rule := forbidden_by(manual, action, goal, belief):
        return Conflict(True, rule, f"'{action}' is forbidden for this goal")
    matched = match_action(manual, action)
    if matched and manual.is_foreign(matched[0].name, goal["type"]):
        cited = _cited(manual, matched[0])
        return Conflict(True, cited, f"'{action}' is no step of {goal['type']}")
    return None


def lesson_conflict(recall: Recall, arbiter: Arbiter) -> Conflict | None:
    """Return a conflict if a lesson warns against an action that the rules demand or allow.

    A lesson about an action that cannot work now, or that a rule forbids, agrees with the rules.
    If the manual cannot tell, the conflict is soft and its warning says what to check. A lesson
    about a fatal action conflicts only when the procedure demands that action: that it can work
    is no argument against it.
    """
    point, action = arbiter.point, recall["advice"]["actions"][0]
    manual, goal, step = point.manual, point.goal, point.sub_goal["name"]
    matched = match_action(manual, action)
    if matched is None or forbidden_by(manual, action, goal, point.belief):
        return None
    rule, names = matched
    advances = manual.demanded(step) == rule.name
    if action in arbiter.demanded or (advances and _concerns_goal(names.values(), goal)):
        return Conflict(True, _cited(manual, rule), f"the sub-goal {step} needs '{action}'")
    if recall["entry"]["type"] == "critical_failure":
        if advances and any(name in point.sub_goal["target"] for name in names.values()):
            words = "check first whether this task asks for exactly that"
            return Conflict(False, _cited(manual, rule), words)
        return None
    possible = can_work(manual, action, point.belief)
    if possible:
        return Conflict(True, rule.id, f"by the manual '{action}' can work now")
    if possible is None:
        unsure = check_action(manual, action, point.belief).unsure_predicates
        return Conflict(False, rule.id, to_check(recall, manual, unsure[0])) if unsure else None
    return None


def _cited(manual: Manual, rule: ActionRule) -> str:
    """Return the rule's id, or "" if the rule is left out of the manual."""
    return rule.id if manual.knows(rule) else ""


def _concerns_goal(names: Collection[str], goal: GoalSpec) -> bool:
    """Return True if an action with these names handles what the goal asks for."""
    return any(refers_to(name, goal["object"]) for name in names) or (
        bool(names) and all(refers_to(name, goal["destination"]) for name in names)
    )
