"""Finds the look-ups that would show what a refused call lacks: ``get_order(order_id='O1')``.

A condition that nothing decides reads a field that no answer has shown. The field belongs to the
record of a thing, so a tool whose arguments name that thing, and whose answer shows the field, is
the look-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rpms.rules.manual import Manual
from rpms.rules.predicates import (
    CONDITIONS,
    Predicate,
    choices_of,
    evaluate,
    inner_bindings,
    is_effect,
    parse_predicate,
    reads_values,
    scope_of,
)
from rpms.rules.scalars import UNKNOWN, Special
from rpms.rules.schema import ActionRule
from rpms.rules.terms import ANSWER, ITEM, Term, parse_term
from rpms.rules.values import FUNCTIONS, Scope, is_function, items_of, value_of
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.calls import Call

Kinds = Mapping[str, str]
"""What the items of a list are: ``item`` of ``user.orders`` is an ``orders``."""


class MissingField(NamedTuple):
    """A field that no answer has shown, and the values that name its record, by their kind."""

    names: Mapping[str, Any]
    field: str


class Blank(str):
    """A value that is not known; printed without quotation marks: ``code=<code>``."""

    def __repr__(self) -> str:
        return str(self)


def look_up_choices(
    manual: Manual, bindings: Mapping[str, Any], lacking: Sequence[Predicate], belief: Belief
) -> Iterator[list[Call]]:
    """For each field that is missing the calls that would show it."""
    for need in lacking:
        for missing in _missing(manual, need, belief, bindings, {}):
            if calls := [*_showing(manual, missing, belief)]:
                yield sorted(calls, key=has_blanks)


def was_made(manual: Manual, call: Call, belief: Belief) -> str:
    """How a look-up was answered since something last changed; empty if it was not made."""
    for past in reversed(belief["calls"]):
        rule = manual.by_name.get(past["tool"])
        if (past["tool"], past["arguments"]) == (call.tool, dict(call.arguments)):
            return "answered with an error" if past.get("failed") else "answered without it"
        if rule is not None and rule.changes and not past.get("failed"):
            return ""
    return ""


def has_blanks(call: Call) -> bool:
    """Return whether an argument of the call is still to be filled in."""
    return any(isinstance(value, Blank) for value in call.arguments.values())


def _missing(
    manual: Manual, need: Predicate, belief: Belief, bindings: Mapping[str, Any], kinds: Kinds
) -> Iterator[MissingField]:
    """The fields that a condition reads and that no answer has shown."""
    facts = manual.facts
    if need.name in facts.predicates:
        yield from _missing_in_choices(manual, need, belief, bindings, kinds)
    elif reads_values(need.name):
        scope = scope_of(belief, facts, bindings)
        terms = [*map(parse_term, need.arguments)]
        if CONDITIONS[need.name].quantifies:
            yield from _missing_in_items(manual, terms, scope, kinds)
        else:
            for term in terms:
                yield from _missing_in_term(manual, term, scope, kinds)


def _missing_in_choices(
    manual: Manual, need: Predicate, belief: Belief, bindings: Mapping[str, Any], kinds: Kinds
) -> Iterator[MissingField]:
    facts = manual.facts
    inner = inner_bindings(need, belief, facts, bindings)
    if isinstance(inner, Special):
        term = parse_term(need.arguments[0])
        yield from _missing_in_term(manual, term, scope_of(belief, facts, bindings), kinds)
        return
    inner_kinds = {**kinds, "thing": _kind(parse_term(need.arguments[0]), kinds)} if (
        need.arguments) else kinds  # fmt: skip
    for choice in choices_of(need, facts):
        truths = {part: evaluate(part, belief, facts, inner) for part in choice}
        if False not in truths.values():  # else no answer can complete this choice
            for part in (part for part, truth in truths.items() if truth is None):
                yield from _missing(manual, part, belief, inner, inner_kinds)


def _missing_in_items(
    manual: Manual, terms: Sequence[Term], scope: Scope, kinds: Kinds
) -> Iterator[MissingField]:
    """Of a list with conditions on each item: the list itself, else what the conditions read."""
    listed, *conditions = terms
    items = items_of(listed, scope)
    if isinstance(items, Special):
        yield from _missing_in_term(manual, listed, scope, kinds)
        return
    for item in items:
        inner = scope.of_item(item)
        for condition in conditions:
            if scope.holds(condition.text, inner.bindings) is None:
                need = parse_predicate(condition.text)
                of_item = {**kinds, ITEM: _kind(listed, kinds)}
                yield from _missing(manual, need, scope.belief, inner.bindings, of_item)


def _missing_in_term(
    manual: Manual, term: Term, scope: Scope, kinds: Kinds
) -> Iterator[MissingField]:
    if value_of(term, scope) is not UNKNOWN:
        return
    if (text := scope.tools.definitions.get(term.head)) and term.head not in scope.bindings:
        yield from _missing_in_term(manual, parse_term(text), scope, kinds)
        return
    if term.head == "matching" and is_function(term):
        yield from _missing_in_items(manual, term.inner, scope, kinds)
        return
    if is_function(term) and FUNCTIONS[term.head].per_item:
        items = items_of(term.inner[0], scope)
        yield from _missing_in_term(manual, term.inner[0], scope, kinds)
        for item in [] if isinstance(items, Special) else items:
            of_item = {**kinds, ITEM: _kind(term.inner[0], kinds)}
            yield from _missing_in_term(manual, term.inner[1], scope.of_item(item), of_item)
        return
    before = [
        found for each in term.inner for found in _missing_in_term(manual, each, scope, kinds)
    ]
    yield from before
    if before or not term.path:
        return
    if term.head == "record" and is_function(term):
        names = {_kind(each, kinds): value_of(each, scope) for each in term.inner}
        yield MissingField(names, term.path[0])
    elif not term.inner:
        owner = scope.bindings.get(term.head)
        for name in owner if isinstance(owner, list | tuple) else [owner]:
            if isinstance(name, str | int):
                yield MissingField({kinds.get(term.head, term.head): name}, term.path[0])
        if term.head in manual.environment.things:
            yield MissingField({}, f"{term.head}.{term.path[0]}")


def _kind(term: Term, kinds: Kinds) -> str:
    """What a term's value names: the last field, the label, or the argument itself."""
    if term.path:
        return term.path[-1]
    return kinds.get(term.head, term.head)


