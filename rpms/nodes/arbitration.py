"""Stage 5: rules-first arbitration of the memories that passed the filter.

    M_arb = { phi(m) | m in M_filt, phi(m) != none }

phi compares what an entry advises, as the prompt would print it, with the active rules:

- hard filter: advice that directly violates a rule is removed;
- soft annotation: advice that may conflict stays, with a warning that says what to check first.

A snippet is simulated from the current belief with the needs and effects of Tier 3. Its conflicts
are, in the order in which they are looked for:

- *forbidden*: a rule forbids a step for this goal;
- *foreign to this goal*: only goals of other types need a step (Tier 2);
- *impossible*: a step violates a precondition, or is no action;
- *cannot reach the goal*: the steps can be taken, and the sub-goal is where it was;
- *in doubt* (soft): the belief leaves a precondition open, such as a door that was not seen.

A schema, and advice with roles for names, is checked against what holds for every thing of its
kind. A lesson conflicts only if it is printed as an order (``AVOID``, ``Danger``): it is *against
the procedure* if the procedure demands that action now, and *in doubt* if the action can work now
by the rules, or may. A lesson that is printed as a need ("X needs Y") contradicts nothing.

The setting ``arbitration_extras``, off by default and under plan ``paper``, then drops two kinds of
entries that contradict no rule: *redundant* ones, lessons and schemas that say no more than a rule
which the same prompt prints, and those *contradicted by another memory*, warnings of an action that
another entry advises. With it D prints hardly any lesson, because a lesson's violated need is
usually the need of the printed rule that explained it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rpms.envs import Environment, get_environment
from rpms.guard.procedure import applicable_actions
from rpms.nodes.state import EpisodeState, decision_point, settings_of
from rpms.rules import (
    ActiveRules,
    Manual,
    already_done,
    can_work,
    check_action,
    forbidden_by,
    match_action,
    never_works,
    simulate,
)
from rpms.rules.conditions import DecisionPoint
from rpms.rules.predicates import is_predicate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.verdicts import Diagnosis
from rpms.rules.wording import statement
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.context import MemoryForm
from rpms.vocabulary.naming import refers_to
from rpms.vocabulary.recall import NOTE, ConflictKind, Recall, drop

# Literals that follow from others: a thing at the agent's place is here and in view; an agent that
# put its one thing down has an empty hand.
_FOLLOWS = ("here", "visible", "hand_empty", "holding")


class Conflict(NamedTuple):
    """What an entry's advice and a rule disagree about."""

    kind: ConflictKind
    rule: str
    reason: str

    @property
    def hard(self) -> bool:
        return self.kind != "in doubt"


def arbitration(state: EpisodeState) -> EpisodeState:
    """Read the candidates, belief, goal and rules; return the candidates, conflicts settled."""
    context = settings_of(state)
    arbiter = Arbiter(get_environment(state["env"]), decision_point(state), context.memory_form)
    recalls = []
    for recall in state["recalls"]:
        if not recall["dropped_by"] and (conflict := arbiter.find_conflict(recall)):
            recall = _resolve(recall, conflict, context.arbitration)
        recalls.append(recall)
    if context.arbitration_extras:
        recalls = settle(recalls, arbiter.point.manual, state["rules"], context.memory_form)
    return EpisodeState(recalls=recalls)


def _resolve(recall: Recall, conflict: Conflict, mode: str) -> Recall:
    """Drop the memory or add a warning, as the mode asks.

    A note gets a warning instead of being dropped: one bad step need not cost a whole text.
    """
    hard = conflict.hard and "hard" in mode
    marked = hard and recall["entry"]["type"] == NOTE
    if hard and not marked:
        recall = {**recall, "conflict": conflict.kind}
        return drop(recall, "arbitration", conflict.reason, conflict.rule)
    if marked or "soft" in mode:
        return {**recall, "conflict": conflict.kind, "warning": conflict.reason,
                "rule": conflict.rule}  # fmt: skip
    return recall


