"""A game's rules at work: what holds, what can be done, what it changes.

fast-downward turns every clause of an action into operators of its own, leaves out those that
change nothing, and reports what an operator may change whether or not its condition was met.
Games are played on what it reports, so all three are reproduced here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from rpms.envs.alfworld.conditions import Atom, Clause, Literal, ground
from rpms.envs.alfworld.forms import PddlError
from rpms.envs.alfworld.joins import Plan, Relation, Row, make_plan, type_predicate
from rpms.envs.alfworld.reachable import goal_in_reach, reachable_facts
from rpms.envs.alfworld.rules import Action, Domain, Effect, Problem

GOAL_FACT: Atom = ("new-axiom@0", ())
"""What the planner calls a goal with quantifiers; it is a fact where it holds at the start."""

_Condition = tuple[tuple[Atom, bool], ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """One thing that can be done to certain objects, in one of the ways its action allows."""

    action: str
    args: Row
    order: tuple[tuple[tuple[Atom, bool], ...], str] = field(repr=False)
    """Operators that answer to the same words are tried in this order."""
    changes: tuple[tuple[_Condition, Atom, bool], ...]
    """What becomes true (or false: True) under which condition."""
    added: tuple[Atom, ...]
    removed: tuple[Atom, ...]
    """What is reported as made true and made false, whatever the conditions said."""


class Ground:
    """The rules of one game, prepared once and never changed afterwards."""

    def __init__(self, domain: Domain, problem: Problem) -> None:
        """Prepare a game.

        Raises:
            PddlError: its goal can never be met.
        """
        self.domain = domain
        self.problem = problem
        self._sure: dict[tuple[str, int, str], bool] = {}
        self.start = self._relations()
        self._reachable = reachable_facts(domain, problem, self.start, self._certain)
        if not goal_in_reach(problem, self._reachable, self._certain):
            raise PddlError("the goal can never be met")
        if problem.plain_goal and not any(
            one.predicate in domain.fluents for one in problem.goal[0].literals
        ):
            raise PddlError("the goal asks for nothing that can change")
        self.plans = [
            (action, clause, self._plan(clause, action))
            for action in domain.actions
            for clause in action.clauses
        ]
        self._quick = [
            (
                [e.literal for e in action.effects if not e.condition and not e.literal.negated],
                [one for one in clause.literals if not one.negated],
            )
            for action, clause, _ in self.plans
        ]
        self.goals = [self._plan(clause, None) for clause in problem.goal]

    @cached_property
    def facts(self) -> frozenset[Atom]:
        """What TextWorld knows at the start."""
        derived = not self.problem.plain_goal and State(self).won()
        return frozenset([*self.problem.init, *([GOAL_FACT] if derived else [])])

    def operator(self, number: int, row: Row) -> Operator | None:
        """The operator of a plan and its objects; None where it would change nothing."""
        action, clause, _ = self.plans[number]
        values = self._values(number, row)
        known = self._simplified(clause.literals, values) or ()
        required = {atom: not negated for atom, negated in known}
        adds: dict[Atom, list[_Condition]] = {}
        removes: dict[Atom, list[_Condition]] = {}
        for effect in action.effects:
            self._instantiate(effect, values, adds, removes)
        for atom, conditions in adds.items():
            if atom in removes:
                removes[atom] = [one for one in removes[atom] if one not in conditions]
        added = [
            atom
            for atom, conditions in adds.items()
            if required.get(atom) is not True
            and any(_compatible(condition, required) for condition in conditions)
        ]
        removed = [
            atom
            for atom, conditions in removes.items()
            if required.get(atom) is not False
            and any(_can_remove(atom, one, adds.get(atom, []), required) for one in conditions)
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

    def changes_something(self, number: int, row: Row) -> bool:
        """Whether a plan's operator exists at all, as a rule without working it out."""
        plain, required = self._quick[number]
        values = None
        for literal in plain:
            same = [one for one in required if one.predicate == literal.predicate]
            if not same:
                return True
            values = values or self._values(number, row)
            ((atom, _),) = ground((literal,), values)
            if all(atom != one for one, _ in ground(tuple(same), values)):
                return True
        return self.operator(number, row) is not None

    def _values(self, number: int, row: Row) -> dict[str, str]:
        action, clause, _ = self.plans[number]
        names = [name for name, _ in action.parameters + clause.variables]
        return dict(zip(names, row, strict=True))

    def _instantiate(
        self,
        effect: Effect,
        values: Mapping[str, str],
        adds: dict[Atom, list[_Condition]],
        removes: dict[Atom, list[_Condition]],
    ) -> None:
        condition = self._simplified(effect.condition, values)
        ((atom, negated),) = ground((effect.literal,), values)
        if condition is None or (negated and not self._can_be(atom)):
            return
        (removes if negated else adds).setdefault(atom, []).append(condition)

    def _simplified(
        self, literals: tuple[Literal, ...], values: Mapping[str, str]
    ) -> _Condition | None:
        """What is left of a conjunction to be asked of a state; None if it never holds."""
        left: dict[Atom, bool] = {}
        for atom, negated in ground(literals, values):
            if atom[0] in self.domain.fluents:
                if self._can_be(atom):
                    if left.setdefault(atom, negated) != negated:
                        return None
                elif not negated:
                    return None
            elif (atom[1] in self.start[atom[0]]) == negated:
                return None
        return tuple(left.items())

    def _can_be(self, atom: Atom) -> bool:
        return atom[1] in self._reachable[atom[0]]

    def _relations(self) -> dict[str, Relation]:
        rows: dict[str, list[Row]] = {name: [] for name in self.domain.predicates}
        rows["="] = [(name, name) for name in self.problem.objects]
        for action in self.domain.actions:
            for _, kind in [
                *action.parameters, *(v for clause in action.clauses for v in clause.variables)
            ]:  # fmt: skip
                # A type that was never declared has no objects; the official rules have one.
                rows.setdefault(type_predicate(kind), [])
        for clause in self.problem.goal:
            for _, kind in clause.variables:
                rows.setdefault(type_predicate(kind), [])
        for name, kind in self.problem.objects.items():
            for above in (kind, *self.domain.types.get(kind, ())):
                rows.setdefault(type_predicate(above), []).append((name,))
        for name, args in self.problem.init:
            rows.setdefault(name, []).append(args)
        return {name: Relation(found) for name, found in rows.items()}

    def _certain(self, literal: Literal, variable: str, kind: str) -> bool:
        """Whether all facts of a predicate, at any time, have objects of a type in one place."""
        key = (literal.predicate, literal.args.index(variable), kind)
        if key not in self._sure:
            self._sure[key] = self._always(*key)
        return self._sure[key]

    def _always(self, predicate: str, at: int, kind: str) -> bool:
        members = self.start[type_predicate(kind)].rows
        if any((row[at],) not in members for row in self.start[predicate].rows):
            return False
        for action in self.domain.actions:
            types = dict(action.parameters)
            for effect in action.effects:
                if effect.literal.predicate == predicate and not effect.literal.negated:
                    arg = effect.literal.args[at]
                    given = types.get(arg)
                    if given is None or not self.domain.is_a(given, kind):
                        return False
        return True

    def _plan(self, clause: Clause, action: Action | None) -> Plan:
        variables = (action.parameters if action else ()) + clause.variables
        wanted = [name for name, _ in variables] if action else []
        return make_plan(
            clause.literals, variables, wanted, self.start, self._certain, project=action is None
        )


