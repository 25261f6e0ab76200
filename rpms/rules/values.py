"""Numbers, dates and lists in conditions, over the arguments of a call and tools' answers.

A *term* is what such a condition compares:

- ``usd``: an argument of the call, by its name in the rule;
- ``order.total``: a field of the record of the thing that ``order`` names. Fields
  of lists give lists: ``order.items.price``;
- ``refund``, ``refund.usd``, ``refund(order).usd``: earlier calls of a tool that were carried out,
  an argument of each, and only those with the same ``order``;
- ``count(...)`` and ``total(...)``: how many, and their sum;
- ``now``; a number, a date or a word stands for itself.

A list stands for each of its items: a condition must hold of every one. A value that no answer has
shown is unknown. A value of the wrong type, such as ``nan`` for a number, meets no condition, not
even a negated one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import product
from math import isfinite
from typing import Any, NamedTuple

from rpms.vocabulary.belief import Belief

Comparison = bool | None


class Special(Enum):
    """A marker instead of a value."""

    UNKNOWN = "unknown"
    ABSENT = "not given"
    INVALID = "of the wrong type"


UNKNOWN, ABSENT, INVALID = Special.UNKNOWN, Special.ABSENT, Special.INVALID

NOW = "now"
FUNCTIONS = ("count", "total")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_NAME = re.compile(r"[^\W\d]\w*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)


class Term(NamedTuple):
    """A parsed term: ``refund(order).usd`` -> ("refund", (order,), ("usd",))."""

    head: str
    inner: tuple[Term, ...] = ()
    path: tuple[str, ...] = ()


class Tools(NamedTuple):
    """For each tool, its arguments by their names in the rules; and the current time."""

    arguments: Mapping[str, Mapping[str, str]]
    time: str = ""


@lru_cache(maxsize=4096)
def parse_term(text: str) -> Term:
    """Read a term; raises ValueError where parentheses do not match."""
    text = text.strip()
    if "(" not in text:
        head, *path = text.split(".")
        if path and _NAME.fullmatch(head) and all(map(_NAME.fullmatch, path)):
            return Term(head, (), tuple(path))
        return Term(text)
    form = re.fullmatch(r"(\w+)\((.*)\)((?:\.\w+)*)", text, re.DOTALL)
    if not form:
        raise ValueError(f"'{text}' is not a term such as 'order.total' or 'count(items)'")
    inner = tuple(map(parse_term, split_arguments(form[2])))
    return Term(form[1], inner, tuple(filter(None, form[3].split("."))))


def split_arguments(text: str) -> list[str]:
    """The parts between commas; commas within parentheses do not split."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            raise ValueError(f"a parenthesis too many in '{text}'")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise ValueError(f"a parenthesis is not closed in '{text}'")
    return [part.strip() for part in parts if part.strip()]


def names_in(text: str) -> Iterator[str]:
    """The heads of a term and of its inner terms, without functions."""
    term = parse_term(text)
    if term.head not in FUNCTIONS:
        yield term.head
    for inner in term.inner:
        yield inner.head


class Scope(NamedTuple):
    """The sources of a term's value."""

    belief: Belief
    tools: Tools
    bindings: Mapping[str, Any]


def value_of(term: Term, scope: Scope) -> Any:
    """The value of a term, or a ``Special`` marker."""
    if term.inner and term.head in FUNCTIONS:
        values = [value_of(inner, scope) for inner in term.inner]
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        return _count(values) if term.head == "count" else _total(values)
    if term.head in scope.bindings:
        value = scope.bindings[term.head]
        return _fields(value, term.path, scope) if term.path else value
    if term.head in scope.tools.arguments:
        return _earlier(term, scope)
    if term.head == NOW and not term.path:
        return scope.tools.time or datetime.now(UTC)
    if term.path:
        return _walk(scope.belief["records"].get(term.head, UNKNOWN), term.path)
    return term.head