def _showing(manual: Manual, missing: MissingField, belief: Belief) -> Iterator[Call]:
    """The tools that show a field, with the arguments that are known.

    A field of a shared thing, such as ``customer.user_id``, is the argument of the same name.
    """
    records = [belief["records"].get(thing, {}) for thing in manual.environment.things]
    names, fields = missing.names, {k: v for record in records for k, v in record.items()}
    for rule in manual.actions:
        if _sets(rule, missing) or missing.field in rule.gives or _is_look_up(rule, missing):
            arguments = {
                name: names.get(kind, names.get(f"{kind}s", fields.get(name, Blank(f"<{name}>"))))
                for name, parameter in rule.called.items()
                for kind in [name if name in names else parameter]
            }
            yield Call(rule.name, arguments)


def _sets(rule: ActionRule, missing: MissingField) -> bool:
    """Return whether the tool's answer becomes this field."""
    for outcome in rule.outcomes:
        if is_effect(outcome.name, "field") and parse_term(outcome.arguments[1]).head == ANSWER:
            field = parse_term(outcome.arguments[0])
            if missing.field in (field.path[-1], f"{field.head}.{field.path[-1]}"):
                return True
    return False


def _is_look_up(rule: ActionRule, missing: MissingField) -> bool:
    """Return whether the tool only looks up the things that the record is about."""
    if rule.outcomes or not missing.names or len(rule.called) != len(missing.names):
        return False
    kinds = {*missing.names} | {kind.removesuffix("s") for kind in missing.names}
    return all(name in kinds or parameter in kinds for name, parameter in rule.called.items())
