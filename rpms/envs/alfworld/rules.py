"""The rules and the start of a game, read from its PDDL domain and problem.

Everything here is immutable, so games of the same domain share one. What a text uses and this
engine does not know is refused by name and line, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rpms.envs.alfworld.conditions import (
    Atom,
    Clause,
    ConditionReader,
    Literal,
    Typed,
    typed_list,
)
from rpms.envs.alfworld.forms import Form, Node, PddlError, read_form

_FIELDS = (":requirements", ":types", ":constants", ":predicates", ":functions")
_REQUIREMENTS = {
    ":strips", ":adl", ":typing", ":negation", ":equality", ":negative-preconditions",
    ":disjunctive-preconditions", ":existential-preconditions", ":quantified-preconditions",
    ":conditional-effects", ":action-costs",
}  # fmt: skip
_NOTHING: tuple[Clause, ...] = (Clause((), ()),)


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

    def is_a(self, kind: str, wanted: str) -> bool:
        """Whether everything of one type is of another."""
        return kind == wanted or wanted in self.types.get(kind, ())


@dataclass(frozen=True, slots=True)
class Problem:
    """The start and the goal of one game."""

    objects: Mapping[str, str]
    init: tuple[Atom, ...]
    goal: tuple[Clause, ...]
    plain_goal: bool
    """A conjunction without quantifiers; any other goal is a derived fact to the planner."""


@lru_cache(maxsize=16)
def read_domain(text: str) -> Domain:
    """Read a PDDL domain; the same text is read once.

    Raises:
        PddlError: it does not parse, or uses what this engine does not know.
    """
    form = read_form(text)
    if form.head != "define" or len(form) < 2 or _form(form, 1).head != "domain":
        raise PddlError("no (define (domain ...) ...)")
    fields: dict[str, Form] = {}
    entries: list[Form] = []
    for item in form[2:]:
        entry = _a_form(item, form)
        if entry.head in _FIELDS and not entries and entry.head not in fields:
            fields[entry.head] = entry
        elif entry.head == ":action":
            entries.append(entry)
        else:
            raise PddlError(f"line {entry.line}: ({entry.head or '...'} ...) is not supported here")
    for flag in fields.get(":requirements", Form(0))[1:]:
        if flag not in _REQUIREMENTS:
            raise PddlError(f"line {fields[':requirements'].line}: {flag} is not supported")
    predicates = {"=": 2}
    for item in fields.get(":predicates", Form(0))[1:]:
        declared = _a_form(item, form)
        predicates[declared.head] = len(typed_list(declared, 1))
    reader = ConditionReader(predicates)
    actions = [action for entry in entries if (action := _action(entry, reader))]
    return Domain(
        name=_form(form, 1).words(1)[0],
        types=_ancestors(typed_list(fields.get(":types", Form(0)), 1)),
        constants=typed_list(fields[":constants"], 1) if ":constants" in fields else (),
        predicates=predicates,
        actions=tuple(actions),
        fluents=frozenset(e.literal.predicate for action in actions for e in action.effects),
    )


def read_problem(text: str, domain: Domain) -> Problem:
    """Read the PDDL problem of one game.

    Raises:
        PddlError: it does not parse, or uses what this engine does not know.
    """
    form = read_form(text)
    parts = [_a_form(item, form) for item in form[1:]]
    heads = [part.head for part in parts]
    expected = ["problem", ":domain", ":requirements", ":objects", ":init", ":goal", ":metric"]
    optional = {":requirements", ":objects", ":metric"}
    if form.head != "define" or heads != [h for h in expected if h in heads or h not in optional]:
        raise PddlError(f"its parts are {' '.join(heads) or 'missing'}, not {' '.join(expected)}")
    by_head = dict(zip(heads, parts, strict=True))
    if by_head[":domain"].words(1) != (domain.name,):
        raise PddlError(f"it belongs to another domain than '{domain.name}'")
    metric = by_head.get(":metric")
    if metric is not None and (metric[1:2] != ["minimize"] or metric[2:] != [["total-cost"]]):
        raise PddlError(f"line {metric.line}: this (:metric ...) is not supported")
    objects: dict[str, str] = {}
    listed = typed_list(by_head[":objects"], 1) if ":objects" in by_head else ()
    for name, kind in domain.constants + listed:
        if name in objects or kind not in domain.types:
            fault = "is declared twice" if name in objects else f"has an unknown type, {kind}"
            raise PddlError(f"line {by_head[':objects'].line}: {name} {fault}")
        objects[name] = kind
    reader = ConditionReader(domain.predicates)
    goal = by_head[":goal"]
    clauses = reader.read(_form(goal, 1), frozenset())
    return Problem(
        objects=objects,
        init=tuple(dict.fromkeys(_facts(by_head[":init"], objects))),
        goal=clauses,
        plain_goal=len(clauses) == 1 and not clauses[0].variables,
    )


def _facts(init: Form, objects: Mapping[str, str]) -> Iterator[Atom]:
    """What is true at the start; costs and distances are numbers, which no text speaks of."""
    for item in init[1:]:
        fact = _a_form(item, init)
        if fact.head == "not":
            continue
        if fact.head == "=":
            if len(fact) != 3 or not isinstance(fact[2], str) or not _number(fact[2]):
                raise PddlError(f"line {fact.line}: this (= ...) is not supported")
            continue
        args = fact.words(1)
        for name in args:
            if name not in objects:
                raise PddlError(f"line {fact.line}: ({fact.head} ...): {name} is not declared")
        yield fact.head, args


def _number(text: str) -> bool:
    return text.replace(".", "").isdigit() and float(text).is_integer()


def _action(entry: Form, reader: ConditionReader) -> Action | None:
    """An action; fast-downward leaves out those that change nothing, and so do we."""
    name = entry[1] if len(entry) > 1 else ""
    keys = [item for item in entry[2::2] if isinstance(item, str)]
    expected = [key for key in (":parameters", ":precondition", ":effect") if key in keys]
    if not isinstance(name, str) or keys != expected or len(entry) != 2 + 2 * len(keys):
        odd = next((key for key in keys if key not in expected), "its parts, or their order,")
        raise PddlError(f"line {entry.line}: (:action {name} ...): {odd} is not supported")
    parts = dict(zip(keys, entry[3::2], strict=True))
    parameters = typed_list(_a_form(parts.get(":parameters", Form(entry.line)), entry), 0)
    scope = frozenset(variable for variable, _ in parameters)
    condition = _a_form(parts.get(":precondition", Form(entry.line)), entry)
    effects = tuple(dict.fromkeys(_effects(parts.get(":effect", ""), (), scope, reader, entry)))
    if not effects:
        return None
    clauses = reader.read(condition, scope) if condition else _NOTHING
    return Action(name, parameters, clauses, effects)


def _effects(
    node: Node,
    condition: tuple[Literal, ...],
    scope: frozenset[str],
    reader: ConditionReader,
    action: Form,
) -> Iterator[Effect]:
    form = _a_form(node, action)
    if not form:
        return
    if form.head == "and":
        for part in form[1:]:
            yield from _effects(part, condition, scope, reader, action)
    elif form.head == "when" and len(form) == 3:
        for clause in reader.read(form[1], scope):
            if clause.variables:
                raise PddlError(f"line {form.line}: (when (exists ...)) is not supported")
            yield from _effects(form[2], condition + clause.literals, scope, reader, action)
    elif form.head == "increase" and len(form) == 3 and form[1] == ["total-cost"]:
        return  # What an action costs matters to planners only.
    else:
        yield Effect(condition, reader.literal(form, scope))


def _ancestors(declared: Typed) -> dict[str, tuple[str, ...]]:
    parents: dict[str, list[str]] = {"object": []}
    for name, parent in declared:
        if name != "object":
            parents.setdefault(name, []).append(parent)
    found: dict[str, tuple[str, ...]] = {}
    for name in parents:
        above: dict[str, None] = {}
        pending = list(parents[name])
        while pending:
            one = pending.pop()
            if one not in above:
                above[one] = None
                pending += parents.get(one, ())
        found[name] = tuple(above)
    return found


def _form(parent: Form, index: int) -> Form:
    if len(parent) <= index:
        raise PddlError(f"line {parent.line}: ({parent.head} ...) is incomplete")
    return _a_form(parent[index], parent)


def _a_form(node: Node, parent: Form) -> Form:
    if not isinstance(node, Form):
        raise PddlError(f"line {parent.line}: '{node}' stands where a bracket belongs")
    return node
