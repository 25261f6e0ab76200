"""Finding everything that satisfies a conjunction, without trying every tuple of objects.

Facts stand in relations, one per predicate, with an index for every way a plan looks them up.
A plan takes the literals of a clause in an order chosen once per game: what few facts can match
comes first, so that most actions are ruled out by their first literal (an empty hand, the place
where the agent stands).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from rpms.envs.alfworld.pddl import Literal, Typed

Row = tuple[str, ...]
Shape = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]
"""Positions that are known, positions asked for, and pairs that must be equal."""
Certain = Callable[[Literal, str, str], bool]
"""Whether a literal alone guarantees a variable's type."""
_Index = dict[Row, dict[Row, None]]
_NONE: dict[Row, None] = {}


def type_predicate(kind: str) -> str:
    """The predicate that holds for the objects of a type; no PDDL name has a blank in it."""
    return f"type {kind}"


class Relation:
    """All facts of one predicate, found by any positions that a plan has asked for."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = set(rows)
        self._indexes: dict[Shape, _Index] = {}

    def copy(self) -> Relation:
        """The same facts and indexes, to be changed apart from these."""
        other = Relation(self.rows)
        other._indexes = {
            shape: {key: dict(rows) for key, rows in index.items()}
            for shape, index in self._indexes.items()
        }
        return other

    def index(self, shape: Shape) -> _Index:
        """The facts by what stands at the known positions, kept up to date from now on."""
        if shape not in self._indexes:
            self._indexes[shape] = {}
            for row in sorted(self.rows):
                _enter(self._indexes[shape], shape, row, true=True)
        return self._indexes[shape]

    def put(self, row: Row, true: bool) -> bool:
        """Make a fact true or not; whether that changed anything."""
        if (row in self.rows) == true:
            return False
        (self.rows.add if true else self.rows.remove)(row)
        for shape, index in self._indexes.items():
            _enter(index, shape, row, true)
        return True


def _enter(index: _Index, shape: Shape, row: Row, true: bool) -> None:
    known, asked, equal = shape
    if all(row[a] == row[b] for a, b in equal):
        rows = index.setdefault(tuple(row[at] for at in known), {})
        key = tuple(row[at] for at in asked)
        if true:
            rows[key] = None
        else:
            del rows[key]


class _Step(NamedTuple):
    """One literal of a plan: where its known arguments are in a row, and what it adds to it."""

    predicate: str
    negated: bool
    shape: Shape
    key: Callable[[Row], Row]


class Plan(NamedTuple):
    """A clause in the order it is looked up; ``arrange`` picks what was asked for."""

    steps: tuple[_Step, ...]
    arrange: Callable[[Row], Row]

    def attach(self, relations: Mapping[str, Relation]) -> Callable[[], list[Row]]:
        """What finds every way to satisfy the clause in these relations, now or later.

        Their indexes are looked up once; they follow the facts by themselves.
        """
        steps: list[tuple[bool, Any, Callable[[Row], Row]]] = []
        for step in self.steps:
            relation = relations[step.predicate]
            source: Any = relation.rows if step.negated else relation.index(step.shape)
            steps.append((step.negated, source, step.key))

        def rows() -> list[Row]:
            rows: list[Row] = [()]
            for negated, source, key in steps:
                if negated:
                    rows = [row for row in rows if key(row) not in source]
                else:
                    rows = [row + more for row in rows for more in source.get(key(row), _NONE)]
                if not rows:
                    return rows
            return list(map(self.arrange, rows))

        return rows


def make_plan(
    literals: Iterable[Literal],
    variables: Typed,
    wanted: Sequence[str],
    relations: Mapping[str, Relation],
    certain: Certain,
) -> Plan:
    """Order the literals of a clause.

    Args:
        literals: the clause.
        variables: every variable in it, with its type.
        wanted: the variables whose values are asked for.
        relations: the facts at the start, for judging how many rows a literal leaves.
        certain: where a variable's type need not be looked up.
    """
    literals = list(literals)
    pending = [literal for literal in literals if not literal.negated]
    for variable, kind in variables:
        if not any(variable in each.args and certain(each, variable, kind) for each in pending):
            pending.append(Literal(type_predicate(kind), (variable,), False))
    pending += [literal for literal in literals if literal.negated]
    columns: list[str] = []
    steps: list[_Step] = []
    while pending:
        best = min(pending, key=lambda each: _cost(each, columns, relations[each.predicate].rows))
        pending.remove(best)
        shape, key, columns = _look_up(best, columns)
        steps.append(_Step(best.predicate, best.negated, shape, key))
    return Plan(tuple(steps), _getter([columns.index(name) for name in wanted]))


def _cost(literal: Literal, columns: Sequence[str], rows: set[Row]) -> tuple[float, int]:
    """How many rows each row becomes, roughly; a negation must wait for its variables."""
    free = {arg for arg in literal.args if arg.startswith("?") and arg not in columns}
    if literal.negated:
        return (float("inf") if free else 0.5, 0)
    if not free:
        return (0.25 if rows else 0.0, len(rows))
    size = float(len(rows))
    for at, arg in enumerate(literal.args):
        if arg not in free:
            size /= max(1, len({row[at] for row in rows}))
    return (size, len(rows))


def _look_up(
    literal: Literal, columns: Sequence[str]
) -> tuple[Shape, Callable[[Row], Row], list[str]]:
    """Where the known arguments come from, and the columns after the literal was matched."""
    sources: list[int | str] = []
    known: list[int] = []
    equal: list[tuple[int, int]] = []
    asked: dict[str, int] = {}
    for at, arg in enumerate(literal.args):
        if arg in asked:
            equal.append((asked[arg], at))
        elif arg.startswith("?") and arg not in columns:
            asked[arg] = at
        else:
            known.append(at)
            sources.append(columns.index(arg) if arg.startswith("?") else arg)
    shape = (tuple(known), tuple(asked.values()), tuple(equal))
    return shape, _getter(sources), [*columns, *asked]


def _getter(sources: Sequence[int | str]) -> Callable[[Row], Row]:
    """What builds a tuple from columns of a row (numbers) and constants, as fast as can be."""
    columns = [source for source in sources if isinstance(source, int)]
    if not columns:
        constants = tuple(str(source) for source in sources)
        return lambda row: constants
    if len(columns) < len(sources):
        return lambda row: tuple(row[s] if isinstance(s, int) else s for s in sources)
    if len(columns) > 1:
        return itemgetter(*columns)
    at = columns[0]
    return lambda row: (row[at],)
