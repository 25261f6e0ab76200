"""A game's rules at work: what holds, what can be done, what it changes.

fast-downward turns every clause of an action into operators of its own, leaves out those that
change nothing, and reports what an operator may change whether or not its condition was met. Its
translator drops whatever no sequence of actions could bring about when nothing is ever made false
again: a change of a fact that can never be true is not reported, and a game whose goal is out of
reach is not playable. Games are played on what it reports, so all of it is reproduced here; of
what can be reached, only the facts are worked out and not the ground actions, which takes
milliseconds.

Everything that satisfies a conjunction is found without trying every tuple of objects. Facts stand
in relations, one per predicate, with an index for every way a plan looks them up. A plan takes the
literals of a clause in an order chosen once per game: what few facts can match comes first, so that
most actions are ruled out by their first literal (an empty hand, the place where the agent stands).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

from rpms.envs.alfworld.pddl import Action, Atom, Clause, Domain, Literal, PddlError, Problem, Typed

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
    known, free, equal = shape
    if all(row[a] == row[b] for a, b in equal):
        rows = index.setdefault(tuple(row[at] for at in known), {})
        key = tuple(row[at] for at in free)
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
    names: Sequence[str],
    relations: Mapping[str, Relation],
    certain: Certain,
) -> Plan:
    """Order the literals of a clause by how many rows each leaves of the facts at the start."""
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
    return Plan(tuple(steps), _getter([columns.index(name) for name in names]))


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
    free: dict[str, int] = {}
    for at, arg in enumerate(literal.args):
        if arg in free:
            equal.append((free[arg], at))
        elif arg.startswith("?") and arg not in columns:
            free[arg] = at
        else:
            known.append(at)
            sources.append(columns.index(arg) if arg.startswith("?") else arg)
    shape = (tuple(known), tuple(free.values()), tuple(equal))
    return shape, _getter(sources), [*columns, *free]


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


Relations = Mapping[str, Relation]
_Condition = tuple[tuple[Atom, bool], ...]
"""What has to hold, or (True) must not."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One thing that can be done to certain objects, in one of the ways its action allows."""

    action: str
    args: Row
    order: tuple[_Condition, str] = field(repr=False)
    """Operators that answer to the same words are tried in this order."""
    changes: tuple[tuple[_Condition, Atom, bool], ...]
    """What becomes true (or false: True) under which condition."""
    added: tuple[Atom, ...]
    removed: tuple[Atom, ...]
    """What is reported as made true and made false, whatever the conditions said."""


