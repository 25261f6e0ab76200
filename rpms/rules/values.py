"""The value of a term: from the arguments of a call, from tools' answers and from earlier calls.

A value that no answer has shown is unknown. A value of the wrong type, such as ``nan`` for a
number, meets no condition, not even a negated one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from math import prod
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from rpms.rules.scalars import (
    ABSENT,
    INVALID,
    NO_ENTRY,
    UNKNOWN,
    Special,
    as_moment,
    as_number,
    as_word,
    plain,
    same_name,
)
from rpms.rules.terms import ITEM, NOW, Term, parse_term
from rpms.vocabulary.belief import Belief, PastCall
from rpms.vocabulary.naming import Truth

LISTS = (list, tuple, set, frozenset)
WINDOW = "within_hours"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Tools(NamedTuple):
    """For each tool, its arguments by their names in the rules; the time; tables; definitions."""

    arguments: Mapping[str, Mapping[str, str]]
    time: str = ""
    tables: Mapping[str, Any] = {}
    definitions: Mapping[str, str] = {}
    zone: str = "UTC"


class Texts:
    """How texts are compared: exactly, or ``loose`` about case and outer blanks.

    ``matter`` becomes true where the two differ.
    """

    def __init__(self, loose: bool = False) -> None:
        self.loose, self.matter = loose, False

    def key(self, value: Any) -> Any:
        """What two equal values have in common; a text "null" is null only where that binds."""
        if value is None and not self.loose:
            return None
        word = as_word(value)
        return self.form(word) if isinstance(word, str) else word

    def form(self, text: str) -> str:
        """A text as it is compared."""
        return plain(text) if self.loose else text

    def equal(self, value: Any, other: Any) -> bool:
        """Return whether two values are the same."""
        same: bool = self.key(value) == self.key(other)
        words = as_word(value), as_word(other)
        if not same and all(isinstance(word, str) for word in words):
            self.matter = self.matter or plain(words[0]) == plain(words[1])
        return same


EXACT = Texts()


class Scope(NamedTuple):
    """The sources of a term's value; ``holds`` evaluates a condition on an item of a list."""

    belief: Belief
    tools: Tools
    bindings: Mapping[str, Any]
    holds: Callable[[str, Mapping[str, Any]], Truth | Special] = lambda text, bindings: None
    texts: Texts = EXACT
    since: datetime | None = None  # of earlier calls only those from then on count

    def of_item(self, item: Any) -> Scope:
        """The same scope, for one item of a list."""
        return self._replace(bindings={**self.bindings, ITEM: item})


def value_of(term: Term, scope: Scope) -> Any:
    """The value of a term, or a ``Special`` marker."""
    if is_function(term):
        value = FUNCTIONS[term.head].evaluate(term, scope)
        if isinstance(value, str) and term.path:
            value = _record_of(scope, value)
        return _walk(value, term.path) if term.path else value
    if term.head in scope.bindings:
        value = scope.bindings[term.head]
        return _fields(value, term.path, scope) if term.path else value
    if term.head in scope.tools.definitions:
        value = value_of(parse_term(scope.tools.definitions[term.head]), scope)
        return _fields(value, term.path, scope) if term.path else value
    if term.head in scope.tools.arguments:
        return _earlier(term, scope)
    if term.head == NOW and not term.path:
        return scope.tools.time or datetime.now(UTC)
    if term.head in scope.tools.tables:
        return _walk(scope.tools.tables[term.head], term.path)
    if term.path:
        return _walk(_record_of(scope, term.head), term.path)
    return None if term.head == "null" else term.head


def record_name(parts: Iterable[Any]) -> str:
    """The name of a record: that of a thing, or several values that identify it together."""
    return ", ".join(map(str, parts))


def _record_of(scope: Scope, name: str) -> Any:
    return scope.belief["records"].get(name, UNKNOWN)


def _fields(value: Any, path: Sequence[str], scope: Scope) -> Any:
    """A field of an argument, or of the record of the thing that the argument names."""
    if isinstance(value, str):
        return _walk(_record_of(scope, value), path)
    if isinstance(value, Special):
        return value
    if isinstance(value, Mapping):
        return _walk(value, path, ABSENT)
    if isinstance(value, list | tuple):
        return _gather([_fields(item, path, scope) for item in value])
    return _walk(_record_of(scope, str(value)), path)