class State:
    """What is true in a running game; every engine has one of its own."""

    def __init__(self, ground_rules: Ground) -> None:
        """The start of a game."""
        self._fluents = ground_rules.domain.fluents
        self.relations = {
            name: relation.copy() if name in self._fluents else relation
            for name, relation in ground_rules.start.items()
        }
        self._plans = [plan.attach(self.relations) for _, _, plan in ground_rules.plans]
        self._goals = [plan.attach(self.relations) for plan in ground_rules.goals]

    def applicable(self) -> Iterable[tuple[int, Row]]:
        """Every plan of the game's that holds now, by its number, and for which objects."""
        for number, plan in enumerate(self._plans):
            for row in plan.rows():
                yield number, row

    def won(self) -> bool:
        """Whether the goal is met."""
        return any(plan.rows() for plan in self._goals)

    def apply(self, operator: Operator) -> None:
        """Change what an operator changes; what it makes true wins over what it makes false."""
        due = [
            (atom, false)
            for condition, atom, false in operator.changes
            if all((one[1] in self.relations[one[0]]) != negated for one, negated in condition)
        ]
        for (name, args), false in due:
            if false:
                self.relations[name].remove(args)
        for (name, args), false in due:
            if not false:
                self.relations[name].add(args)


def _can_remove(
    atom: Atom, condition: _Condition, adds: list[_Condition], required: Mapping[Atom, bool]
) -> bool:
    """Whether a fact can be made false where it is true and nothing makes it true again."""
    for denied in product(*adds):
        wanted = {**required, atom: True}
        literals = [*condition, *((one, not negated) for one, negated in denied)]
        if all(wanted.setdefault(one, not negated) != negated for one, negated in literals):
            return True
    return False


def _compatible(condition: _Condition, required: Mapping[Atom, bool]) -> bool:
    """Whether a condition can hold beside what the operator itself requires."""
    return all(required.get(atom, not negated) != negated for atom, negated in condition)