class Ground:
    """The rules of one game, prepared once and never changed afterwards."""

    def __init__(self, domain: Domain, problem: Problem) -> None:
        self.domain = domain
        self.problem = problem
        self._sure: dict[tuple[str, int, str], bool] = {}
        self.start = self._relations()
        self._reachable = _reachable_facts(domain, problem, self.start, self._certain)
        if not any(
            make_plan(
                _positive(clause.literals), clause.variables, (), self._reachable, self._certain
            ).attach(self._reachable)()
            for clause in problem.goal
        ):
            raise PddlError("the goal can never be met")
        self.plans = [
            (action, clause, self._plan(clause, action))
            for action in domain.actions
            for clause in action.clauses
        ]
        self.goals = [self._plan(clause, None) for clause in problem.goal]

    def operator(self, number: int, row: Row) -> Operator | None:
        """The operator of a plan and its objects; None where it would change nothing."""
        action, clause, _ = self.plans[number]
        values = self._values(number, row)
        known = self._simplified(clause.literals, values) or ()
        required = {atom: not negated for atom, negated in known}
        adds: dict[Atom, list[_Condition]] = {}
        removes: dict[Atom, list[_Condition]] = {}
        for effect in action.effects:
            condition = self._simplified(effect.condition, values)
            atom, negated = _ground(effect.literal, values)
            if condition is not None and (not negated or self._can_be(atom)):
                (removes if negated else adds).setdefault(atom, []).append(condition)
        for atom, conditions in adds.items():
            if atom in removes:
                removes[atom] = [
                    condition for condition in removes[atom] if condition not in conditions
                ]
        added = [
            atom
            for atom, conditions in adds.items()
            if required.get(atom) is not True
            and any(_fits(condition, dict(required)) for condition in conditions)
        ]
        removed = [
            atom
            for atom, conditions in removes.items()
            if required.get(atom) is not False
            and any(
                _can_remove(atom, condition, adds.get(atom, []), required)
                for condition in conditions
            )
        ]
        if not added and not removed:
            return None
        args = row[: len(action.parameters)]
        return Operator(
            action=action.name,
            args=args,
            order=(tuple(sorted(known)), f"({' '.join([action.name, *args])})"),
            changes=tuple(
                (condition, atom, false)
                for false, group in ((True, removes), (False, adds))
                for atom, conditions in group.items()
                for condition in conditions
            ),
            added=tuple(added),
            removed=tuple(removed),
        )

    def _values(self, number: int, row: Row) -> dict[str, str]:
        action, clause, _ = self.plans[number]
        names = [name for name, _ in action.parameters + clause.variables]
        return dict(zip(names, row, strict=True))

    def _simplified(
        self, literals: tuple[Literal, ...], values: Mapping[str, str]
    ) -> _Condition | None:
        """What is left of a conjunction to be asked of a state; None if it never holds."""
        remaining: dict[Atom, bool] = {}
        for literal in literals:
            atom, negated = _ground(literal, values)
            if atom[0] in self.domain.fluents:
                if self._can_be(atom):
                    if remaining.setdefault(atom, negated) != negated:
                        return None
                elif not negated:
                    return None
            elif (atom[1] in self.start[atom[0]].rows) == negated:
                return None
        return tuple(remaining.items())

    def _can_be(self, atom: Atom) -> bool:
        return atom[1] in self._reachable[atom[0]].rows

    def _relations(self) -> dict[str, Relation]:
        rows: dict[str, list[Row]] = {name: [] for name in self.domain.predicates}
        rows["="] = [(name, name) for name in self.problem.objects]
        actions = self.domain.actions
        clauses = [*self.problem.goal, *(clause for a in actions for clause in a.clauses)]
        for typed in (*(a.parameters for a in actions), *(clause.variables for clause in clauses)):
            for _, kind in typed:
                # A type that was never declared has no objects; the official rules have one.
                rows.setdefault(type_predicate(kind), [])
        for name, kind in self.problem.objects.items():
            for above in (kind, *self.domain.types.get(kind, ())):
                rows.setdefault(type_predicate(above), []).append((name,))
        for name, args in self.problem.init:
            rows.setdefault(name, []).append(args)
        return {name: Relation(facts) for name, facts in rows.items()}

    def _certain(self, literal: Literal, variable: str, kind: str) -> bool:
        """Whether all facts of a predicate, at any time, have objects of a type in one place."""
        key = (literal.predicate, literal.args.index(variable), kind)
        if key not in self._sure:
            self._sure[key] = self._always(*key)
        return self._sure[key]

    def _always(self, predicate: str, at: int, kind: str) -> bool:
        members = self.start[type_predicate(kind)].rows
        return all((row[at],) in members for row in self.start[predicate].rows) and all(
            self.domain.is_a(dict(action.parameters).get(effect.literal.args[at], ""), kind)
            for action in self.domain.actions
            for effect in action.effects
            if effect.literal.predicate == predicate and not effect.literal.negated
        )

    def _plan(self, clause: Clause, action: Action | None) -> Plan:
        variables = (action.parameters if action else ()) + clause.variables
        names = [name for name, _ in variables] if action else []
        return make_plan(clause.literals, variables, names, self.start, self._certain)


class State:
    """What is true in a running game; every engine has one of its own."""

    def __init__(self, ground_rules: Ground) -> None:
        self.relations = _copied(ground_rules.start, ground_rules.domain)
        self._plans = [plan.attach(self.relations) for _, _, plan in ground_rules.plans]
        self._goals = [plan.attach(self.relations) for plan in ground_rules.goals]

    def applicable(self) -> Iterable[tuple[int, Row]]:
        """Every plan of the game's that holds now, by its number, and for which objects."""
        for number, rows in enumerate(self._plans):
            for row in rows():
                yield number, row

    def won(self) -> bool:
        """Whether the goal is met."""
        return any(rows() for rows in self._goals)

    def apply(self, operator: Operator) -> None:
        """Change what an operator changes; what it makes true wins over what it makes false."""
        due = [
            (atom, false)
            for condition, atom, false in operator.changes
            if all(
                (needed[1] in self.relations[needed[0]].rows) != negated
                for needed, negated in condition
            )
        ]
        for (name, args), false in sorted(due, key=lambda change: not change[1]):
            self.relations[name].put(args, not false)


