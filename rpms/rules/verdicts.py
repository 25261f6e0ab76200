"""May this action be taken? This page answers it by the manual, in this order.

1. Is it an action of the manual? ``match_action`` finds its Tier-3 rule and the names in it.
2. ``check_action`` evaluates the preconditions of that rule in the belief.
3. ``forbidden_patterns`` are those that forbid such actions under the goal.

Every rule is *kept*, *broken* or *open*: open if the belief does not decide, or if the manual has
no rule about it. Rules without a machine-readable part (most of Tiers 1 and 2) judge nothing.
``verdicts_on`` has the verdict of every rule, in every condition, so that a baseline that was shown
no rule can be compared.

``violations`` lists the rules that are not kept, the demands of a policy among them. The guard
decides by them what to do: ``guard.procedure`` about an action of the graph, with the principles on
repetition, and ``guard.decision`` about a tool call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from rpms.rules.manual import Manual
from rpms.rules.predicates import (
    Predicate,
    argument_names,
    evaluate,
    is_evidence,
    is_undecided,
    may_hold,
    parse_predicate,
)
from rpms.rules.scalars import Special
from rpms.rules.schema import ActionRule, EnforcedRule, Forbidden, OnViolation
from rpms.rules.wording import contrary, need
from rpms.vocabulary.belief import Belief, empty_belief, kind_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import Truth, bare_name, is_a, refers_to

Verdict = Literal["kept", "broken", "open"]
OF_KINDS = {"kind", "can_contain"}
"""Preconditions that depend on the kinds of things alone, as affordances do."""
KNOWN_ACTION = "known action"
"""Stands for the list of actions in the system prompt, which every condition is shown."""


class Need(NamedTuple):
    """A precondition that does not hold, or is not known to.

    Attributes:
        condition: as it stands in the YAML.
        words: with the actual names: ``you to be at desk 1``.
        instead: what holds instead; empty if that is unknown.
    """

    condition: Predicate
    words: str
    instead: str = ""


class Diagnosis(NamedTuple):
    """The preconditions of an action evaluated in a belief.

    Attributes:
        verdict: ``kept`` only if all hold; ``broken`` if one definitely does not.
        rule: id of the Tier-3 rule; empty if the text is no action, or its rule is left out.
        unmet: the needs that definitely do not hold.
        unsure: those that the belief does not decide.
    """

    verdict: Verdict
    rule: str
    unmet: tuple[Need, ...] = ()
    unsure: tuple[Need, ...] = ()

    @property
    def checked(self) -> Diagnosis:
        """The diagnosis without evidence (``seen``), which only a policy needs."""
        return self._replace(unmet=tuple(n for n in self.unmet if n.condition.name != "seen"))

    @property
    def reason(self) -> str:
        """Why the action cannot work: each unmet need, and what holds instead."""
        reasons = (
            f"it needs {each.words}{f', and {each.instead}' if each.instead else ''}"
            for each in self.unmet
        )
        return "; ".join(dict.fromkeys(reasons))


@lru_cache(maxsize=65536)
def match_action(manual: Manual, action: str) -> tuple[ActionRule, Mapping[str, str]] | None:
    """The Tier-3 rule of an action text, with the values of its parameters."""
    for rule in manual.actions:
        if names := rule.pattern.match(action):
            return rule, names.groupdict()
    return None


def check_action(manual: Manual, action: str, belief: Belief) -> Diagnosis:
    """Evaluate every precondition of an action against the belief."""
    matched = match_action(manual, action)
    if matched is None or not manual.knows(matched[0]):
        return Diagnosis("open", "")
    rule, names = matched
    return check_needs(manual, rule.id, rule.needs, names, belief)


def check_needs(
    manual: Manual,
    rule: str,
    needs: Sequence[Predicate],
    bindings: Mapping[str, Any],
    belief: Belief,
) -> Diagnosis:
    """Evaluate the needs of a rule; evidence counts as missing until an answer shows it."""
    unmet: list[Predicate] = []
    unsure: list[Predicate] = []
    for each in needs:
        truth = evaluate(each, belief, manual.facts, bindings)
        if truth is False or (truth is None and is_evidence(each, manual.facts)):
            unmet.append(each)
        elif truth is None:
            unsure.append(each)
    if not unmet and not unsure:
        return Diagnosis("kept", rule)
    names, facts = printable(bindings), manual.facts
    return Diagnosis(
        "broken" if unmet else "open",
        rule,
        tuple(
            Need(each, need(each, names, facts), contrary(each, belief, facts, bindings))
            for each in unmet
        ),
        tuple(Need(each, need(each, names, facts)) for each in unsure),
    )


def printable(bindings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call as words; a missing one becomes a blank."""
    words: dict[str, Any] = {}
    for parameter, value in bindings.items():
        names = argument_names(value)
        words[parameter] = ", ".join(names) if names else value
        if isinstance(value, Special):
            words[parameter] = f"<{parameter}>"
    return words


