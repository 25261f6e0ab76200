"""PDDL: the rules and the start of a game, read into immutable data.

Comments, case and the question mark are treated as fast-downward's reader treats them, because
the names that come out of it are printed in the games. A condition becomes a choice of
conjunctions: ``or`` makes several clauses and ``exists`` further variables of a clause, as in
fast-downward, where each clause of an action is an operator of its own. What a text uses and this
engine does not know is refused by name and line, never guessed; so are universal conditions,
which would need derived facts, and no ALFWorld game has any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, product
from typing import NamedTuple, TypeAlias

Atom = tuple[str, tuple[str, ...]]
"""A predicate and its arguments."""
Typed = tuple[tuple[str, str], ...]
"""Names with their types."""

_FIELDS = (":requirements", ":types", ":constants", ":predicates", ":functions")
_REQUIREMENTS = {
    ":strips", ":adl", ":typing", ":negation", ":equality", ":negative-preconditions",
    ":disjunctive-preconditions", ":existential-preconditions", ":quantified-preconditions",
    ":conditional-effects", ":action-costs",
}  # fmt: skip


class PddlError(ValueError):
    """A text that is no PDDL, or uses a construct that this engine does not know."""


class Form(list["Node"]):
    """What stands between two brackets; ``line`` is where the first one is."""

    __slots__ = ("line",)

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line

    @property
    def head(self) -> str:
        """The word a form begins with, empty if it begins with none."""
        return self[0] if self and isinstance(self[0], str) else ""

    def words(self, start: int = 0) -> tuple[str, ...]:
        """The elements from ``start`` on, which must all be single words."""
        words = tuple(item for item in self[start:] if isinstance(item, str))
        if len(words) != len(self) - start:
            raise PddlError(
                f"line {self.line}: ({self.head} ...) holds brackets where names belong"
            )
        return words

    def forms(self, start: int, stop: int | None = None) -> list[Form]:
        """The elements from ``start`` on, which must all be bracketed."""
        for node in self[start:stop]:
            if not isinstance(node, Form):
                raise PddlError(f"line {self.line}: '{node}' stands where a bracket belongs")
        if stop is not None and len(self) < stop:
            raise PddlError(f"line {self.line}: ({self.head} ...) is incomplete")
        return [node for node in self[start:stop] if isinstance(node, Form)]


Node: TypeAlias = str | Form


def read_form(text: str) -> Form:
    """The one form that a PDDL file consists of.

    Raises:
        PddlError: brackets that do not match, or letters that PDDL does not have.
    """
    root = Form(0)
    stack = [root]
    for number, token in _tokens(text):
        if token == "(":
            form = Form(number)
            stack[-1].append(form)
            stack.append(form)
        elif token == ")":
            stack.pop()
            if not stack:
                raise PddlError(f"line {number}: a closing bracket too many")
        else:
            stack[-1].append(token)
    if len(stack) > 1:
        raise PddlError(f"line {stack[-1].line}: a bracket that is never closed")
    if len(root) != 1 or not isinstance(root[0], Form):
        raise PddlError("not one bracketed text")
    return root[0]


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        code = line.split(";", 1)[0]
        spaced = code.replace("(", " ( ").replace(")", " ) ").replace("?", " ?")
        for token in spaced.lower().split():
            if not (token.isascii() and token.isprintable() and code.isascii()):
                raise PddlError(f"line {number}: a name that is not plain ASCII")
            yield number, token


def _typed(form: Form, start: int) -> Typed:
    """Names followed by ``- type``; what has no type is a plain ``object``."""
    typed: list[tuple[str, str]] = []
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
            typed += [(name, kind) for name in waiting]
            waiting = []
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


class _Conditions:
    """Reads the conditions of a domain with these predicates (and the number of arguments)."""

    def __init__(self, predicates: Mapping[str, int]) -> None:
        self._predicates = predicates
        self._fresh = count(1)

    def literal(self, form: Form, scope: frozenset[str], *, negated: bool = False) -> Literal:
        """A single literal, in a condition or an effect; ``scope`` are the known variables."""
        if form.head == "not" and len(form) == 2:
            form, negated = form.forms(1)[0], not negated
        name, args = form.head, form.words(1)
        if name not in self._predicates:
            raise PddlError(f"line {form.line}: ({name or '...'} ...) is not known here")
        if len(args) != self._predicates[name]:
            raise PddlError(f"line {form.line}: ({name} ...) has {len(args)} arguments")
        for arg in args:
            if arg.startswith("?") and arg not in scope:
                raise PddlError(f"line {form.line}: the variable {arg} is not declared")
        return Literal(name, args, negated)

    def read(
        self,
        form: Form,
        scope: frozenset[str],
        names: Mapping[str, str] | None = None,
        negated: bool = False,
    ) -> tuple[Clause, ...]:
        """A condition as a choice of clauses, with other ``names`` for some variables."""
        names = names or {}
        if form.head == "not" and len(form) == 2:
            return self.read(form.forms(1)[0], scope, names, not negated)
        if form.head in ("and", "or"):
            parts = [self.read(part, scope, names, negated) for part in form.forms(1)]
            both = (form.head == "and") != negated
            return _all(parts) if both else tuple(clause for part in parts for clause in part)
        if form.head == "exists" and not negated and len(form) == 3:
            declared, inside = form.forms(1)
            # A name of its own for each, so that two quantifiers may both speak of ?r.
            fresh = {name: f"{name}#{next(self._fresh)}" for name, _ in _typed(declared, 0)}
            variables = tuple((fresh[name], kind) for name, kind in _typed(declared, 0))
            clauses = self.read(inside, scope | fresh.keys(), {**names, **fresh})
            return tuple(Clause(variables + one.variables, one.literals) for one in clauses)
        if form.head in ("exists", "forall", "imply"):
            sign = "a negated " if negated else ""
            raise PddlError(f"line {form.line}: {sign}({form.head} ...) is not supported")
        literal = self.literal(form, scope, negated=negated)
        args = tuple(names.get(arg, arg) for arg in literal.args)
        return (Clause((), (literal._replace(args=args),)),)

    def action(self, entry: Form) -> Action | None:
        """An action; fast-downward leaves out those that change nothing, and so do we."""
        name = entry[1] if len(entry) > 1 else ""
        keys = [item for item in entry[2::2] if isinstance(item, str)]
        expected = [key for key in (":parameters", ":precondition", ":effect") if key in keys]
        if not isinstance(name, str) or keys != expected or len(entry) != 2 + 2 * len(keys):
            odd = next((key for key in keys if key not in expected), "its parts, or their order,")
            raise PddlError(f"line {entry.line}: (:action {name} ...): {odd} is not supported")
        values = Form(entry.line)
        values += entry[3::2]
        parts = dict(zip(keys, values.forms(0), strict=True))
        empty = Form(entry.line)
        parameters = _typed(parts.get(":parameters", empty), 0)
        scope = frozenset(variable for variable, _ in parameters)
        effects = tuple(dict.fromkeys(self._effects(parts.get(":effect", empty), (), scope)))
        condition = parts.get(":precondition")
        clauses = self.read(condition, scope) if condition else (Clause((), ()),)
        return Action(name, parameters, clauses, effects) if effects else None

    def _effects(
        self, form: Form, condition: tuple[Literal, ...], scope: frozenset[str]
    ) -> Iterator[Effect]:
        if form.head == "and":
            for part in form.forms(1):
                yield from self._effects(part, condition, scope)
        elif form.head == "when" and len(form) == 3:
            when, then = form.forms(1)
            for clause in self.read(when, scope):
                if clause.variables:
                    raise PddlError(f"line {form.line}: (when (exists ...)) is not supported")
                yield from self._effects(then, condition + clause.literals, scope)
        elif form.head == "increase" and len(form) == 3 and form[1] == ["total-cost"]:
            return  # What an action costs matters to planners only.
        elif form:
            yield Effect(condition, self.literal(form, scope))


def _all(parts: list[tuple[Clause, ...]]) -> tuple[Clause, ...]:
    return tuple(
        Clause(
            tuple(variable for clause in choice for variable in clause.variables),
            tuple(dict.fromkeys(one for clause in choice for one in clause.literals)),
        )
        for choice in product(*parts)
    )


@lru_cache(maxsize=16)
def read_domain(text: str) -> Domain:
    """Read a PDDL domain; the same text is read once.

    Raises:
        PddlError: it does not parse, or uses what this engine does not know.
    """
    form = read_form(text)
    if form.head != "define" or len(form) < 2 or form.forms(1, 2)[0].head != "domain":
        raise PddlError("no (define (domain ...) ...)")
    fields: dict[str, Form] = {}
    entries: list[Form] = []
    for entry in form.forms(2):
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
    for declared in fields.get(":predicates", Form(0)).forms(1):
        predicates[declared.head] = len(_typed(declared, 1))
    conditions = _Conditions(predicates)
    actions = [action for entry in entries if (action := conditions.action(entry))]
    return Domain(
        name=form.forms(1, 2)[0].words(1)[0],
        types=_ancestors(_typed(fields.get(":types", Form(0)), 1)),
        constants=_typed(fields.get(":constants", Form(0)), 1),
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
    heads = [part.head for part in form.forms(1)]
    expected = ["problem", ":domain", ":requirements", ":objects", ":init", ":goal", ":metric"]
    optional = {":requirements", ":objects", ":metric"}
    if form.head != "define" or heads != [h for h in expected if h in heads or h not in optional]:
        raise PddlError(f"its parts are {' '.join(heads) or 'missing'}, not {' '.join(expected)}")
    parts = dict(zip(heads, form.forms(1), strict=True))
    if parts[":domain"].words(1) != (domain.name,):
        raise PddlError(f"it belongs to another domain than '{domain.name}'")
    metric = parts.get(":metric")
    if metric is not None and (metric[1:2] != ["minimize"] or metric[2:] != [["total-cost"]]):
        raise PddlError(f"line {metric.line}: this (:metric ...) is not supported")
    objects: dict[str, str] = {}
    listed = parts.get(":objects", Form(0))
    for name, kind in domain.constants + _typed(listed, 1):
        if name in objects or kind not in domain.types:
            fault = "is declared twice" if name in objects else f"has an unknown type, {kind}"
            raise PddlError(f"line {listed.line}: {name} {fault}")
        objects[name] = kind
    clauses = _Conditions(domain.predicates).read(parts[":goal"].forms(1, 2)[0], frozenset())
    return Problem(
        objects=objects,
        init=tuple(dict.fromkeys(_facts(parts[":init"], objects))),
        goal=clauses,
        plain_goal=len(clauses) == 1 and not clauses[0].variables,
    )


def _facts(init: Form, objects: Mapping[str, str]) -> Iterator[Atom]:
    """What is true at the start; costs and distances are numbers, which no text speaks of."""
    for fact in init.forms(1):
        if fact.head == "=":
            number = fact[2] if len(fact) == 3 and isinstance(fact[2], str) else ""
            if not (number.replace(".", "").isdigit() and float(number).is_integer()):
                raise PddlError(f"line {fact.line}: this (= ...) is not supported")
        elif fact.head != "not":
            for name in fact.words(1):
                if name not in objects:
                    raise PddlError(f"line {fact.line}: ({fact.head} ...): {name} is not declared")
            yield fact.head, fact.words(1)


def _ancestors(declared: Typed) -> dict[str, tuple[str, ...]]:
    parents: dict[str, list[str]] = {"object": []}
    for name, parent in declared:
        if name != "object":
            parents.setdefault(name, []).append(parent)
    ancestors: dict[str, tuple[str, ...]] = {}
    for name in parents:
        above: dict[str, None] = {}
        pending = list(parents[name])
        while pending:
            kind = pending.pop()
            if kind not in above:
                above[kind] = None
                pending += parents.get(kind, ())
        ancestors[name] = tuple(above)
    return ancestors