def _walk(value: Any, path: Sequence[str], missing: Special = UNKNOWN) -> Any:
    for place, name in enumerate(path):
        if isinstance(value, dict):
            value = value.get(name, missing)
        elif isinstance(value, list | tuple):
            return _gather([_walk(item, path[place:], missing) for item in value])
        else:
            return value if isinstance(value, Special) else missing
    return value


def _gather(values: list[Any]) -> Any:
    """A list of values; the marker if one of them is a marker."""
    return next((value for value in values if isinstance(value, Special)), values)


def _earlier(term: Term, scope: Scope, failed: bool = False) -> Any:
    """The earlier calls of a tool, or an argument of each; ``failed`` ones too if asked for."""
    called = scope.tools.arguments[term.head]
    values: dict[str, Any] = {}
    for inner in term.inner:
        name = inner.label or inner.head
        value = value_of(inner, scope) if inner.label else scope.bindings.get(inner.head, ABSENT)
        if value is UNKNOWN:
            return UNKNOWN
        values[called.get(name, name)] = value
    calls = [
        call["arguments"]
        for call in scope.belief["calls"]
        if call["tool"] == term.head
        and (failed or not call.get("failed"))
        and _is_since(call, scope.since)
        and all(same_name(call["arguments"].get(k, ABSENT), value) for k, value in values.items())
    ]
    if not term.path:
        return calls
    first, *rest = term.path
    return _gather([_walk(call.get(called.get(first, first), INVALID), rest) for call in calls])


def _is_since(call: PastCall, since: datetime | None) -> bool:
    """A call of which nobody knows when it was made counts as well."""
    made = as_moment(call.get("at", ""))
    return since is None or made is None or made >= since


def flat(value: Any) -> Iterator[Any]:
    """The items of a list and of lists within it, or the value itself."""
    if isinstance(value, LISTS):
        for item in value:
            yield from flat(item)
    else:
        yield value


def items_of(term: Term, scope: Scope) -> list[Any] | Special:
    """The items of a list; the marker of a value that is none."""
    value = value_of(term, scope)
    if isinstance(value, Special):
        return value
    return [*value] if isinstance(value, list | tuple) else INVALID


def _inner_values(term: Term, scope: Scope) -> list[Any]:
    return [value_of(inner, scope) for inner in term.inner]


def time_of(scope: Scope) -> datetime:
    """The time of the manual, else of the clock."""
    return as_moment(scope.tools.time) or datetime.now(UTC)


def _in_window(function: Callable[[Term, Scope], Any]) -> Callable[[Term, Scope], Any]:
    """A function of earlier calls, of which ``within_hours=24`` takes the latest."""

    def value(term: Term, scope: Scope) -> Any:
        windows = [inner for inner in term.inner if inner.label == WINDOW]
        if windows:
            hours = as_number(value_of(windows[0], scope))
            if hours is None:
                return INVALID
            scope = scope._replace(since=time_of(scope) - timedelta(hours=float(hours)))
            rest = tuple(inner for inner in term.inner if inner.label != WINDOW)
            term = term._replace(inner=rest)
        return function(term, scope)

    return value


def _of_moment(part: Callable[[datetime], Any]) -> Callable[[Term, Scope], Any]:
    """A part of a time, as the clocks of the manual's time zone show it."""

    def value(term: Term, scope: Scope) -> Any:
        moment = value_of(term.inner[0], scope)
        if isinstance(moment, Special):
            return moment
        read = as_moment(moment)
        return INVALID if read is None else part(read.astimezone(ZoneInfo(scope.tools.zone)))

    return value


def _days_between(term: Term, scope: Scope) -> Any:
    """The number of midnights between two times, whichever comes first."""
    days = [
        _of_moment(lambda moment: moment.date())(Term("", (each,)), scope) for each in term.inner
    ]
    if any(isinstance(day, Special) for day in days) or len(days) != 2:
        return UNKNOWN if UNKNOWN in days else INVALID
    return abs((days[0] - days[1]).days)


