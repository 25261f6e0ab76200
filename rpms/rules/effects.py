"""What an action changes, by the effects of its Tier-3 rule.

Arbitration simulates memories by it, learning drops the detours of an episode, and the guard
carries out calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from rpms.rules.manual import Manual
from rpms.rules.predicates import (
    Predicate,
    StaticFacts,
    argument_names,
    evaluate,
    is_effect,
    scope_of,
)
from rpms.rules.scalars import Special
from rpms.rules.terms import Term, parse_term
from rpms.rules.values import is_function, record_name, value_of
from rpms.rules.verdicts import match_action
from rpms.vocabulary.belief import Belief, copy_belief
from rpms.vocabulary.naming import bare_name

# Stands for "at some place": what ``here(object)`` needs of earlier actions.
_SOMEWHERE = ("at", "*")
# Stands for "something came into view": what ``visible(object)`` needs of them, unless the object
# is carried. Arriving, opening, switching on, taking, placing and changing may cause it.
_IN_VIEW = ("visible", "*")
_REVEALING = {"at", "open", "activated", "holding", "in", "changed"}

# The name of a predicate and its arguments.
Fact = tuple[str, ...]


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
