"""PDDL conditions in the form they are looked up in: a choice of conjunctions.

``or`` becomes several clauses and ``exists`` becomes further variables of a clause, as in
fast-downward, where each clause of an action is an operator of its own. Universal conditions
would need derived facts; no ALFWorld game has any, so they are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, product
from typing import NamedTuple

from rpms.envs.alfworld.forms import Form, Node, PddlError

Atom = tuple[str, tuple[str, ...]]
"""A predicate and its arguments."""
Typed = tuple[tuple[str, str], ...]
"""Names with their types, in order."""


class Literal(NamedTuple):
    """An atom that has to hold, or (negated) must not; arguments may be ?variables."""

    predicate: str
    args: tuple[str, ...]
    negated: bool


class Clause(NamedTuple):
    """A conjunction, with the variables that ``exists`` added to those of the action."""

    variables: Typed
    literals: tuple[Literal, ...]


def ground(
    literals: tuple[Literal, ...], values: Mapping[str, str]
) -> tuple[tuple[Atom, bool], ...]:
    """Literals with values for their variables, as (atom, negated)."""
    return tuple(
        ((one.predicate, tuple(values.get(arg, arg) for arg in one.args)), one.negated)
        for one in literals
    )


def typed_list(form: Form, start: int, default: str = "object") -> Typed:
    """Names followed by ``- type``; what has no type gets the default one."""
    found: list[tuple[str, str]] = []
    waiting: list[str] = []
    items = iter(form[start:])
    for item in items:
        kind = next(items, None) if item == "-" else None
        if isinstance(item, Form) or isinstance(kind, Form) or (item == "-" and kind is None):
            what = f"({kind.head} ...)" if isinstance(kind, Form) else "a list of typed names"
            raise PddlError(f"line {form.line}: {what} is not understood as a type")
        if kind is None:
            waiting.append(item)
        else:
            found += [(name, kind) for name in waiting]
            waiting = []
    return (*found, *((name, default) for name in waiting))


class ConditionReader:
    """Reads the conditions of one domain."""

    def __init__(self, predicates: Mapping[str, int]) -> None:
        """``predicates`` are the declared ones, with the number of their arguments."""
        self._predicates = predicates
        self._fresh = count(1)

    def read(self, node: Node, scope: frozenset[str]) -> tuple[Clause, ...]:
        """A condition as a choice of clauses.

        Args:
            node: the PDDL text.
            scope: the variables that may stand in it.
        """
        return self._read(node, scope, {}, False)

    def literal(self, form: Form, scope: frozenset[str], *, negated: bool = False) -> Literal:
        """A single literal, in a condition or an effect."""
        inner: Node = form
        if form.head == "not" and len(form) == 2:
            inner, negated = form[1], not negated
        if not isinstance(inner, Form):
            raise PddlError(f"line {form.line}: '{inner}' is no condition")
        name, args = inner.head, inner.words(1)
        if name not in self._predicates:
            raise PddlError(f"line {inner.line}: ({name or '...'} ...) is not known here")
        if len(args) != self._predicates[name]:
            raise PddlError(f"line {inner.line}: ({name} ...) has {len(args)} arguments")
        for arg in args:
            if arg.startswith("?") and arg not in scope:
                raise PddlError(f"line {inner.line}: the variable {arg} is not declared")
        return Literal(name, args, negated)

    def _read(
        self, node: Node, scope: frozenset[str], names: Mapping[str, str], negated: bool
    ) -> tuple[Clause, ...]:
        if not isinstance(node, Form):
            raise PddlError(f"'{node}' is no condition")
        if node.head == "not" and len(node) == 2:
            return self._read(node[1], scope, names, not negated)
        if node.head in ("and", "or"):
            parts = [self._read(part, scope, names, negated) for part in node[1:]]
            both = (node.head == "and") != negated
            return _all(parts) if both else tuple(clause for part in parts for clause in part)
        if node.head == "exists" and not negated and len(node) == 3:
            return self._exists(node, scope, names)
        if node.head in ("exists", "forall", "imply"):
            sign = "a negated " if negated else ""
            raise PddlError(f"line {node.line}: {sign}({node.head} ...) is not supported")
        found = self.literal(node, scope, negated=negated)
        args = tuple(names.get(arg, arg) for arg in found.args)
        return (Clause((), (found._replace(args=args),)),)

    def _exists(
        self, node: Form, scope: frozenset[str], names: Mapping[str, str]
    ) -> tuple[Clause, ...]:
        if not isinstance(node[1], Form):
            raise PddlError(f"line {node.line}: (exists ...) without its variables")
        declared = typed_list(node[1], 0)
        # A name of its own for each, so that two quantifiers may both speak of ?r.
        inner = {name: f"{name}#{next(self._fresh)}" for name, _ in declared}
        variables = tuple((inner[name], kind) for name, kind in declared)
        clauses = self._read(node[2], scope | inner.keys(), {**names, **inner}, False)
        return tuple(Clause(variables + one.variables, one.literals) for one in clauses)


def _all(parts: list[tuple[Clause, ...]]) -> tuple[Clause, ...]:
    return tuple(
        Clause(
            tuple(variable for clause in choice for variable in clause.variables),
            tuple(dict.fromkeys(one for clause in choice for one in clause.literals)),
        )
        for choice in product(*parts)
    )
