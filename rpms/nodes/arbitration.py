"""Stage 5: rules-first arbitration of the surviving memories.

An entry's advice is played through in imagination, from the current belief and with Tier-3
effects. A definite violation or a forbidden pattern is a hard conflict; something the belief
does not settle is a soft one. A lesson that warns against the very action the procedure demands
now, although its preconditions hold, is a conflict too. Rules always win: memory is removed or
annotated, never a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langgraph.runtime import Runtime

from rpms.nodes.manual import manual_for
from rpms.nodes.state import EpisodeState
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
from rpms.rules.predicates import parse_predicate
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.recall import NOTE, Recall


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
    settled = recall.copy()
    hard = conflict.hard and "hard" in mode
    marked = hard and notes == "mark" and recall["entry"]["type"] == NOTE
    if hard and not marked:
        settled["dropped_by"] = "arbitration"
        settled["reason"] = conflict.reason
        settled["rule"] = conflict.rule
    elif marked or "soft" in mode:
        settled["warning"] = conflict.reason
        settled["rule"] = conflict.rule
    return settled


def find_conflict(
    recall: Recall,
    belief: Belief,
    goal: GoalSpec,
    sub_goal: SubGoal,
    manual: Manual,
) -> Conflict | None:
    """How an entry conflicts with the rules here and now; None when it does not."""
    kind, actions = recall["entry"]["type"], recall["advice"]["actions"]
    if kind == "success":
        return snippet_conflict(actions, belief, goal, manual)
    if kind in ("failure", "critical_failure"):
        return lesson_conflict(recall, belief, goal, sub_goal, manual)
    if kind == NOTE:
        return note_conflict(recall, belief, goal, manual)
    return None


def snippet_conflict(
    actions: Sequence[str], belief: Belief, goal: GoalSpec, manual: Manual
) -> Conflict | None:
    """The first hard conflict met when the advice is simulated, else a soft one in its first step.

    What later steps leave open will be seen on the way, and whether a walk leads anywhere is found
    out by walking: neither is worth a warning now. After an action that nothing is known of,
    nothing can be imagined.
    """
    imagined = belief
    soft: Conflict | None = None
    for number, action in enumerate(actions):
        rule = forbidden_by(manual, action, goal)
        if rule:
            return Conflict(True, rule, f"'{action}' is forbidden for this goal")
        diagnosis = check_action(manual, action, imagined)
        if diagnosis.verdict in ("fails", "no_such_action"):
            return Conflict(True, diagnosis.rule, f"'{action}' needs: {diagnosis.violated[0]}")
        unsure = zip(diagnosis.unsure_predicates, diagnosis.unsure, strict=True)
        matters = [words for text, words in unsure if parse_predicate(text).positive]
        if number == 0 and matters:
            soft = Conflict(False, diagnosis.rule, f"'{action}' needs: {matters[0]}")
        if not diagnosis.rule:
            break
        imagined = simulate(manual, action, imagined)
    return soft


def note_conflict(
    recall: Recall, belief: Belief, goal: GoalSpec, manual: Manual
) -> Conflict | None:
    """A text conflicts with what it advises anywhere, not with what it leaves out.

    Forbidden for this goal, or impossible with that kind of thing: hard, whenever it would be done.
    What depends on the moment says little about a text for a whole task; only the first action of
    a text about this very home is held against now, and no more than warned about.
    """
    actions = recall["advice"]["actions"]
    known = {*belief["places"], *belief["last_seen"], *belief["holding"]}
    kinds = {kind_of(name) for name in known} | {goal["object"], goal["destination"]}
    faults: list[tuple[str, str]] = []
    for action in dict.fromkeys(actions):
        if rule := forbidden_by(manual, action, goal):
            faults.append((rule, f"'{action}' is forbidden for this goal"))
            continue
        rule, words = never_works(manual, action, kinds)
        if rule:
            faults.append((rule, f"'{action}' needs: {words}"))
    if faults:
        return Conflict(True, faults[0][0], "; ".join(words for _, words in faults))
    if recall["entry"]["here"] and actions:
        diagnosis = check_action(manual, actions[0], belief)
        if diagnosis.verdict == "fails":
            words = diagnosis.violated[0]
            return Conflict(False, diagnosis.rule, f"'{actions[0]}' needs now: {words}")
    return None


def lesson_conflict(
    recall: Recall, belief: Belief, goal: GoalSpec, sub_goal: SubGoal, manual: Manual
) -> Conflict | None:
    """A lesson says "avoid"; where the rules say "do", the rules win.

    A lesson about an action that cannot work now, or that a rule forbids, agrees with the rules
    and stays as it is. The procedure demands an action only with the goal's own object.
    """
    action = recall["advice"]["actions"][0]
    matched = match_action(manual, action)
    if matched is None or not can_work(manual, action, belief):
        return None
    if forbidden_by(manual, action, goal):
        return None
    rule, names = matched
    serves = manual.demanded(sub_goal["name"]) == rule.name
    if serves and any(refers_to(name, goal["object"]) for name in names.values()):
        return Conflict(True, rule.id, f"'{action}' is what {sub_goal['name']} demands now")
    if recall["entry"]["type"] != "critical_failure":
        return Conflict(False, rule.id, f"'{action}' failed then, but its preconditions hold now")
    # It was possible then too, and fatal: only a task with another answer speaks for it now.
    if serves and any(name in sub_goal["target"] for name in names.values()):
        return Conflict(False, rule.id, f"'{action}' may be what {sub_goal['name']} demands now")
    return None