def can_work(manual: Manual, action: str, belief: Belief) -> Truth:
    """Return whether all preconditions hold; None if that is undecided."""
    matched = match_action(manual, action)
    if matched is None:
        return False
    rule, names = matched
    if not manual.knows(rule):
        return None
    truths = [evaluate(need, belief, manual.facts, names) for need in rule.needs]
    return False if False in truths else None if None in truths else True


def never_works(manual: Manual, action: str, kinds: Collection[str]) -> tuple[str, str]:
    """The rule and the need by which an action can never work; empty if it may work.

    Judged by the kinds of its names, and only if all of them are in ``kinds``.
    """
    matched = match_action(manual, action)
    if matched is None or not all(kind_of(name) in kinds for name in matched[1].values()):
        return "", ""
    rule, names = matched
    for each in rule.needs:
        static = each.name in OF_KINDS or each.name in manual.facts.affordances
        if static and evaluate(each, empty_belief(), manual.facts, names) is False:
            return rule.id, need(each, names, manual.facts)
    return "", ""


def explain_rejection(manual: Manual, action: str, belief: Belief, answer: str = "") -> str:
    """Why an action was rejected, as a clause: an unmet need, else one that may be unmet.

    A need is worded as a need, and what holds instead as a fact. ``answer`` is the environment's
    own reason, which is used if no need is known to be unmet.
    """
    diagnosis = check_action(manual, action, belief)
    if reason := diagnosis.checked.reason:
        return reason
    if answer:
        return f"the answer was '{answer}'"
    matched = match_action(manual, action)
    if matched is None:
        return "it is not one of the available actions"
    if matched[0].if_refused and manual.knows(matched[0]):
        return matched[0].if_refused.format(**matched[1])
    if diagnosis.unsure:
        needs = "; ".join(each.words for each in diagnosis.unsure)
        return f"it needs {needs}, and whether that is so is not known"
    return "the reason is not known"


def forbidden_by(
    manual: Manual, action: str, goal: GoalSpec, belief: Belief | None = None
) -> str | None:
    """The id of the rule whose forbidden pattern the action matches under this goal.

    A pattern with conditions (``when``) is checked only if there is a belief.
    """
    matched = match_action(manual, action)
    if matched is None:
        return None
    patterns = forbidden_patterns(manual, *matched, goal, belief)
    return next((pattern.id for pattern, hit in patterns if hit), None)


def forbidden_patterns(
    manual: Manual,
    rule: ActionRule,
    bindings: Mapping[str, Any],
    goal: GoalSpec,
    belief: Belief | None = None,
) -> Iterator[tuple[Forbidden, bool]]:
    """The forbidden patterns for a matched action, each with whether it matches."""
    for pattern in manual.forbidden:
        if pattern.action != rule.name or not {"all", goal["type"]} & {*pattern.goal_types}:
            continue
        if pattern.about and not manual.categories_of(goal["object"]) & set(pattern.about):
            continue
        if pattern.when and belief is None:
            continue
        fits = all(
            any(_fits(manual, pattern, parameter, name, goal)
                for name in argument_names(bindings.get(parameter, "")) or [""])
            for parameter in pattern.where
        )  # fmt: skip
        yield (
            pattern,
            fits
            and all(
                belief is not None and _binds(manual, parse_predicate(text), belief, bindings)
                for text in pattern.when
            ),
        )


def _binds(
    manual: Manual, condition: Predicate, belief: Belief, bindings: Mapping[str, Any]
) -> bool:
    """Return whether a rule under this condition applies; over values also where it may hold."""
    if is_evidence(condition, manual.facts) and condition.name != "seen":
        return may_hold(condition, belief, manual.facts, bindings)
    return evaluate(condition, belief, manual.facts, bindings) is True