def _fields(value: Any, path: Sequence[str], scope: Scope) -> Any:
    """A field of an argument, or of the record of the thing that the argument names."""
    if isinstance(value, str):
        return _walk(scope.belief["records"].get(value, UNKNOWN), path)
    if isinstance(value, Special):
        return value
    if isinstance(value, Mapping):
        return _walk(value, path)
    if isinstance(value, list | tuple):
        return _gather([_fields(item, path, scope) for item in value])
    return _walk(scope.belief["records"].get(str(value), UNKNOWN), path)


def _walk(value: Any, path: Sequence[str]) -> Any:
    for place, name in enumerate(path):
        if isinstance(value, dict):
            value = value.get(name, UNKNOWN)
        elif isinstance(value, list | tuple):
            return _gather([_walk(item, path[place:]) for item in value])
        else:
            return UNKNOWN
    return value


def _gather(values: list[Any]) -> Any:
    """A list of values; the marker if one of them is a marker."""
    return next((value for value in values if isinstance(value, Special)), values)


def _earlier(term: Term, scope: Scope) -> Any:
    """The earlier calls of a tool, or an argument of each."""
    called = scope.tools.arguments[term.head]
    names = [called.get(inner.head, inner.head) for inner in term.inner]
    values = [scope.bindings.get(inner.head, ABSENT) for inner in term.inner]
    calls = [
        call["arguments"]
        for call in scope.belief["calls"]
        if call["tool"] == term.head
        and all(
            same_name(call["arguments"].get(name, ABSENT), value)
            for name, value in zip(names, values, strict=True)
        )
    ]
    if not term.path:
        return calls
    first, *rest = term.path
    return _gather([_walk(call.get(called.get(first, first), INVALID), rest) for call in calls])


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _count(values: Iterable[Any]) -> Any:
    number = 0
    for value in values:
        if isinstance(value, list | tuple | set | frozenset | Mapping):
            number += len(value)
        elif value is INVALID:
            return INVALID
        else:
            number += value is not ABSENT and value is not None
    return number


def _total(values: Sequence[Any]) -> Any:
    """The exact decimal sum: 0.1 and 0.2 are 0.3."""
    total = Decimal(0)
    for value in _flat(values):
        number = as_number(value)
        if number is None:
            return INVALID
        total += Decimal(str(number))
    return total


Number = int | float | Decimal


def as_number(value: Any) -> Number | None:
    """A finite number; None for anything else."""
    if type(value) is float:
        return value if isfinite(value) else None
    if type(value) is int:
        return value
    if isinstance(value, str):
        return _decimal(value)
    return value if isinstance(value, Decimal) and value.is_finite() else None


@lru_cache(maxsize=4096)
def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def as_moment(value: Any) -> datetime | None:
    """A date or a time in ISO's form, in UTC unless it says otherwise; None for anything else."""
    if isinstance(value, str):
        return _moment(value)
    return value if isinstance(value, datetime) and value.tzinfo else None


@lru_cache(maxsize=4096)
def _moment(value: str) -> datetime | None:
    if not _DATE.fullmatch(value.strip()):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def as_word(value: Any) -> Any:
    """The value for equality: numbers by value, all else literally."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    number = as_number(value)
    return number if number is not None else value


@lru_cache(maxsize=65536)
def plain(name: str) -> str:
    """A normalised name: many tools ignore blanks around it, case and forms of letters."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def same_name(value: Any, other: Any) -> bool:
    """Return whether two arguments may name the same thing."""
    if isinstance(value, str) and isinstance(other, str):
        return plain(value) == plain(other)
    return bool(as_word(value) == as_word(other))


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


# How each comparison reads, with blanks for its terms; all but `one_of` have a fixed number.
WORDS = {
    "at_most": "{0} is at most {1}",
    "at_least": "{0} is at least {1}",
    "equal": "{0} is {1}",
    "one_of": "{0} is one of {1}",
    "before": "{0} is before {1}",
    "within_hours": "{0} is within {1} hours of now",
    "given": "{0} is given",
}
ARITIES = {"one_of": None, "given": 1, **dict.fromkeys(
    ("at_most", "at_least", "equal", "before", "within_hours"), 2)}  # fmt: skip
