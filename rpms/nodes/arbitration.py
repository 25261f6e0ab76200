"""Stage 5: rules-first arbitration of the surviving memories.

An entry's advice is played through in imagination, from the current belief and with Tier-3
effects. A definite violation or a forbidden pattern is a hard conflict; something the belief
does not settle is a soft one. A schema, and advice whose things are not known here yet, can only be
held to what is so for every thing of its kind. A lesson warns of an action: where the procedure
demands that action, or the manual says that it can work, the two conflict, and where it is unknown
whether it can work they may. Rules always win: a losing memory is removed, and a warning on one
that stays says what to check first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from rpms.guard.policy import applicable_actions
from rpms.nodes.state import EpisodeState, settings_of
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
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.recall import NOTE, Recall, drop


class Conflict(NamedTuple):
    """A conflict between an entry's advice and a rule."""

    hard: bool
    rule: str
    reason: str


class Arbiter:
    """What the rules say at one moment, asked by every entry of it."""

    def __init__(self, now: DecisionPoint) -> None:
        self.now = now

    @cached_property
    def demanded(self) -> frozenset[str]:
        """The actions that the procedure has for the current sub-goal."""
        return frozenset(choice["action"] for choice in applicable_actions(self.now))


def arbitration(state: EpisodeState) -> EpisodeState:
    """Read the candidates, belief and goal; return them with conflicts removed or annotated."""
    context = settings_of(state)
    mode, manual = (
        context.arbitration,
        load_manual(state["env"], context.rules_dir, context.without_rules),
    )
    arbiter = Arbiter(
        DecisionPoint(
            manual,
            state["goal"],
            state["sub_goal"],
            state["belief"],
            state.get("ineffective", []),
        )
    )
    judged = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            conflict = find_conflict(recall, arbiter)
            if conflict is not None:
                recall = _settle(recall, conflict, mode)
        judged.append(recall)
    return EpisodeState(recalls=judged)


def _settle(recall: Recall, conflict: Conflict, mode: str) -> Recall:
    """Hard conflicts are removed where the mode removes, and warned about where it only warns.

    One bad step need not cost a whole text: a note is marked instead of removed.
    """
    hard = conflict.hard and "hard" in mode
    marked = hard and recall["entry"]["type"] == NOTE
    if hard and not marked:
        return drop(recall, "arbitration", conflict.reason, conflict.rule)
    if marked or "soft" in mode:
        return {**recall, "warning": conflict.reason, "rule": conflict.rule}
    return recall


def find_conflict(recall: Recall, arbiter: Arbiter) -> Conflict | None:
    """How an entry conflicts with the rules here and now; None when it does not."""
    kind, actions = recall["entry"]["type"], recall["advice"]["actions"]
    now = arbiter.now
    if kind == "schema" or (recall["advice"]["by_kind"] and kind == "success"):
        return next(kind_conflicts(actions, now.belief, now.goal, now.manual), None)
    if recall["advice"]["by_kind"]:
        return None
    if kind == "success":
        return snippet_conflict(recall, now)
    if kind in ("failure", "critical_failure"):
        return lesson_conflict(recall, arbiter)
    if kind == NOTE:
        return note_conflict(recall, now.belief, now.goal, now.manual)
    return None


def snippet_conflict(recall: Recall, now: DecisionPoint) -> Conflict | None:
    """The first hard conflict met when the advice is simulated, else a soft one in its first step.

    What later steps leave open will be seen on the way, and whether a walk leads anywhere is found
    out by walking: neither is worth a warning now. After an action that nothing is known of,
    nothing can be imagined.
    """
    actions, manual = recall["advice"]["actions"], now.manual
    imagined, doubt = now.belief, None
    for number, action in enumerate(actions):
        if conflict := goal_conflict(action, now.goal, manual, imagined):
            return conflict
        diagnosis = check_action(manual, action, imagined)
        if diagnosis.verdict == "no_such_action":
            return Conflict(True, "", f"'{action}' is not one of the available actions")
        if diagnosis.verdict == "fails":
            return Conflict(True, diagnosis.rule, f"'{action}' cannot work: {diagnosis.reason}")
        unsure = [parse_predicate(text) for text in diagnosis.unsure_predicates]
        matters = [str(predicate) for predicate in unsure if predicate.positive]
        if not number and matters:
            doubt = Conflict(False, diagnosis.rule, to_check(recall, manual, matters[0]))
        if not diagnosis.rule:
            break
        imagined = simulate(manual, action, imagined)
    return doubt


def to_check(recall: Recall, manual: Manual, condition: str) -> str:
    """What is in doubt about an entry's first action, in the names that the entry prints."""
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
    """A text conflicts with what it advises anywhere, not with what it leaves out.

    Forbidden for this goal, or impossible with that kind of thing: hard, whenever it would be done.
    What depends on the moment says little about a text for a whole task; only the first action of
    a text about this very home is held against now, and no more than warned about.
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
    """The actions that a rule forbids for this goal, or that things of that kind rule out."""
    known = {*belief["places"], *belief["last_seen"], *belief["holding"]}
    kinds = {kind_of(name) for name in known} | {goal["object"], goal["destination"]}
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
    """Whether a rule forbids an action for this goal, or it completes a step of other goals alone.

    Cooling is no step of heating: Tier 2 lists what a type of goal takes. Rules about the order of
    steps are asked where there is a belief.
    """
    if rule := forbidden_by(manual, action, goal, belief):
        return Conflict(True, rule, f"'{action}' is forbidden for this goal")
    matched = match_action(manual, action)
    if matched and manual.is_foreign(matched[0].name, goal["type"]):
        cited = _cited(manual, matched[0])
        return Conflict(True, cited, f"'{action}' is no step of {goal['type']}")
    return None


def lesson_conflict(recall: Recall, arbiter: Arbiter) -> Conflict | None:
    """A lesson warns of an action; where the rules say "do" or "can", the rules win.

    A lesson about an action that cannot work now, or that a rule forbids, agrees with the rules
    and stays. Whether one about an action of which that is unknown agrees is in doubt: the warning
    says what to check. What was possible then and fatal stays a warning unless the procedure, which
    knows this goal, demands it.
    """
    now, action = arbiter.now, recall["advice"]["actions"][0]
    manual, goal, step = now.manual, now.goal, now.sub_goal["name"]
    matched = match_action(manual, action)
    if matched is None or forbidden_by(manual, action, goal, now.belief):
        return None
    rule, names = matched
    serves = manual.demanded(step) == rule.name
    if action in arbiter.demanded or (serves and _about(names.values(), goal)):
        return Conflict(True, _cited(manual, rule), f"'{action}' is what {step} demands")
    if recall["entry"]["type"] == "critical_failure":
        if serves and any(name in now.sub_goal["target"] for name in names.values()):
            words = "check first whether this task asks for exactly that"
            return Conflict(False, _cited(manual, rule), words)
        return None
    possible = can_work(manual, action, now.belief)
    if possible:
        return Conflict(True, rule.id, f"by the manual '{action}' can work now")
    if possible is None:
        unsure = check_action(manual, action, now.belief).unsure_predicates
        return Conflict(False, rule.id, to_check(recall, manual, unsure[0])) if unsure else None
    return None


def _cited(manual: Manual, rule: ActionRule) -> str:
    """The id under which an action is taught; none where its rule is left out of the manual."""
    return rule.id if manual.knows(rule) else ""


def _about(names: Collection[str], goal: GoalSpec) -> bool:
    """Whether an action is about what the goal asks for."""
    return any(refers_to(name, goal["object"]) for name in names) or (
        bool(names) and all(refers_to(name, goal["destination"]) for name in names)
    )