def _round(term: Term, scope: Scope) -> Any:
    """A number to so many decimal places, half of one upwards; without them a whole number."""
    numbers = _numbers(_inner_values(term, scope))
    if isinstance(numbers, Special) or not 1 <= len(numbers) <= 2:
        return numbers if isinstance(numbers, Special) else INVALID
    places = int(numbers[1]) if len(numbers) == 2 else 0
    return numbers[0].quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def _count(term: Term, scope: Scope) -> Any:
    values = _inner_values(term, scope)
    if UNKNOWN in values:
        return UNKNOWN
    number = 0
    for value in values:
        if isinstance(value, (*LISTS, Mapping)):
            number += len(value)
        elif value is INVALID or value is NO_ENTRY:
            return INVALID
        else:
            number += value is not ABSENT and value is not None
    return number


def _numbers(values: Any) -> Any:
    """A list of exact decimal numbers: 0.1 and 0.2 are 0.3; the marker of a value that is none."""
    numbers: list[Decimal] = []
    for value in flat(values):
        if value is UNKNOWN:
            return UNKNOWN
        number = as_number(value)
        if number is None:
            return INVALID
        numbers.append(Decimal(str(number)))
    return numbers


def _arithmetic(combine: Callable[[list[Decimal]], Any]) -> Callable[[Term, Scope], Any]:
    def value(term: Term, scope: Scope) -> Any:
        numbers = _numbers(_inner_values(term, scope))
        return numbers if isinstance(numbers, Special) else combine(numbers)

    return value


def _difference(term: Term, scope: Scope) -> Any:
    """The first value less all others; of a list its sum."""
    first, *others = _inner_values(term, scope)
    numbers, less = _numbers(first), _numbers(others)
    if isinstance(numbers, Special) or isinstance(less, Special):
        return UNKNOWN if UNKNOWN in (numbers, less) else INVALID
    return sum(numbers, Decimal(0)) - sum(less, Decimal(0))


def _at(index: int) -> Callable[[Term, Scope], Any]:
    def value(term: Term, scope: Scope) -> Any:
        items = items_of(term.inner[0], scope)
        return items if isinstance(items, Special) else items[index] if items else INVALID

    return value


def _entry(term: Term, scope: Scope) -> Any:
    """An entry of a table by its key, or of a list by the field that the label names."""
    if len(term.inner) != 2:
        return INVALID
    table, key = _inner_values(term, scope)
    if isinstance(table, Special) or isinstance(key, Special):
        return UNKNOWN if UNKNOWN in (table, key) else _first_special(table, key)
    if isinstance(key, list | tuple):
        return _gather([_look_up(table, each, term.inner[1].label, scope) for each in key])
    return _look_up(table, key, term.inner[1].label, scope)


def _look_up(table: Any, key: Any, field: str, scope: Scope) -> Any:
    if not isinstance(key, str | int) or isinstance(key, bool):
        return INVALID
    if isinstance(table, Mapping):
        return table.get(key, table.get(str(key), NO_ENTRY))
    if not isinstance(table, list | tuple) or not field:
        return INVALID
    rows = (row for row in table if isinstance(row, Mapping) and field in row)
    return next((row for row in rows if scope.texts.equal(row[field], key)), NO_ENTRY)


def _first_special(*values: Any) -> Any:
    return next(value for value in values if isinstance(value, Special))


def _record(term: Term, scope: Scope) -> Any:
    """The record of a thing, or of several values that identify it together."""
    names = _inner_values(term, scope)
    if any(isinstance(name, Special) for name in names):
        return UNKNOWN if UNKNOWN in names else _first_special(*names)
    if len(names) == 1 and isinstance(names[0], list | tuple):
        return _gather([_find_record(scope, [name]) for name in names[0]])
    return _find_record(scope, names)


def _find_record(scope: Scope, names: Sequence[Any]) -> Any:
    if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in names):
        return INVALID
    return _record_of(scope, record_name(names))