def _fits(manual: Manual, pattern: Forbidden, parameter: str, name: str, goal: GoalSpec) -> bool:
    """Return whether the name of a parameter matches the pattern."""
    kind = pattern.where[parameter]
    if is_a(name, frozenset(pattern.unless)):
        return False
    if kind == "$destination":
        return kind_of(name) == goal["destination"]
    if kind == "!$object":
        return bool(goal["object"]) and not refers_to(name, goal["object"])
    if kind in manual.facts.affordances:
        is_goal_name = bare_name(name) in (goal["object"], goal["destination"])
        return not is_goal_name and is_a(name, manual.facts.affordances[kind]) is True
    kind = goal["object"] if kind == "$object" else kind
    return kind_of(name) == kind != goal["destination"]


class Violation(NamedTuple):
    """A rule that says no to an action or a call.

    Attributes:
        rule: its id.
        reason: why, as a clause about "it".
        unmet: its unmet conditions.
        state: the rule is ``broken``, or ``open`` if nothing known decides it.
        on_violation: what the rule asks for.
    """

    rule: str
    reason: str
    unmet: tuple[Predicate, ...] = ()
    state: Literal["broken", "open"] = "broken"
    on_violation: OnViolation = "refuse"


def violations(
    manual: Manual,
    rule: ActionRule,
    bindings: Mapping[str, Any],
    belief: Belief,
    goal: GoalSpec | None,
) -> Iterator[Violation]:
    """Every rule that an action or a call violates in this belief."""
    facts = manual.facts
    if manual.knows(rule):
        yield from _unmet(manual, rule, rule.needs, bindings, belief)
    for demand in manual.policy.get(rule.name, ()):
        if all(may_hold(each, belief, facts, bindings) for each in demand.conditions):
            text = demand.text.rstrip(".")
            for found in _unmet(manual, demand, demand.demands, bindings, belief):
                yield found._replace(reason=f"{found.reason} ({text})") if text else found
    if goal is not None:
        for pattern, hit in forbidden_patterns(manual, rule, bindings, goal, belief):
            if hit and pattern.id not in manual.without:
                yield Violation(
                    pattern.id, "a rule forbids it for this goal", on_violation=pattern.on_violation
                )


def _unmet(
    manual: Manual,
    rule: EnforcedRule,
    needs: Sequence[Predicate],
    bindings: Mapping[str, Any],
    belief: Belief,
) -> Iterator[Violation]:
    diagnosis = check_needs(manual, rule.id, needs, bindings, belief)
    if unmet := tuple(each.condition for each in diagnosis.unmet):
        is_open = all(
            is_undecided(each, belief, manual.facts, bindings)
            and not _is_made_by_call(manual, each)
            for each in unmet
        )
        state: Literal["broken", "open"] = "open" if is_open else "broken"
        yield Violation(rule.id, diagnosis.reason, unmet, state, rule.on_violation)


def _is_made_by_call(manual: Manual, need: Predicate) -> bool:
    """Return whether the need is the effect of a call that was not made, as a verification."""
    return need.name == "seen" and need.positive and need.arguments[1] in manual.brought_about


def verdicts_on(
    manual: Manual, proposal: str, belief: Belief, goal: GoalSpec
) -> dict[str, Verdict]:
    """The verdict of every rule that concerns a proposed action."""
    if not proposal:
        return {}
    if belief["disambiguation"]:
        # The environment waits for the number of a choice; every other action breaks its rule.
        is_choice = proposal in belief["disambiguation"]
        rule = manual.environment.disambiguation.rule
        found: dict[str, Verdict] = {rule: "kept" if is_choice else "broken"} if rule else {}
        if is_choice:
            return {KNOWN_ACTION: "kept", **found}
        return {**found, **verdicts_on(manual, proposal, {**belief, "disambiguation": {}}, goal)}
    matched = match_action(manual, proposal)
    if matched is None:
        return {KNOWN_ACTION: "broken"}
    diagnosis = check_action(manual, proposal, belief)
    found = {KNOWN_ACTION: "kept", diagnosis.rule: diagnosis.verdict}
    for pattern, hit in forbidden_patterns(manual, *matched, goal):
        if hit or pattern.id not in found:
            found[pattern.id] = "broken" if hit else "kept"
    return found
