"""Conditions over values: each is true, false, undecided, or invalid.

Of two readings of a rule the one counts that allows less. So a bare condition on a list, which does
not say of which items it speaks, is invalid: it meets no need, not even a negated one, and under
``when`` it may hold. ``all``, ``any`` and ``none`` say it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rpms.rules.predicates import Condition, declare
from rpms.rules.scalars import (
    FORMS,
    INVALID,
    UNKNOWN,
    Number,
    Special,
    as_moment,
    as_number,
    matches,
)
from rpms.rules.terms import parse_term
from rpms.rules.values import Scope, Texts, conjunction, flat, items_of, value_of
from rpms.vocabulary.naming import Truth

SAID = "said"
"""The kind of event that keeps a message of the user."""


def _numbers(compare: Callable[[Number, Number], bool]) -> Callable[..., Any]:
    def holds(value: Any, other: Any) -> Any:
        number, limit = as_number(value), as_number(other)
        return INVALID if number is None or limit is None else compare(number, limit)

    return holds


def _is_before(value: Any, other: Any) -> Any:
    moment, limit = as_moment(value), as_moment(other)
    return INVALID if moment is None or limit is None else moment < limit


def _within_hours(value: Any, hours: Any, start: Any) -> Any:
    moment, number, origin = as_moment(value), as_number(hours), as_moment(start)
    if moment is None or number is None or origin is None:
        return INVALID
    return abs(moment - origin) <= timedelta(hours=float(number))


def _of_items(holds: Callable[..., Any]) -> Callable[..., Truth | Special]:
    """A condition on single values."""

    def compare(terms: Sequence[str], scope: Scope) -> Truth | Special:
        return _compare(holds, _values(terms, scope))

    return compare


def _values(terms: Sequence[str], scope: Scope) -> list[Any]:
    return [value_of(parse_term(term), scope) for term in terms]


def _compare(holds: Callable[..., Any], values: Sequence[Any]) -> Truth | Special:
    kinds = {*map(type, values)}
    if Special in kinds:
        return _undecided(values)
    return INVALID if kinds & _LISTS else holds(*values)


def _undecided(values: Sequence[Any]) -> Truth | Special:
    """A missing value leaves a condition open; one of the wrong type meets none."""
    is_known = all(each is UNKNOWN for each in values if isinstance(each, Special))
    return None if is_known else INVALID


_LISTS = {list, tuple, set, frozenset}


def _in_time(terms: Sequence[str], scope: Scope) -> Truth | Special:
    time = scope.tools.time or datetime.now(UTC)
    return _compare(_within_hours, [*_values(terms, scope), time])


def _of_lists(holds: Callable[[list[Any], list[Any]], bool]) -> Callable[..., Any]:
    """A condition on whole lists."""

    def compare(terms: Sequence[str], scope: Scope) -> Truth | Special:
        values = _values(terms, scope)
        if any(isinstance(value, Special) for value in values):
            return _undecided(values)
        return _strictest(
            scope,
            lambda texts: holds(*([texts.key(item) for item in flat(value)] for value in values)),
        )

    return compare


def _equal(terms: Sequence[str], scope: Scope) -> Truth | Special:
    return _compare(scope.texts.equal, _values(terms, scope))


def _of_quantity(order: Sequence[Truth | Special], otherwise: Truth, empty: Any
                 ) -> Callable[..., Truth | Special]:  # fmt: skip
    """Conditions on the items of a list; of their truths the first in ``order`` decides."""

    def holds(terms: Sequence[str], scope: Scope) -> Truth | Special:
        listed, *conditions = map(parse_term, terms)
        items = items_of(listed, scope)
        if isinstance(items, Special):
            return None if items is UNKNOWN else INVALID
        truths = [conjunction(conditions, scope.of_item(item)) for item in items]
        found = next((truth for truth in order if truth in truths), otherwise)
        return empty if not items else found

    return holds


def _like(terms: Sequence[str], scope: Scope) -> Truth | Special:
    """The pattern is no term: it stands as it is written, with or without quotation marks."""
    value, pattern = value_of(parse_term(terms[0]), scope), unquoted(terms[1])
    if value is UNKNOWN or not isinstance(value, str):
        return None if value is UNKNOWN else INVALID
    if pattern in FORMS:
        return matches(value, pattern)
    return _strictest(scope, lambda texts: matches(texts.form(value), texts.form(pattern)))


def unquoted(text: str) -> str:
    """A constant without the quotation marks around it."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def _none(terms: Sequence[str], scope: Scope) -> Truth | Special:
    truth = _any(terms, scope)
    return not truth if isinstance(truth, bool) else truth


