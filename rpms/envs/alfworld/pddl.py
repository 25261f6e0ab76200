"""PDDL: the rules and the start of a game, read into immutable data.

Comments, case and the question mark are treated as fast-downward's reader treats them, because
the names that come out of it are printed in the games. A condition becomes a choice of
conjunctions: ``or`` makes several clauses and ``exists`` further variables of a clause, as in
fast-downward, where each clause of an action is an operator of its own. What a text uses and this
engine does not know is refused by name, never guessed; so are universal conditions, which would
need derived facts, and no ALFWorld game has any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, product
from typing import Any, NamedTuple

Atom = tuple[str, tuple[str, ...]]
"""A predicate and its arguments."""
Typed = tuple[tuple[str, str], ...]
"""Names with their types."""
Form = list[Any]
"""What stands between two brackets: words, and forms."""

_COMMENT = re.compile(r";.*")
_TOKEN = re.compile(r"[()]|\?[^\s()?]*|[^\s()?]+")
_PARTS = (":requirements", ":types", ":constants", ":predicates", ":functions", ":action")


class PddlError(ValueError):
    """A text that is no PDDL, or uses a construct that this engine does not know."""


def read_form(text: str) -> Form:
    """The one form that a PDDL file consists of."""
    tokens = _TOKEN.findall(_COMMENT.sub("", text).lower())
    if not all(token.isascii() and token.isprintable() for token in tokens):
        raise PddlError("a name in it is not plain ASCII")
    stack: list[Form] = [[]]
    for token in tokens:
        if token == "(":
            stack[-1].append([])
            stack.append(stack[-1][-1])
        elif token != ")":
            stack[-1].append(token)
        elif len(stack) > 1:
            stack.pop()
        else:
            raise PddlError("a closing bracket too many")
    if len(stack) > 1:
        raise PddlError("a bracket that is never closed")
    if len(stack[0]) != 1 or not isinstance(stack[0][0], list):
        raise PddlError("not one bracketed text")
    return stack[0][0]


def _typed(names: Form) -> Typed:
    """Names followed by ``- type``; what has no type is a plain ``object``."""
    typed: list[tuple[str, str]] = []
    waiting: list[str] = []
    items = iter(names)
    for item in items:
        if item == "-":
            kind = next(items, None)
            if not isinstance(kind, str):
                raise PddlError("a list of typed names is not understood")
            typed += [(name, kind) for name in waiting]
            waiting = []
        else:
            waiting.append(item)
    return (*typed, *((name, "object") for name in waiting))


class Literal(NamedTuple):
    """An atom that has to hold, or (negated) must not; arguments may be ?variables."""

    predicate: str
    args: tuple[str, ...]
    negated: bool


class Clause(NamedTuple):
    """A conjunction, with the variables that ``exists`` added to those of the action."""

    variables: Typed
    literals: tuple[Literal, ...]


class Effect(NamedTuple):
    """One thing an action changes, and under which condition."""

    condition: tuple[Literal, ...]
    literal: Literal


@dataclass(frozen=True, slots=True)
class Action:
    """What can be done: to whom, when, and what changes."""

    name: str
    parameters: Typed
    clauses: tuple[Clause, ...]
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """The rules of a family of games."""

    name: str
    types: Mapping[str, tuple[str, ...]]
    """Every type with all the types it is a kind of."""
    constants: Typed
    predicates: Mapping[str, int]
    actions: tuple[Action, ...]
    fluents: frozenset[str]
    """The predicates that some action changes."""

    def is_a(self, kind: str, other: str) -> bool:
        """Whether everything of one type is of another."""
        return kind == other or other in self.types.get(kind, ())


@dataclass(frozen=True, slots=True)
class Problem:
    """The start and the goal of one game."""

    objects: Mapping[str, str]
    init: tuple[Atom, ...]
    goal: tuple[Clause, ...]


class _Conditions:
    """Reads the conditions of a domain with these predicates."""

    def __init__(self, predicates: Mapping[str, int]) -> None:
        self._predicates = predicates
        self._fresh = count(1)

    def literal(self, form: Form) -> Literal:
        """A single literal, in a condition or an effect."""
        if form[0] == "not":
            inner = self.literal(form[1])
            return inner._replace(negated=not inner.negated)
        name, *args = form
        if self._predicates.get(name) != len(args) or not all(isinstance(a, str) for a in args):
            raise PddlError(f"({name} ...) is not known here")
        return Literal(name, tuple(args), False)

    def read(
        self, form: Form, names: Mapping[str, str] | None = None, negated: bool = False
    ) -> tuple[Clause, ...]:
        """A condition as a choice of clauses, with other ``names`` for some variables."""
        names = names or {}
        head, *inner = form
        if head == "not":
            return self.read(inner[0], names, not negated)
        if head in ("and", "or"):
            parts = [self.read(part, names, negated) for part in inner]
            both = (head == "and") != negated
            return _all(parts) if both else tuple(clause for part in parts for clause in part)
        if head == "exists" and not negated:
            declared, condition = inner
            # A name of its own for each, so that two quantifiers may both speak of ?r.
            fresh = {name: f"{name}#{next(self._fresh)}" for name, _ in _typed(declared)}
            variables = tuple((fresh[name], kind) for name, kind in _typed(declared))
            clauses = self.read(condition, {**names, **fresh})
            return tuple(Clause(variables + each.variables, each.literals) for each in clauses)
        if head in ("exists", "forall", "imply"):
            sign = "a negated " if negated else ""
            raise PddlError(f"{sign}({head} ...) is not supported")
        literal = self.literal(form)
        args = tuple(names.get(arg, arg) for arg in literal.args)
        return (Clause((), (Literal(literal.predicate, args, negated),)),)

    def action(self, entry: Form) -> Action | None:
        """An action; fast-downward leaves out those that change nothing, and so do we."""
        _, name, *rest = entry
        parts = dict(zip(rest[::2], rest[1::2], strict=True))
        if unknown := parts.keys() - {":parameters", ":precondition", ":effect"}:
            raise PddlError(f"(:action {name} ...): {min(unknown)} is not supported")
        effects = tuple(dict.fromkeys(self._effects(parts.get(":effect", []), ())))
        condition = parts.get(":precondition")
        clauses = self.read(condition) if condition else (Clause((), ()),)
        parameters = _typed(parts.get(":parameters", []))
        return Action(name, parameters, clauses, effects) if effects else None

    def _effects(self, form: Form, condition: tuple[Literal, ...]) -> Iterator[Effect]:
        head, *inner = form or [""]
        if head == "and":
            for part in inner:
                yield from self._effects(part, condition)
        elif head == "when":
            when, then = inner
            for clause in self.read(when):
                if clause.variables:
                    raise PddlError("(when (exists ...)) is not supported")
                yield from self._effects(then, condition + clause.literals)
        elif form and head != "increase":  # What an action costs matters to planners only.
            yield Effect(condition, self.literal(form))


def _all(parts: list[tuple[Clause, ...]]) -> tuple[Clause, ...]:
    return tuple(
        Clause(
            tuple(variable for clause in choice for variable in clause.variables),
            tuple(dict.fromkeys(each for clause in choice for each in clause.literals)),
        )
        for choice in product(*parts)
    )


@lru_cache(maxsize=16)
def read_domain(text: str) -> Domain:
    """Read a PDDL domain; the same text is read once."""
    _, (_, name), *parts = read_form(text)
    for head, *_ in parts:
        if head not in _PARTS:
            raise PddlError(f"({head} ...) is not supported here")
    fields: dict[str, Form] = {head: rest for head, *rest in parts}
    predicates = {"=": 2}
    for declared, *args in fields.get(":predicates", []):
        predicates[declared] = len(_typed(args))
    conditions = _Conditions(predicates)
    entries = [part for part in parts if part[0] == ":action"]
    actions = [action for entry in entries if (action := conditions.action(entry))]
    return Domain(
        name=name,
        types=_ancestors(_typed(fields.get(":types", []))),
        constants=_typed(fields.get(":constants", [])),
        predicates=predicates,
        actions=tuple(actions),
        fluents=frozenset(e.literal.predicate for action in actions for e in action.effects),
    )


def read_problem(text: str, domain: Domain) -> Problem:
    """Read the PDDL problem of one game; raises as ``read_domain`` does."""
    _, _, *sections = read_form(text)
    parts: dict[str, Form] = {head: rest for head, *rest in sections}
    if parts[":domain"] != [domain.name]:
        raise PddlError(f"it belongs to another domain than '{domain.name}'")
    objects = dict(domain.constants + _typed(parts.get(":objects", [])))
    # Costs and distances are numbers, which no text speaks of.
    init = [(head, tuple(args)) for head, *args in parts[":init"] if head not in ("=", "not")]
    for head, args in init:
        if unknown := [arg for arg in args if arg not in objects]:
            raise PddlError(f"({head} ...): {unknown[0]} is not declared")
    goal = _Conditions(domain.predicates).read(*parts[":goal"])
    return Problem(objects, tuple(dict.fromkeys(init)), goal)


def _ancestors(declared: Typed) -> dict[str, tuple[str, ...]]:
    """Every type with all the types it is a kind of, the nearest first."""
    parents = {name: parent for name, parent in declared if name != "object"}
    ancestors: dict[str, tuple[str, ...]] = {"object": ()}
    for name in parents:
        above: list[str] = []
        kind: str | None = parents[name]
        while kind and kind not in above:
            above.append(kind)
            kind = parents.get(kind)
        ancestors[name] = tuple(above)
    return ancestors
