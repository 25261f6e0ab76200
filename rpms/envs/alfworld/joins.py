"""Finding everything that satisfies a conjunction, without trying every tuple of objects.

Facts stand in relations, one per predicate, with an index for every way a plan looks them up.
A plan takes the literals of a clause in an order chosen once per game: what few facts can match
comes first, so that most actions are ruled out by their first literal (an empty hand, the place
where the agent stands).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rpms.envs.alfworld.conditions import Literal, Typed

Row = tuple[str, ...]
Shape = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]
"""Positions that are known, positions asked for, and pairs that must be equal."""
_Index = dict[Any, dict[Row, None]]
_NONE: dict[Row, None] = {}


def type_predicate(kind: str) -> str:
    """The predicate that holds for the objects of a type; no PDDL name has a blank in it."""
    return f"type {kind}"


class Relation:
    """All facts of one predicate, found by any positions that a plan has asked for."""

    def __init__(self, rows: Iterable[Row]) -> None:
        """A relation with these facts."""
        self.rows = set(rows)
        self._indexes: dict[Shape, _Index] = {}

    def __contains__(self, row: object) -> bool:
        """Whether a fact holds."""
        return row in self.rows

    def __len__(self) -> int:
        """How many facts hold."""
        return len(self.rows)

    def copy(self) -> Relation:
        """The same facts and indexes, to be changed apart from these."""
        other = Relation(self.rows)
        other._indexes = {
            shape: {key: dict(found) for key, found in index.items()}
            for shape, index in self._indexes.items()
        }
        return other

    def index(self, shape: Shape) -> _Index:
        """The facts by what stands at the known positions, kept up to date from now on."""
        if shape not in self._indexes:
            index: _Index = {}
            self._indexes[shape] = index
            for row in sorted(self.rows):
                _enter(index, shape, row)
        return self._indexes[shape]

    def put(self, row: Row, true: bool) -> None:
        """Make a fact true or not."""
        if true:
            self.add(row)
        else:
            self.remove(row)

    def add(self, row: Row) -> bool:
        """Make a fact true; whether it was not."""
        if row in self.rows:
            return False
        self.rows.add(row)
        for shape, index in self._indexes.items():
            _enter(index, shape, row)
        return True

    def remove(self, row: Row) -> None:
        """Make a fact false; it need not have been true."""
        if row not in self.rows:
            return
        self.rows.remove(row)
        for (known, asked, equal), index in self._indexes.items():
            if all(row[a] == row[b] for a, b in equal):
                del index[_pick(row, known)][tuple(row[at] for at in asked)]


def _enter(index: _Index, shape: Shape, row: Row) -> None:
    known, asked, equal = shape
    if all(row[a] == row[b] for a, b in equal):
        index.setdefault(_pick(row, known), {})[tuple(row[at] for at in asked)] = None


def _pick(row: Row, positions: Sequence[int]) -> Any:
    """A key as ``itemgetter`` makes it: a bare value for one position, else a tuple."""
    return row[positions[0]] if len(positions) == 1 else tuple(row[at] for at in positions)


@dataclass(frozen=True, slots=True)
class _Step:
    """One literal of a plan: where its known arguments are in a row, and what it adds to it."""

    predicate: str
    negated: bool
    shape: Shape
    key: Callable[[Row], Any]
    keep: Callable[[Row], Row] | None
    """Drops what no later literal needs, after which equal rows are one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A clause in the order it is looked up; ``arrange`` picks what was asked for."""

    steps: tuple[_Step, ...]
    arrange: Callable[[Row], Row]

    def attach(self, relations: Mapping[str, Relation]) -> BoundPlan:
        """Make a plan ready for the facts of one state."""
        return BoundPlan(self, relations)


class BoundPlan:
    """A plan with the indexes of one state's relations at hand."""

    def __init__(self, plan: Plan, relations: Mapping[str, Relation]) -> None:
        """Look the indexes up once; they follow the facts by themselves."""
        self._arrange = plan.arrange
        self._steps: list[tuple[bool, Any, Callable[[Row], Any], Callable[[Row], Row] | None]] = [
            (
                step.negated,
                relations[step.predicate].rows
                if step.negated
                else relations[step.predicate].index(step.shape),
                step.key,
                step.keep,
            )
            for step in plan.steps
        ]

    def rows(self) -> list[Row]:
        """Every way to satisfy the clause."""
        rows: list[Row] = [()]
        for negated, source, key, keep in self._steps:
            if negated:
                rows = [row for row in rows if key(row) not in source]
            else:
                rows = [row + more for row in rows for more in source.get(key(row), _NONE)]
            if not rows:
                return rows
            if keep is not None:
                rows = list(dict.fromkeys(map(keep, rows)))
        return list(map(self._arrange, rows))


