"""Stage 5: rules-first arbitration of the surviving memories.

An entry's advice is played through in imagination, from the current belief and with Tier-3
effects. A definite violation or a forbidden pattern is a hard conflict; something the belief
does not settle is a soft one. A schema, and advice whose things are not known here yet, can only be
held to what is so for every thing of its kind. A lesson that warns against the very action the
procedure demands now, although its preconditions hold, is a conflict too. Rules always win: memory
is removed or annotated, never a rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from langgraph.runtime import Runtime

from rpms.nodes.manual import manual_for
from rpms.nodes.state import EpisodeState
from rpms.rules import (
    Manual,
    already_done,
    can_work,
    check_action,
    forbidden_by,
    match_action,
    refers_to,
    simulate,
)
from rpms.rules.actions_in_text import never_works
from rpms.rules.predicates import parse_predicate
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.recall import NOTE, Recall, drop


class Conflict(NamedTuple):
    """A conflict between an entry's advice and a rule."""

    hard: bool
    rule: str
    reason: str


def arbitration(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
    """Read the candidates, belief and goal; return them with conflicts removed or annotated."""
    context = settings(runtime.context)
    mode, manual = context.arbitration, manual_for(state["env"], context)
    judged = []
    for recall in state["recalls"]:
        if not recall["dropped_by"]:
            conflict = find_conflict(
                recall, state["belief"], state["goal"], state["sub_goal"], manual
            )
            if conflict is not None:
                recall = _settle(recall, conflict, mode, context.note_conflicts)
        judged.append(recall)
    return EpisodeState(recalls=judged)


def _settle(recall: Recall, conflict: Conflict, mode: str, notes: str) -> Recall:
    """Hard conflicts are removed where the mode removes, and warned about where it only warns.

    One bad step need not cost a whole text: where notes are marked, it is warned about instead.
    """
    hard = conflict.hard and "hard" in mode
    marked = hard and notes == "mark" and recall["entry"]["type"] == NOTE
    if hard and not marked:
        return drop(recall, "arbitration", conflict.reason, conflict.rule)
    if marked or "soft" in mode:
        return {**recall, "warning": conflict.reason, "rule": conflict.rule}
    return recall


def find_conflict(
    recall: Recall, belief: Belief, goal: GoalSpec, sub_goal: SubGoal, manual: Manual
) -> Conflict | None:
    """How an entry conflicts with the rules here and now; None when it does not."""
    kind, actions = recall["entry"]["type"], recall["advice"]["actions"]
    if kind == "schema" or (recall["advice"]["by_kind"] and kind == "success"):
        return next(kind_conflicts(actions, belief, goal, manual), None)
    if recall["advice"]["by_kind"]:
        return None
    if kind == "success":
        return snippet_conflict(actions, belief, goal, sub_goal, manual)
    if kind in ("failure", "critical_failure"):
        return lesson_conflict(recall, belief, goal, sub_goal, manual)
    if kind == NOTE:
        return note_conflict(recall, belief, goal, manual)
    return None


def snippet_conflict(
    actions: Sequence[str], belief: Belief, goal: GoalSpec, sub_goal: SubGoal, manual: Manual
) -> Conflict | None:
    """The first hard conflict met when the advice is simulated, else a soft one in its first step.

    A step that is done already is passed over, with a warning; one that lies behind has a warning
    too. What later steps leave open will be seen on the way, and whether a walk leads anywhere is
    found out by walking: neither is worth a warning now. After an action that nothing is known of,
    nothing can be imagined.
    """
    imagined = belief
    doubts: list[Conflict] = []
    behind, _ = manual.around(goal["type"], sub_goal["name"])
    first = True
    for action in actions:
        if conflict := goal_conflict(action, goal, manual):
            return conflict
        diagnosis = check_action(manual, action, imagined)
        needless = Conflict(False, diagnosis.rule, f"'{action}' is not needed now")
        if already_done(manual, action, imagined):
            doubts.append(needless)
            continue
        if diagnosis.verdict in ("fails", "no_such_action"):
            return Conflict(True, diagnosis.rule, f"'{action}' needs: {diagnosis.violated[0]}")
        matched = match_action(manual, action)
        if matched and matched[0].name in behind:
            doubts.append(needless)
        unsure = zip(diagnosis.unsure_predicates, diagnosis.unsure, strict=True)
        matters = [words for text, words in unsure if parse_predicate(text).positive]
        if first and matters:
            doubts.append(Conflict(False, diagnosis.rule, f"'{action}' needs: {matters[0]}"))
        first = False
        if not diagnosis.rule:
            break
        imagined = simulate(manual, action, imagined)
    return doubts[0] if doubts else None


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
            words = diagnosis.violated[0]
            return Conflict(False, diagnosis.rule, f"'{actions[0]}' needs now: {words}")
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
            yield Conflict(True, rule, f"'{action}' needs: {words}")


def goal_conflict(action: str, goal: GoalSpec, manual: Manual) -> Conflict | None:
    """Whether a rule forbids an action for this goal, or it completes a step of other goals alone.

    Cooling is no step of heating: Tier 2 lists what a type of goal takes.
    """
    if rule := forbidden_by(manual, action, goal):
        return Conflict(True, rule, f"'{action}' is forbidden for this goal")
    matched = match_action(manual, action)
    if matched and manual.is_foreign(matched[0].name, goal["type"]):
        return Conflict(True, matched[0].id, f"'{action}' is no step of {goal['type']}")
    return None


def lesson_conflict(
    recall: Recall, belief: Belief, goal: GoalSpec, sub_goal: SubGoal, manual: Manual
) -> Conflict | None:
    """A lesson says "avoid"; where the rules say "do", the rules win.

    A lesson about an action that cannot work now, or that a rule forbids, agrees with the rules
    and stays as it is; one that gives no reason against what is demanded comes with a warning. The
    procedure demands an action only with the goal's own object, or with its destination alone.
    """
    action = recall["advice"]["actions"][0]
    matched = match_action(manual, action)
    if matched is None or forbidden_by(manual, action, goal):
        return None
    rule, names = matched
    serves = manual.demanded(sub_goal["name"]) == rule.name
    demanded = serves and _about(names.values(), goal)
    if not can_work(manual, action, belief):
        unexplained = recall["entry"]["type"] == "failure" and not recall["entry"].get("violated")
        if not (demanded and unexplained):
            return None
        words = f"{sub_goal['name']} demands '{action}' as soon as its preconditions hold"
        return Conflict(False, rule.id, words)
    if demanded:
        return Conflict(True, rule.id, f"'{action}' is what {sub_goal['name']} demands now")
    if recall["entry"]["type"] != "critical_failure":
        return Conflict(False, rule.id, f"'{action}' failed then, but its preconditions hold now")
    # It was possible then too, and fatal: only a task with another answer speaks for it now.
    if serves and any(name in sub_goal["target"] for name in names.values()):
        return Conflict(False, rule.id, f"'{action}' may be what {sub_goal['name']} demands now")
    return None


def _about(names: Collection[str], goal: GoalSpec) -> bool:
    """Whether an action is about what the goal asks for."""
    return any(refers_to(name, goal["object"]) for name in names) or (
        bool(names) and all(refers_to(name, goal["destination"]) for name in names)
    )
