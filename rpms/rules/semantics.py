"""The semantics of one action by Tier 3: its feasibility, the reason, and its effects.

The diagnosis of rejected actions, the SCF's precondition check, the arbiter's simulation and the
audit against the real engine all use these functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

from rpms.rules.manual import Manual
from rpms.rules.predicates import (
    Predicate,
    StaticFacts,
    argument_names,
    evaluate,
    is_effect,
    is_evidence,
    may_hold,
    parse_predicate,
    scope_of,
)
from rpms.rules.scalars import Special
from rpms.rules.schema import ActionRule, Forbidden
from rpms.rules.terms import Term, parse_term
from rpms.rules.values import is_function, record_name, value_of
from rpms.rules.wording import contrary, need
from rpms.vocabulary.belief import Belief, copy_belief, kind_of
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import Truth, bare_name, is_a, refers_to

# Stands for "at some place": what ``here(object)`` needs of earlier actions.
_SOMEWHERE = ("at", "*")
# Stands for "something came into view": what ``visible(object)`` needs of them, unless the object
# is carried. Arriving, opening, switching on, taking, placing and changing may cause it.
_IN_VIEW = ("visible", "*")
_REVEALING = {"at", "open", "activated", "holding", "in", "changed"}

Feasibility = Literal["holds", "fails", "unknown", "no_such_action"]
# The name of a predicate and its arguments.
Fact = tuple[str, ...]


class Diagnosis(NamedTuple):
    """The preconditions of an action evaluated in a belief.

    Attributes:
        verdict: ``holds`` only if all hold; ``fails`` if one definitely does not.
        rule: id of the Tier-3 rule, empty when the text is no known action.
        violated: the definite failures as needs, with the actual names: ``you to be at desk 1``.
        unsure: needs that the belief does not decide.
        instead: for each violated need what holds instead; empty if that is unknown.
        violated_predicates: the same failures as written in the YAML.
        unsure_predicates: likewise for what is unsure.
    """

    verdict: Feasibility
    rule: str
    violated: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    violated_predicates: tuple[str, ...] = ()
    unsure_predicates: tuple[str, ...] = ()

    @property
    def checked(self) -> Diagnosis:
        """The diagnosis without evidence (``seen``), which only a policy needs."""
        rows = [*zip(self.violated, self.instead, self.violated_predicates, strict=True)]
        rows = [row for row in rows if parse_predicate(row[2]).name != "seen"]
        violated, instead, predicates = zip(*rows, strict=True) if rows else ((), (), ())
        return self._replace(violated=violated, instead=instead, violated_predicates=predicates)

    @property
    def reason(self) -> str:
        """Why the action cannot work: each unmet need, and what holds instead."""
        pairs = zip(self.violated, self.instead, strict=True)
        reasons = (f"it needs {lack}, and {so}" if so else f"it needs {lack}" for lack, so in pairs)
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
    if matched is None:
        return Diagnosis("no_such_action", "")
    rule, names = matched
    if not manual.knows(rule):
        return Diagnosis("unknown", "")
    return check_needs(manual, rule.id, rule.needs, names, belief)


def check_needs(
    manual: Manual,
    rule: str,
    needs: Sequence[Predicate],
    bindings: Mapping[str, Any],
    belief: Belief,
) -> Diagnosis:
    """Evaluate the needs of a rule; evidence counts as missing until an answer shows it."""
    violated: list[Predicate] = []
    unsure: list[Predicate] = []
    for each in needs:
        truth = evaluate(each, belief, manual.facts, bindings)
        if truth is False or (truth is None and is_evidence(each, manual.facts)):
            violated.append(each)
        elif truth is None:
            unsure.append(each)
    if not violated and not unsure:
        return Diagnosis("holds", rule)
    names = printable(bindings)
    return Diagnosis(
        "fails" if violated else "unknown",
        rule,
        tuple(need(each, names, manual.facts) for each in violated),
        tuple(need(each, names, manual.facts) for each in unsure),
        tuple(contrary(each, belief, manual.facts, bindings) for each in violated),
        tuple(map(str, violated)),
        tuple(map(str, unsure)),
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


def already_done(manual: Manual, action: str, belief: Belief) -> bool:
    """Return whether all effects of an action hold already, so that it can be omitted.

    A place without a door need not be opened.
    """
    matched = match_action(manual, action)
    if matched is None or not matched[0].effects or not manual.knows(matched[0]):
        return False
    rule, bindings = matched
    # A place without a door counts as open.
    lasting = [p._replace(name="accessible") if p.name == "open" else p for p in rule.outcomes]
    return all(evaluate(predicate, belief, manual.facts, bindings) for predicate in lasting)


def explain_rejection(manual: Manual, action: str, belief: Belief, answer: str = "") -> str:
    """Why an action was rejected, as a clause: an unmet need, else one that may be unmet.

    A need is worded as a need, and what holds instead as a fact. ``answer`` is the environment's
    own reason, which is used if no need is known to be unmet.
    """
    diagnosis = check_action(manual, action, belief)
    if diagnosis.checked.violated:
        return diagnosis.checked.reason
    if answer:
        return f"the answer was '{answer}'"
    if diagnosis.verdict == "no_such_action":
        return "it is not one of the available actions"
    matched = match_action(manual, action)
    if matched and matched[0].if_refused and manual.knows(matched[0]):
        return matched[0].if_refused.format(**matched[1])
    if diagnosis.unsure:
        return f"it needs {'; '.join(diagnosis.unsure)}, and whether that is so is not known"
    return "the reason is not known"


def blank_syntax(rule: ActionRule) -> str:
    """The syntax as people read it: ``take <object> from <place>``."""
    return rule.syntax.replace("{", "<").replace("}", ">")


def needed_actions(
    manual: Manual, actions: Sequence[str], goals: Collection[str] = ()
) -> list[str]:
    """The actions of a sequence that its last action depends on.

    Works backwards from the last action and keeps those whose effects a later kept action needs:
    the detours of a search drop out, the path to the object stays. Actions whose name is in
    ``goals``, and actions without a known rule, are always kept.
    """
    chosen: list[str] = []
    needed: set[Fact] = set()
    for action in reversed(actions):
        matched = match_action(manual, action)
        if matched is None:
            continue
        effects, needs = _facts(manual, action)
        unneeded = not effects & needed and matched[0].name not in goals
        if chosen and unneeded and manual.knows(matched[0]):
            continue
        chosen.append(action)
        needed -= effects
        needed |= needs
    return chosen[::-1]


@lru_cache(maxsize=65536)
def _facts(manual: Manual, action: str) -> tuple[frozenset[Fact], frozenset[Fact]]:
    """The effects and the needs of an action, as comparable facts."""
    matched = match_action(manual, action)
    if matched is None:
        return frozenset(), frozenset()
    rule, bindings = matched
    effects = {fact for outcome in rule.outcomes for fact in _ground(outcome.bind(bindings))}
    if any(name == "at" for name, *_ in effects):
        effects.add(_SOMEWHERE)
    if any(name in _REVEALING for name, *_ in effects):
        effects.add(_IN_VIEW)
    needs = (fact for need in rule.needs for fact in _ground(need.bind(bindings)))
    return frozenset(effects), frozenset(needs)


def _ground(predicate: Predicate) -> list[Fact]:
    """The facts that make a predicate true.

    Opening makes a place accessible; moving makes things visible.
    """
    if predicate.name == "here":
        return [_SOMEWHERE]
    if predicate.name == "visible":
        return [_IN_VIEW, ("holding", bare_name(predicate.arguments[0]))]
    name = "open" if predicate.name == "accessible" else predicate.name
    return [(name if predicate.positive else f"not {name}", *predicate.arguments)]


def simulate(manual: Manual, action: str, belief: Belief) -> Belief:
    """The belief after a successful action, by the action's effects alone.

    Effects do not say what comes into view, so it is unknown after one that may reveal something.
    """
    after = copy_belief(belief)
    simulate_in_place(manual, action, after)
    return after


def simulate_in_place(manual: Manual, action: str, belief: Belief) -> None:
    """``simulate`` in place: changes the belief."""
    matched = match_action(manual, action)
    if matched is None or not manual.knows(matched[0]):
        return
    rule, bindings = matched
    if any(outcome.name in _REVEALING for outcome in rule.outcomes):
        belief["visible"] = []
    for outcome in rule.outcomes:
        _apply(belief, outcome.bind(bindings), manual.facts)


def apply_effects(
    manual: Manual, effects: Iterable[Predicate], bindings: Mapping[str, Any], b: Belief
) -> None:
    """Apply effects to a belief; an effect on a list applies to each item."""
    for outcome in effects:
        if is_effect(outcome.name, "field"):
            _set_field(b, outcome, bindings, manual.facts)
            continue
        if outcome.name == "changed":
            _forget(b, parse_term(outcome.arguments[0]), bindings, manual.facts)
            continue
        names = [argument_names(bindings.get(argument, argument)) for argument in outcome.arguments]
        for arguments in product(*names):
            _apply(b, outcome._replace(arguments=arguments), manual.facts)


def _set_field(
    b: Belief, outcome: Predicate, bindings: Mapping[str, Any], facts: StaticFacts
) -> None:
    """Apply ``becomes(order.status, cancelled)`` to the record."""
    field, value = map(parse_term, outcome.arguments)
    new = value_of(value, scope_of(b, facts, bindings))
    for name in _record_names(b, field, bindings, facts):
        record = b["records"].get(name, {})
        if outcome.name == "begins" and field.path[-1] in record:
            continue
        owned = b["owned"].setdefault(name, [])
        if isinstance(new, Special):
            record.pop(field.path[-1], None)
        else:
            b["records"].setdefault(name, record)[field.path[-1]] = new
            owned += [field.path[-1]] if field.path[-1] not in owned else []


def _forget(b: Belief, thing: Term, bindings: Mapping[str, Any], facts: StaticFacts) -> None:
    """Apply ``changed(order)`` or ``changed(order.status)``: it is out of date."""
    for name in _record_names(b, thing, bindings, facts):
        owned = b["owned"].get(name, [])
        for field in [thing.path[0]] if thing.path else [*b["records"].get(name, ())]:
            b["records"].get(name, {}).pop(field, None)
            owned[:] = [each for each in owned if each != field]
        if not thing.path:
            b["records"].pop(name, None)


def _record_names(
    b: Belief, thing: Term, bindings: Mapping[str, Any], facts: StaticFacts
) -> list[str]:
    """The names of the records that an effect is about: of an argument, or of ``record(...)``."""
    if not is_function(thing):
        return argument_names(bindings.get(thing.head, thing.head))
    scope = scope_of(b, facts, bindings)
    parts = [value_of(inner, scope) for inner in thing.inner]
    return [record_name(parts)] if all(isinstance(part, str | int) for part in parts) else []


def _apply(belief: Belief, outcome: Predicate, facts: StaticFacts) -> None:
    positive, name, names = outcome
    if name == "at":
        if names[0] not in (belief["location"], *belief["reachable"]):
            belief["location"], belief["reachable"] = names[0], []
    elif name in ("open", "closed"):
        belief["containers"][names[0]] = "open" if name == "open" else "closed"
    elif name == "holding":
        if positive and names[0] not in belief["holding"]:
            belief["holding"].append(names[0])
        if positive:
            belief["last_seen"].pop(names[0], None)
        elif names[0] in belief["holding"]:
            belief["holding"].remove(names[0])
    elif name == "in":
        if positive:
            belief["last_seen"][names[0]] = names[1]
        elif belief["last_seen"].get(names[0]) == names[1]:
            del belief["last_seen"][names[0]]
        others = [place for place in belief["also_at"].pop(names[0], []) if place != names[1]]
        if others:
            belief["also_at"][names[0]] = others
    elif name == "state":
        _note(belief, names[0], names[1], positive, facts)
    elif name == "activated":
        belief["flags"][names[0]] = "activated" if positive else "deactivated"


def _note(belief: Belief, thing: str, state: str, holds: bool, facts: StaticFacts) -> None:
    """Record a state; it replaces its alternatives, or all states if none are listed."""
    recorded = [
        fact for fact in belief["flags"].pop(thing, "").split(", ") if fact not in ("", state)
    ]
    if holds:
        families = [family for family in facts.alternatives if state in family]
        others = set[str]().union(*families) if facts.alternatives else {*recorded}
        recorded = [*(fact for fact in recorded if fact not in others), state]
    if recorded:
        belief["flags"][thing] = ", ".join(recorded)


def forbidden_by(
    manual: Manual, action: str, goal: GoalSpec, belief: Belief | None = None
) -> str | None:
    """The id of the rule whose forbidden pattern the action matches under this goal.

    A pattern with conditions (``when``) is checked only if there is a belief.
    """
    return next((rule for rule, hit in forbidding_rules(manual, action, goal, belief) if hit), None)


def forbidding_rules(
    manual: Manual, action: str, goal: GoalSpec, belief: Belief | None = None
) -> Iterator[tuple[str, bool]]:
    """The rules that forbid such actions under this goal, each with whether it matches this one.

    A rule with several patterns is yielded once for each.
    """
    matched = match_action(manual, action)
    if matched is None:
        return
    rule, bindings = matched
    for pattern, hit in forbidden_patterns(manual, rule, bindings, goal, belief):
        yield pattern.id, hit


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
