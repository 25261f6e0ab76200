"""Which facts can ever come true, judged as fast-downward judges it.

Its translator drops whatever no sequence of actions could bring about when nothing is ever made
false again. That shows in a game: a change of a fact that can never be true is not reported, and
a game whose goal is out of reach is not playable. Only the facts are worked out here, not the
ground actions, so it takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rpms.envs.alfworld.conditions import Literal, Typed
from rpms.envs.alfworld.joins import BoundPlan, Relation, make_plan
from rpms.envs.alfworld.rules import Action, Domain, Problem

Certain = Callable[[Literal, str, str], bool]
Relations = Mapping[str, Relation]


def reachable_facts(
    domain: Domain, problem: Problem, start: Relations, certain: Certain
) -> dict[str, Relation]:
    """The facts of every changing predicate that can come true, those of the start included."""
    asked = _asked_about(domain, problem)
    relations = {
        name: relation.copy() if name in domain.fluents else relation
        for name, relation in start.items()
    }
    rules = [
        rule for action in domain.actions for rule in _rules(action, asked, relations, certain)
    ]
    changed = set(relations)
    while changed:
        due = [rule for rule in rules if not changed.isdisjoint(rule.reads)]
        changed = {name for rule in due for name in rule.fire(relations)}
    return relations


def goal_in_reach(problem: Problem, relations: Relations, certain: Certain) -> bool:
    """Whether some clause of the goal could hold."""
    return any(
        make_plan(
            _positive(clause.literals), clause.variables, (), relations, certain, project=True
        )
        .attach(relations)
        .rows()
        for clause in problem.goal
    )


class _Rule:
    """One clause of an action, with all that follows from it."""

    def __init__(
        self, body: list[Literal], heads: list[Literal], variables: Typed,
        relations: Relations, certain: Certain,
    ) -> None:  # fmt: skip
        wanted = list(dict.fromkeys(a for head in heads for a in head.args if a.startswith("?")))
        plan = make_plan(body, variables, wanted, relations, certain, project=True)
        self._plan: BoundPlan = plan.attach(relations)
        self._heads = heads
        self._wanted = wanted
        self.reads = {one.predicate for one in body} or set(relations)

    def fire(self, relations: Relations) -> Iterable[str]:
        """Add what follows; the predicates that gained a fact."""
        gained = set()
        for row in self._plan.rows():
            values = dict(zip(self._wanted, row, strict=True))
            for head in self._heads:
                args = tuple(values.get(arg, arg) for arg in head.args)
                if relations[head.predicate].add(args):
                    gained.add(head.predicate)
        return gained


def _rules(
    action: Action, asked: set[str], relations: Relations, certain: Certain
) -> Iterable[_Rule]:
    effects = [e for e in action.effects if not e.literal.negated and e.literal.predicate in asked]
    done: list[tuple[frozenset[Literal], frozenset[tuple[str, str]]]] = []
    for clause in sorted(action.clauses, key=lambda one: len(_positive(one.literals))):
        body = frozenset(_positive(clause.literals))
        # What asks for less, of no more objects, already leads to everything this one does.
        if any(less <= body and fewer <= set(clause.variables) for less, fewer in done):
            continue
        done.append((body, frozenset(clause.variables)))
        variables = action.parameters + clause.variables
        plain = [e.literal for e in effects if not _positive(e.condition)]
        if plain:
            yield _Rule(sorted(body), plain, variables, relations, certain)
        for effect in effects:
            if extra := _positive(effect.condition):
                literals = sorted({*body, *extra})
                yield _Rule(literals, [effect.literal], variables, relations, certain)


def _asked_about(domain: Domain, problem: Problem) -> set[str]:
    """Predicates whose reach matters: what a rule or a deletion mentions, not mere records."""
    conditions = [
        literal
        for action in domain.actions
        for group in (*(c.literals for c in action.clauses), *(e.condition for e in action.effects))
        for literal in group
    ]
    deleted = [e.literal for a in domain.actions for e in a.effects if e.literal.negated]
    goal = [literal for clause in problem.goal for literal in clause.literals]
    return {literal.predicate for literal in [*conditions, *deleted, *goal]}


def _positive(literals: Iterable[Literal]) -> list[Literal]:
    return [one for one in literals if not one.negated]