class Arbiter(NamedTuple):
    """The rules at one decision point, and the form in which memories are printed there."""

    env: Environment
    point: DecisionPoint
    form: MemoryForm

    def find_conflict(self, recall: Recall) -> Conflict | None:
        """Return the first conflict between an entry and the rules, or None."""
        kind, by_kind = recall["entry"]["type"], recall["advice"]["by_kind"]
        if kind == NOTE:
            return self.note_conflict(recall)
        if kind == "schema" or (kind == "success" and by_kind):
            return next(self.kind_conflicts(recall["advice"]["actions"]), None)
        if kind == "success":
            return self.snippet_conflict(recall["advice"]["actions"])
        # A lesson is printed as a warning of its action, or as a need, which contradicts nothing.
        is_warning = self.form == "recorded" or not recall["advice"]["needs"]
        if kind == "critical_failure" or (kind == "failure" and is_warning):
            return None if by_kind else self.lesson_conflict(recall)
        return None

    def snippet_conflict(self, actions: Iterable[str]) -> Conflict | None:
        """Simulate the steps; return their first hard conflict, else the first doubt.

        A step whose effects hold when its turn comes is needless, and no conflict. Negated open
        preconditions (not to be at a place already) are no doubt: trying settles them at no cost.
        The simulation stops at an action that the manual does not describe.
        """
        point, manual = self.point, self.point.manual
        imagined, doubt, last = point.belief, None, ""
        for action in actions:
            if conflict := self.goal_conflict(action, imagined):
                return conflict
            if already_done(manual, action, imagined):
                continue
            if match_action(manual, action) is None:
                reason = f"'{action}' is not one of the available actions"
                return Conflict("impossible", "", reason)
            diagnosis = check_action(manual, action, imagined)
            if diagnosis.verdict == "broken":
                reason = f"'{action}' cannot work: {diagnosis.reason}"
                return Conflict("impossible", diagnosis.rule, reason)
            if not diagnosis.rule:
                return doubt
            doubt = doubt or _doubt(manual, action, diagnosis)
            imagined, last = simulate(manual, action, imagined), action
        return self._unreached(last, imagined) or doubt

    def _unreached(self, last: str, after: Belief) -> Conflict | None:
        """Return a conflict if the last step should complete a sub-goal, and the goal is no nearer.

        Only advice in the names of this scene claims to, and only where the environment can tell
        from the belief whether a goal is reached.
        """
        goal, manual = self.point.goal, self.point.manual
        if self.form != "grounded":
            return None
        rule, _ = match_action(manual, last) or (None, {})
        if (
            rule is None
            or rule.name not in manual.completing
            or self.env.solved(goal, after) is not False
        ):
            return None
        step, reached = self.point.sub_goal, self.env.sub_goal(goal, after, [])
        if reached["name"] != step["name"] or reached["progress"] > step["progress"]:
            return None
        reason = f"'{last}' leaves the sub-goal {step['name']} where it is"
        return Conflict("cannot reach the goal", _cited(manual, rule), reason)

    def kind_conflicts(self, actions: Iterable[str]) -> Iterator[Conflict]:
        """Yield a conflict for each action that a rule forbids for this goal or for that kind."""
        belief, goal = self.point.belief, self.point.goal
        names = {*belief["places"], *belief["last_seen"], *belief["holding"]}
        kinds = {kind_of(name) for name in names} | {goal["object"], goal["destination"]}
        for action in actions:
            if conflict := self.goal_conflict(action):
                yield conflict
                continue
            rule, words = never_works(self.point.manual, action, kinds)
            if rule:
                yield Conflict("impossible", rule, f"'{action}' cannot work: it needs {words}")

    def goal_conflict(self, action: str, belief: Belief | None = None) -> Conflict | None:
        """Return a conflict if a rule forbids the action for this goal, or only others need it.

        Cooling is no step of heating: Tier 2 lists the steps of each goal type. Looking and waiting
        change nothing and are foreign to no goal. Rules about the order of steps are only checked
        when a belief is given.
        """
        goal, manual = self.point.goal, self.point.manual
        if rule := forbidden_by(manual, action, goal, belief):
            return Conflict("forbidden", rule, f"'{action}' is forbidden for this goal")
        matched = match_action(manual, action)
        harmless = matched and matched[0].repeatable and not matched[0].effects
        if matched and not harmless and manual.is_foreign(matched[0].name, goal["type"]):
            reason = f"'{action}' is no step of {goal['type']}"
            return Conflict("foreign to this goal", _cited(manual, matched[0]), reason)
        return None

    def lesson_conflict(self, recall: Recall) -> Conflict | None:
        """Return a conflict if a lesson warns of an action that the rules demand or allow.

        A lesson about an action that cannot work now, or that a rule forbids, agrees with the
        rules. A fatal action is only a conflict when the procedure demands it: that it can work is
        no argument for it.
        """
        action, manual, goal = recall["advice"]["actions"][0], self.point.manual, self.point.goal
        matched = match_action(manual, action)
        if matched is None or forbidden_by(manual, action, goal, self.point.belief):
            return None
        (rule, names), step = matched, self.point.sub_goal
        advances = manual.demanded(step["name"]) == rule.name
        demanded = {choice["action"] for choice in applicable_actions(self.point)}
        kinds = {kind_of(name) for name in names.values()}
        if never_works(manual, action, kinds)[0]:
            return None
        concerns_goal = any(refers_to(name, goal["object"]) for name in names.values()) or (
            bool(names) and all(refers_to(name, goal["destination"]) for name in names.values())
        )
        if action in demanded or (advances and concerns_goal):
            reason = f"the sub-goal {step['name']} needs '{action}'"
            return Conflict("against the procedure", _cited(manual, rule), reason)
        if recall["entry"]["type"] == "critical_failure":
            if advances and any(name in step["target"] for name in names.values()):
                words = "check first whether this task asks for exactly that"
                return Conflict("in doubt", _cited(manual, rule), words)
            return None
        if not rule.printed:  # no line of the prompt says when it works
            return None
        possible = can_work(manual, action, self.point.belief)
        if possible:
            return Conflict("in doubt", rule.id, f"by the rules '{action}' can work now")
        if possible is None:
            return _doubt(manual, action, check_action(manual, action, self.point.belief))
        return None

    def note_conflict(self, recall: Recall) -> Conflict | None:
        """Find the actions in a note that conflict with the rules.

        Actions that are forbidden for this goal, or impossible with things of that kind, are a hard
        conflict wherever they stand in the text. The current state says little about a text for a
        whole task, so only the first action of a note about this same scene is checked against it;
        that conflict is soft.
        """
        actions = recall["advice"]["actions"]
        if faults := list(self.kind_conflicts(dict.fromkeys(actions))):
            return faults[0]._replace(reason="; ".join(fault.reason for fault in faults))
        if recall["entry"]["here"] and actions:
            diagnosis = check_action(self.point.manual, actions[0], self.point.belief)
            if diagnosis.verdict == "broken":
                words = f"'{actions[0]}' cannot work yet: {diagnosis.reason}"
                return Conflict("in doubt", diagnosis.rule, words)
        return None


def _doubt(manual: Manual, action: str, diagnosis: Diagnosis) -> Conflict | None:
    """Return what the belief leaves open about an action, as a thing to check."""
    unsure = (need.condition for need in diagnosis.unsure)
    doubtful = next((condition for condition in unsure if condition.positive), None)
    matched = match_action(manual, action)
    if doubtful is None or matched is None:
        return None
    words = statement(doubtful, matched[1], manual.facts)
    return Conflict("in doubt", diagnosis.rule, f"check first that {words}; that is not known yet")


def _cited(manual: Manual, rule: ActionRule) -> str:
    """Return the rule's id, or "" if the rule is left out of the manual."""
    return rule.id if manual.knows(rule) else ""


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
