"""Conditions over values: each is true, false, undecided, or invalid.

A list stands for each of its items: a condition must hold of every one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from rpms.rules.scalars import (
    INVALID,
    UNKNOWN,
    Number,
    Special,
    as_moment,
    as_number,
    as_word,
)
from rpms.rules.terms import parse_term
from rpms.rules.values import Comparison, Scope, conjunction, flat, items_of, value_of

SAID = "said"
"""The kind of event that keeps a message of the user."""

# How each comparison reads, with blanks for its terms.
WORDS = {
    "at_most": "{0} is at most {1}",
    "at_least": "{0} is at least {1}",
    "equal": "{0} is {1}",
    "same": "{0} is the same as {1}",
    "one_of": "{0} is one of {1}",
    "within": "{0} is within {1}",
    "before": "{0} is before {1}",
    "within_hours": "{0} is within {1} hours of now",
    "given": "{0} is given",
    "shown": "{0} is known",
    "said": "{0} is written in a message of the user",
    "any": "one of {0} is such that {1}",
}
# Without a number: two or more.
ARITIES = {"one_of": None, "any": None, "given": 1, "shown": 1, "said": 1, **dict.fromkeys(
    ("at_most", "at_least", "equal", "same", "within", "before", "within_hours"), 2)}  # fmt: skip


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


def _equal(value: Any, other: Any) -> Any:
    return as_word(value) == as_word(other)


_COMPARE: dict[str, Callable[..., bool | Special]] = {
    "at_most": _numbers(lambda number, limit: number <= limit),
    "at_least": _numbers(lambda number, limit: number >= limit),
    "equal": _equal,
    "before": _is_before,
    "within_hours": _within_hours,
}


def compare(name: str, terms: Sequence[str], scope: Scope) -> Comparison | Special:
    """Evaluate a comparison: ``None`` if a value is unknown, INVALID if one has the wrong type."""
    if name == "any":
        return _any(terms, scope)
    values = [value_of(term, scope) for term in map(parse_term, terms)]
    if name in _OF_ONE:
        return _OF_ONE[name](values[0], scope)
    if name == "one_of":
        return _one_of(values[0], values[1:])
    if name == "within_hours":
        values.append(scope.tools.time or datetime.now(UTC))
    kinds = {*map(type, values)}
    if Special in kinds:
        is_known = all(each is UNKNOWN for each in values if isinstance(each, Special))
        return None if is_known else INVALID
    if name in _OF_LISTS:
        return _OF_LISTS[name](*([as_word(item) for item in flat(value)] for value in values))
    return _each(_COMPARE[name], values) if kinds & _LISTS else _COMPARE[name](*values)


_OF_LISTS: dict[str, Callable[[list[Any], list[Any]], bool]] = {
    "same": lambda items, others: items == others,
    "within": lambda items, others: (
        bool(items) and all(items.count(item) <= others.count(item) for item in items)
    ),
}
_LISTS = {list, tuple, set, frozenset}


def _each(holds: Callable[..., Any], values: Sequence[Any]) -> Comparison | Special:
    """Compare each item of lists; nothing holds of an empty list."""
    truths = [holds(*items) for items in product(*([*flat(value)] for value in values))]
    return INVALID if INVALID in truths or not truths else all(truths)


def _any(terms: Sequence[str], scope: Scope) -> Comparison | Special:
    """The conditions hold of one item; undecided if undecided ones could do so."""
    listed, *conditions = map(parse_term, terms)
    items = items_of(listed, scope)
    if isinstance(items, Special):
        return None if items is UNKNOWN else INVALID
    truths = [conjunction(conditions, scope.of_item(item)) for item in items]
    order: tuple[Comparison | Special, ...] = (True, INVALID, None)
    return next((truth for truth in order if truth in truths), False)


def _is_given(value: Any, _: Scope) -> Comparison:
    if isinstance(value, Special):
        return None if value is UNKNOWN else False
    return (value.strip() if isinstance(value, str) else value) not in (None, "", [], {})


def _is_said(value: Any, scope: Scope) -> Comparison | Special:
    """The user has written the value, as whole words and in any case."""
    if isinstance(value, Special):
        return None if value is UNKNOWN else INVALID
    messages = [event["thing"] for event in scope.belief["events"] if event["kind"] == SAID]
    words = [*flat(value)]
    if not words or not all(isinstance(w, str | int) and str(w).strip() for w in words):
        return INVALID
    forms = (rf"(?<!\w){re.escape(str(word).strip())}(?!\w)" for word in words)
    return all(any(re.search(form, text, re.IGNORECASE) for text in messages) for form in forms)


_OF_ONE: dict[str, Callable[[Any, Scope], Comparison | Special]] = {
    "given": _is_given,
    "shown": lambda value, _: value is not UNKNOWN,
    "said": _is_said,
}


def _one_of(value: Any, members: Sequence[Any]) -> Comparison | Special:
    """The value is among the members; a list counts as its items and a table as its keys."""
    if isinstance(value, Special):
        return None if value is UNKNOWN else INVALID
    items = [as_word(item) for item in flat(value)]
    listed = [[*member] if isinstance(member, Mapping) else member for member in members]
    options = [as_word(item) for member in listed for item in flat(member)]
    if not items:
        return INVALID
    if all(item in options for item in items):
        return True
    return None if any(member is UNKNOWN for member in members) else False