_COMPARE: dict[str, Callable[..., bool | Special]] = {
    "at_most": _numbers(lambda number, limit: number <= limit),
    "at_least": _numbers(lambda number, limit: number >= limit),
    "equal": _equal,
    "before": _is_before,
    "within_hours": _within_hours,
}


def compare(name: str, terms: Sequence[str], scope: Scope) -> Comparison | Special:
    """Evaluate a comparison: ``None`` if a value is unknown, INVALID if one has the wrong type."""
    values = [value_of(term, scope) for term in map(parse_term, terms)]
    if name == "given":
        value = values[0].strip() if isinstance(values[0], str) else values[0]
        return value is not ABSENT and value not in (None, "", [], {})
    if name == "one_of":
        return _one_of(values[0], values[1:])
    if name == "within_hours":
        values.append(scope.tools.time or datetime.now(UTC))
    kinds = {*map(type, values)}
    if Special in kinds:
        is_known = all(each is not ABSENT and each is not INVALID for each in values)
        return None if is_known else INVALID
    return _each(_COMPARE[name], values) if kinds & _LISTS else _COMPARE[name](*values)


_LISTS = {list, tuple, set, frozenset}


def _each(holds: Callable[..., Any], values: Sequence[Any]) -> Comparison | Special:
    """Compare each item of lists; nothing holds of an empty list."""
    truths = [holds(*items) for items in product(*([*_flat(value)] for value in values))]
    return INVALID if INVALID in truths or not truths else all(truths)


def _one_of(value: Any, members: Sequence[Any]) -> Comparison | Special:
    if isinstance(value, Special):
        return None if value is UNKNOWN else INVALID
    items = [as_word(item) for item in _flat(value)]
    options = [as_word(item) for member in members for item in _flat(member)]
    if not items:
        return INVALID
    if all(item in options for item in items):
        return True
    return None if any(member is UNKNOWN for member in members) else False


def spoken(text: str, scope: Scope) -> str:
    """A term in words: ``the total of O1``, ``the number of earlier refund calls``."""
    term = parse_term(text)
    if term.head in FUNCTIONS and term.inner:
        what = "number" if term.head == "count" else "sum"
        parts = [_spoken_head(inner, scope, bare=True) for inner in term.inner]
        return f"the {what} of {' and '.join(parts)}"
    return _spoken_head(term, scope)


def _spoken_head(term: Term, scope: Scope, bare: bool = False) -> str:
    if term.head in scope.tools.arguments and term.head not in scope.bindings:
        same = " and ".join(inner.head for inner in term.inner)
        calls = f"earlier {term.head} calls{f' with this {same}' if same else ''}"
        return f"the {' '.join(term.path)} of {calls}" if term.path else calls
    if term.head not in scope.bindings:
        return f"the {' '.join(term.path)} of {term.head}" if term.path else term.head
    value = scope.bindings[term.head]
    if not term.path:  # in a prompt, without values, it is a blank
        blank = not bare and isinstance(value, str) and value == f"<{term.head}>"
        return f"<{term.head}>" if blank else term.head
    owner = value if isinstance(value, str | int) else term.head
    return f"the {' '.join(term.path)} of {owner}"


def value_clause(text: str, scope: Scope) -> str:
    """A term's value as a clause; empty for a literal."""
    term = parse_term(text)
    fixed = not (term.path or term.inner or term.head in {*scope.bindings, *scope.tools.arguments})
    if fixed and term.head != NOW:
        return ""
    value, words = value_of(term, scope), spoken(text, scope).replace("<", "").replace(">", "")
    if value is UNKNOWN:
        return f"no answer has shown {words} yet"
    if value is ABSENT:
        return f"{words} was not given"
    if value is INVALID:
        return f"{words} cannot be read"
    shown = value if isinstance(value, Decimal | str | int | float | datetime) else repr(value)
    shown = repr(shown) if isinstance(shown, str) and not shown.strip().isprintable() else shown
    return f"{words} is {str(shown)[:60] or 'empty'}"