_all = _of_quantity((INVALID, False, None), otherwise=True, empty=INVALID)
_any = _of_quantity((True, INVALID, None), otherwise=False, empty=False)


def _strictest(scope: Scope, holds: Callable[[Texts], bool]) -> bool:
    """Compare whole lists, and note where case and blanks decide."""
    truth = holds(scope.texts)
    if not scope.texts.loose and holds(Texts(loose=True)) != truth:
        scope.texts.matter = True
    return truth


def _of_one(holds: Callable[[Any, Scope], Any]) -> Callable[..., Any]:
    """A condition on one value, whatever it is."""
    return lambda terms, scope: holds(value_of(parse_term(terms[0]), scope), scope)


def _is_given(value: Any, _: Scope) -> Truth:
    if isinstance(value, Special):
        return None if value is UNKNOWN else False
    return (value.strip() if isinstance(value, str) else value) not in (None, "", [], {})


def _is_said(value: Any, scope: Scope) -> Truth | Special:
    """The user has written the value, as whole words and in any case."""
    if isinstance(value, Special):
        return None if value is UNKNOWN else INVALID
    messages = [event["thing"] for event in scope.belief["events"] if event["kind"] == SAID]
    if not isinstance(value, str | int) or not str(value).strip():
        return INVALID
    form = rf"(?<!\w){re.escape(str(value).strip())}(?!\w)"
    return any(re.search(form, text, re.IGNORECASE) for text in messages)


def _one_of(terms: Sequence[str], scope: Scope) -> Truth | Special:
    """The value is among the members; of those a list counts as its items, a table as its keys."""
    value, *members = _values(terms, scope)
    if isinstance(value, Special):
        return None if value is UNKNOWN else INVALID
    if type(value) in _LISTS:
        return INVALID
    listed = [[*member] if isinstance(member, Mapping) else member for member in members]
    if any(scope.texts.equal(value, item) for member in listed for item in flat(member)):
        return True
    return None if any(member is UNKNOWN for member in members) else False


def _condition(name: str, arity: int | None, evaluate: Any, statement: str, **more: Any) -> None:
    declare(Condition(name, arity, evaluate, statement, reads="values", **more))


_condition("at_most", 2, _of_items(_numbers(lambda number, limit: number <= limit)),
           "{0} is at most {1}", takes=("number",))  # fmt: skip
_condition("at_least", 2, _of_items(_numbers(lambda number, limit: number >= limit)),
           "{0} is at least {1}", takes=("number",))  # fmt: skip
_condition("equal", 2, _equal, "{0} is {1}")
_condition(
    "same",
    2,
    _of_lists(lambda items, others: items == others),
    "{0} is the same as {1}",
    whole=True,
)
_condition("one_of", None, _one_of, "{0} is one of {1}")
_condition("within", 2, _of_lists(lambda items, others: (
    bool(items) and all(items.count(item) <= others.count(item) for item in items)
)), "{0} is within {1}", whole=True)  # fmt: skip
_condition("before", 2, _of_items(_is_before), "{0} is before {1}", takes=("date",))
_condition("within_hours", 2, _in_time, "{0} is within {1} hours of now", takes=("date", "number"))
_condition("given", 1, _of_one(_is_given), "{0} is given", whole=True)
_condition("shown", 1, _of_one(lambda value, _: value is not UNKNOWN), "{0} is known", whole=True)
_condition("said", 1, _of_one(_is_said), "{0} is written in a message of the user")
_condition("like", 2, _like, "{0} is like {1}", takes=("value", "pattern"))
_condition("all", None, _all, "all of {0} are such that {1}", quantifies=True)
_condition("any", None, _any, "one of {0} is such that {1}", quantifies=True)
_condition("none", None, _none, "none of {0} is such that {1}", quantifies=True)