def _copied(relations: Relations, domain: Domain) -> dict[str, Relation]:
    """Relations to be changed apart; what no action changes is shared."""
    return {
        name: relation.copy() if name in domain.fluents else relation
        for name, relation in relations.items()
    }


def _ground(literal: Literal, values: Mapping[str, str]) -> tuple[Atom, bool]:
    """A literal with values for its variables."""
    args = tuple(values.get(arg, arg) for arg in literal.args)
    return (literal.predicate, args), literal.negated


def _can_remove(
    atom: Atom, condition: _Condition, adds: list[_Condition], required: Mapping[Atom, bool]
) -> bool:
    """Whether a fact can be made false where it is true and nothing makes it true again."""
    return any(
        _fits(
            (*condition, *((denied_atom, not negated) for denied_atom, negated in denied)),
            {**required, atom: True},
        )
        for denied in product(*adds)
    )


def _fits(condition: _Condition, required: dict[Atom, bool]) -> bool:
    """Whether a condition can hold beside what else is required."""
    return all(required.setdefault(atom, not negated) != negated for atom, negated in condition)


def _reachable_facts(
    domain: Domain, problem: Problem, start: Relations, certain: Certain
) -> dict[str, Relation]:
    """The facts of every changing predicate that can come true, those of the start included."""
    # Predicates whose reach matters: what a rule or a deletion mentions, not mere records.
    clauses = [*problem.goal, *(clause for action in domain.actions for clause in action.clauses)]
    effects = [effect for action in domain.actions for effect in action.effects]
    mentioned = {literal.predicate for clause in clauses for literal in clause.literals}
    mentioned |= {literal.predicate for effect in effects for literal in effect.condition}
    mentioned |= {effect.literal.predicate for effect in effects if effect.literal.negated}
    relations = _copied(start, domain)
    rules = [
        _Rule(body, heads, variables, relations, certain)
        for action in domain.actions
        for body, heads, variables in _consequences(action, mentioned)
    ]
    changed = set(relations)
    while changed:
        due = [rule for rule in rules if not changed.isdisjoint(rule.reads)]
        changed = {name for rule in due for name in rule.fire(relations)}
    return relations


def _consequences(
    action: Action, mentioned: set[str]
) -> Iterable[tuple[list[Literal], list[Literal], Typed]]:
    """What makes which facts true, whatever is made false: literals, effects, variables."""
    effects = [
        (_positive(effect.condition), effect.literal)
        for effect in action.effects
        if not effect.literal.negated and effect.literal.predicate in mentioned
    ]
    bodies: list[set[Literal]] = []
    for clause in sorted(action.clauses, key=lambda clause: len(clause.literals)):
        body = set(_positive(clause.literals))
        # What asks for less of the same objects already leads to everything that this one does.
        if not clause.variables and any(less <= body for less in bodies):
            continue
        bodies += [] if clause.variables else [body]
        variables = action.parameters + clause.variables
        if plain := [literal for condition, literal in effects if not condition]:
            yield sorted(body), plain, variables
        for condition, literal in effects:
            if condition:
                yield sorted({*body, *condition}), [literal], variables


class _Rule:
    """One clause of an action, with all that follows from it."""

    def __init__(
        self, body: list[Literal], heads: list[Literal], variables: Typed,
        relations: Relations, certain: Certain,
    ) -> None:  # fmt: skip
        names = list(dict.fromkeys(a for h in heads for a in h.args if a.startswith("?")))
        self._rows = make_plan(body, variables, names, relations, certain).attach(relations)
        self._heads = [
            (head.predicate, _getter([names.index(a) if a in names else a for a in head.args]))
            for head in heads
        ]
        self.reads = {literal.predicate for literal in body} or set(relations)

    def fire(self, relations: Relations) -> Iterable[str]:
        """Add what follows; the predicates that gained a fact."""
        gained = set()
        for row in set(self._rows()):
            for name, args in self._heads:
                if relations[name].put(args(row), true=True):
                    gained.add(name)
        return gained


def _positive(literals: Iterable[Literal]) -> list[Literal]:
    return [literal for literal in literals if not literal.negated]