def _pairs(term: Term, scope: Scope) -> Any:
    """Objects made of the items of several lists, in order: each list gives the field it labels."""
    labels, lists = [inner.label for inner in term.inner], _inner_values(term, scope)
    if UNKNOWN in lists:
        return UNKNOWN
    if not all(labels) or not all(isinstance(each, list | tuple) for each in lists):
        return INVALID
    if len({*map(len, lists)}) != 1:
        return INVALID
    return [dict(zip(labels, row, strict=True)) for row in zip(*lists, strict=True)]


def _collect(term: Term, scope: Scope) -> Any:
    """The value of a term for each item of a list."""
    items = items_of(term.inner[0], scope)
    if isinstance(items, Special) or len(term.inner) != 2:
        return items if isinstance(items, Special) else INVALID
    return _gather([value_of(term.inner[1], scope.of_item(item)) for item in items])


def _matching(term: Term, scope: Scope) -> Any:
    """The items of a list that meet the conditions; unknown if that is undecided of one."""
    items = items_of(term.inner[0], scope)
    if isinstance(items, Special):
        return items if items is UNKNOWN else INVALID
    met = [conjunction(term.inner[1:], scope.of_item(item)) for item in items]
    if INVALID in met:
        return INVALID
    return UNKNOWN if None in met else [i for i, holds in zip(items, met, strict=True) if holds]


def conjunction(conditions: Iterable[Term], scope: Scope) -> Truth | Special:
    """Return whether all conditions hold; undecided if none fails and one is undecided."""
    return conjunction_of([scope.holds(each.text, scope.bindings) for each in conditions])


def conjunction_of(truths: Sequence[Truth | Special]) -> Truth | Special:
    """What several conditions come to together; one that does not hold decides."""
    order: tuple[Truth | Special, ...] = (False, INVALID, None)
    return next((truth for truth in order if truth in truths), True)


def _attempts(term: Term, scope: Scope) -> Any:
    """The number of calls of a tool, also those that were answered with an error."""
    calls = _earlier(term.inner[0], scope, failed=True)
    return len(calls) if isinstance(calls, list) else INVALID


class Function(NamedTuple):
    """A function of terms, how it reads, and whether its other arguments are about each item."""

    evaluate: Callable[[Term, Scope], Any]
    phrase: str = ""
    per_item: bool = False
    takes: str = "value"
    labels: tuple[str, ...] | None = ()  # of its arguments; None for any


FUNCTIONS: dict[str, Function] = {
    "count": Function(_in_window(_count), "the number of {0}", labels=(WINDOW,)),
    "attempts": Function(_in_window(_attempts), "the number of all {0}", labels=(WINDOW,)),
    "total": Function(_in_window(_arithmetic(lambda numbers: sum(numbers, Decimal(0)))),
                      "the sum of {0}", takes="number", labels=(WINDOW,)),
    "round": Function(_round, "{0} rounded", takes="number"),
    "hour": Function(_of_moment(lambda moment: moment.hour), "the hour of {0}", takes="date"),
    "weekday": Function(_of_moment(lambda moment: WEEKDAYS[moment.weekday()]),
                        "the weekday of {0}", takes="date"),
    "days_between": Function(_days_between, "the number of days between {0}", takes="date"),
    "product": Function(_arithmetic(lambda numbers: prod(numbers, start=Decimal(1))),
                        "the product of {0}", takes="number"),
    "difference": Function(_difference, "the difference of {0}", takes="number"),
    "largest": Function(_arithmetic(lambda numbers: max(numbers) if numbers else INVALID),
                        "the largest of {0}", takes="number"),
    "first": Function(_at(0), "the first of {0}"),
    "last": Function(_at(-1), "the last of {0}"),
    "entry": Function(_entry, labels=None),
    "record": Function(_record),
    "pairs": Function(_pairs, "{0} in pairs", labels=None),
    "collect": Function(_collect, per_item=True),
    "matching": Function(_matching, per_item=True),
}  # fmt: skip


def is_function(term: Term) -> bool:
    """True for a function, false for an argument, a tool or a literal."""
    return bool(term.inner) and term.head in FUNCTIONS