def make_plan(
    literals: Iterable[Literal],
    variables: Typed,
    wanted: Sequence[str],
    relations: Mapping[str, Relation],
    certain: Callable[[Literal, str, str], bool],
    *,
    project: bool = False,
) -> Plan:
    """Order the literals of a clause.

    Args:
        literals: the clause.
        variables: every variable in it, with its type.
        wanted: the variables whose values are asked for.
        relations: the facts at the start, for judging how many rows a literal leaves.
        certain: whether a literal alone guarantees a variable's type.
        project: drop values as soon as nothing needs them.
    """
    literals = list(literals)
    pending = [one for one in literals if not one.negated]
    for variable, kind in variables:
        if not any(variable in one.args and certain(one, variable, kind) for one in pending):
            pending.append(Literal(type_predicate(kind), (variable,), False))
    pending += [one for one in literals if one.negated]
    columns: list[str] = []
    steps: list[_Step] = []
    while pending:
        best = min(pending, key=lambda one: _cost(one, columns, relations[one.predicate]))
        pending.remove(best)
        shape, key, columns = _look_up(best, columns)
        keep = None
        if project:
            needed = {*wanted, *(arg for one in pending for arg in one.args)}
            kept = [name for name in columns if name in needed]
            if len(kept) < len(columns):
                keep = _getter([columns.index(name) for name in kept])
                columns = kept
        steps.append(_Step(best.predicate, best.negated, shape, key, keep))
    return Plan(tuple(steps), _getter([columns.index(name) for name in wanted]))


def _cost(literal: Literal, columns: Sequence[str], relation: Relation) -> tuple[float, int]:
    """How many rows each row becomes, roughly; a negation must wait for its variables."""
    free = {arg for arg in literal.args if arg.startswith("?") and arg not in columns}
    if literal.negated:
        return (float("inf") if free else 0.5, 0)
    if not free:
        return (0.25 if relation.rows else 0.0, len(relation))
    size = float(len(relation))
    for at, arg in enumerate(literal.args):
        if arg not in free:
            size /= max(1, len({row[at] for row in relation.rows}))
    return (size, len(relation))


def _look_up(
    literal: Literal, columns: Sequence[str]
) -> tuple[Shape, Callable[[Row], Any], list[str]]:
    """Where the known arguments come from, and the columns after the literal was matched."""
    sources: list[int | str] = []
    known: list[int] = []
    asked: list[int] = []
    equal: list[tuple[int, int]] = []
    seen: dict[str, int] = {}
    after = list(columns)
    for at, arg in enumerate(literal.args):
        if arg in seen:
            equal.append((seen[arg], at))
        elif arg.startswith("?") and arg not in columns:
            seen[arg] = at
            asked.append(at)
            after.append(arg)
        else:
            known.append(at)
            sources.append(columns.index(arg) if arg.startswith("?") else arg)
    shape = (tuple(known), tuple(asked), tuple(equal))
    return shape, _keyed(sources, whole=literal.negated), after


def _keyed(sources: Sequence[int | str], *, whole: bool) -> Callable[[Row], Any]:
    """Builds a key from columns (numbers) and constants; ``whole`` keys are always tuples."""
    columns = [source for source in sources if isinstance(source, int)]
    if not columns:
        constants = tuple(str(source) for source in sources)
        fixed = constants[0] if len(constants) == 1 and not whole else constants
        return lambda row: fixed
    if len(columns) == len(sources):
        if len(columns) > 1:
            return itemgetter(*columns)
        at = columns[0]
        return (lambda row: (row[at],)) if whole else itemgetter(at)
    return lambda row: tuple(row[s] if isinstance(s, int) else s for s in sources)


def _getter(positions: Sequence[int]) -> Callable[[Row], Row]:
    if len(positions) > 1:
        return itemgetter(*positions)
    if positions:
        at = positions[0]
        return lambda row: (row[at],)
    return lambda row: ()
