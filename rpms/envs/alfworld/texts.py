"""The words of a game: TextWorld's grammar format, its queries, and how it writes.

A game's grammar is a document of actions (a command template, a feedback) and JSON tables of
text rules. A text mixes plain words with ``#rule#``, ``{expression | query}`` and lists of those,
``[{...}]``. TextWorld reads a text as far as it understands it and ignores the rest; since some
official texts end in a stray bracket, that is kept. What is written, and in which order, is
TextWorld's own.
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

Variable = tuple[str, str]
"""An entity as (name, type)."""
Placeholder = tuple[str, str]
"""A hole in a query as (name, type)."""
Signature = tuple[str, tuple[str, ...]]
"""A predicate and the types of its arguments."""
Arguments = tuple[Variable, ...]

# Templates only read names; anything that could call or import is foreign to these games.
_HARMLESS = (
    ast.Expression, ast.Name, ast.Load, ast.Attribute, ast.BinOp, ast.Add, ast.BoolOp, ast.And,
    ast.Or, ast.IfExp, ast.Constant,
)  # fmt: skip
_NO_BUILTINS: dict[str, Any] = {"__builtins__": {}}

_SPACE = r"(?:\s|\#[^\n]*)*"  # as everywhere in a document, from # to the end of the line
_PART = re.compile(
    rf'(template|feedback){_SPACE}::{_SPACE}"([^"]*)"{_SPACE};{_SPACE}'
    rf'|(pddl|grammar){_SPACE}::{_SPACE}"""(.*?)"""{_SPACE};{_SPACE}',
    re.DOTALL,
)
_ACTION = re.compile(rf"action{_SPACE}([\w/-]+){_SPACE}\{{{_SPACE}")
_END = re.compile(rf"\}}{_SPACE}")
_BLANK = re.compile(_SPACE)

_SKIPPED = re.compile(r"(?:^(?://.*|\s+)\n?|\t+)*", re.MULTILINE)
_CONDITIONAL = (
    r"\{\t*(?>#\t*(?P<rule>[\w()/!<>\-\s,.]+)#\t*|(?P<code>[^|\[\]{}\n<>]+))"
    r"(?:\s*\|\s*(?P<query>[^;|{}\n\[\]#]+))?\t*\}"
)
_EACH = re.compile(_CONDITIONAL)
_LIST = re.compile(rf"\[\t*{_CONDITIONAL}\t*\]")
_RULE = re.compile(r"#\t*(?P<rule>[\w()/!<>\-\s,.]+)#")
_QUOTED = re.compile(r'"\t*([^;|"<>\[\]#{}]*)"')
_PLAIN = re.compile(r'[^;|"<>\[\]#{}]*')


class Pattern(NamedTuple):
    """One predicate of a query."""

    signature: Signature
    placeholders: tuple[Placeholder, ...]


Query = tuple[Pattern, ...]


class Reference(NamedTuple):
    """``#name#``: expand the rule of that name."""

    name: str


class Expression(NamedTuple):
    """An expression over the entities bound so far, such as ``o.name``."""

    code: CodeType


class Each(NamedTuple):
    """``{body | query}``: the body once for every match of the query."""

    body: Reference | Expression
    query: Query | None


class Listing(NamedTuple):
    """``[{body | query}]``: the same, written as an English list."""

    each: Each


Node = str | Reference | Expression | Each | Listing
Text = tuple[Node, ...]
LIST_EMPTY = Reference("list_empty")
LIST_COMMA = Reference("list_separator")
LIST_AND = Reference("list_last_separator")


class Production(NamedTuple):
    """One alternative of a grammar rule; the first whose condition holds is used."""

    condition: Query | None
    text: Text


class Wording(NamedTuple):
    """How a player asks for an action and what the game answers."""

    command: Text
    feedback: Text


class Grammar(NamedTuple):
    """All the texts of a game, parsed."""

    rules: Mapping[str, tuple[Production, ...]]
    actions: Mapping[str, Wording]


def parse_grammar(source: str) -> Grammar:
    """Parse a game's grammar; texts that games share are parsed once."""
    tables: dict[str, Any] = {}
    actions: dict[str, Wording] = {}
    start = _BLANK.match(source)
    at = start.end() if start else 0
    while at < len(source):
        if action := _ACTION.match(source, at):
            parts, at = _parts(source, action.end())
            end = _END.match(source, at)
            if end is None or "template" not in parts or "feedback" not in parts:
                raise ValueError(f"the action {action[1]} ends or lacks something early")
            actions[action[1].lower()] = Wording(
                parse_text(parts["template"]), parse_text(parts["feedback"])
            )
            lines = parts.get("grammar", "{}").split("\n")
            table = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
            at = end.end()
        else:
            part = _PART.match(source, at)
            if part is None or part[3] != "grammar":
                line = source.count("\n", 0, at) + 1
                raise ValueError(f"line {line}: neither an action nor a grammar")
            table, at = part[4], part.end()
        tables.update(json.loads(table))
    return Grammar({name: _rule(name, rules) for name, rules in tables.items()}, actions)


def _parts(source: str, at: int) -> tuple[dict[str, str], int]:
    parts: dict[str, str] = {}
    while part := _PART.match(source, at):
        name = part[1] or part[3]
        if name in parts:
            raise ValueError(f"line {source.count(chr(10), 0, at) + 1}: a second {name}")
        parts[name] = part[2] if part[1] else part[4]
        at = part.end()
    return parts, at


def _rule(name: str, rules: Any) -> tuple[Production, ...]:
    try:
        return tuple(
            Production(
                parse_query(rule["condition"]) if rule.get("condition") else None,
                parse_text(rule["rhs"]),
            )
            for rule in rules
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the rule '{name}' is no list of texts ({error})") from error


@lru_cache(maxsize=1024)
def parse_text(source: str) -> Text:
    """Parse one text, whose expressions may only read names."""
    nodes: list[Node] = []
    at = 0
    while True:
        start = at
        if skipped := _SKIPPED.match(source, at):
            at = skipped.end()
        if match := _LIST.match(source, at):
            nodes.append(Listing(_each(match)))
        elif match := _EACH.match(source, at):
            nodes.append(_each(match))
        elif match := _RULE.match(source, at):
            nodes.append(Reference(match["rule"]))
        elif match := _QUOTED.match(source, at):
            nodes.append(match[1])
        else:
            match = _PLAIN.match(source, at)
            assert match is not None  # The pattern matches nothing, too.
            if match.end() == start and nodes:
                return tuple(nodes)
            nodes.append(match[0])
        at = match.end()


def _each(match: re.Match[str]) -> Each:
    body = Reference(match["rule"]) if match["rule"] else Expression(_compile(match["code"]))
    return Each(body, parse_query(match["query"]) if match["query"] else None)


@lru_cache(maxsize=256)
def _compile(source: str) -> CodeType:
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"the template {{{source.strip()}}} is no expression") from error
    for node in ast.walk(tree):
        private = isinstance(node, ast.Attribute) and node.attr.startswith("_")
        if private or not isinstance(node, _HARMLESS):
            raise ValueError(f"the template {{{source.strip()}}} does more than read names")
    return compile(tree, "<game template>", "eval")


_PREDICATE = re.compile(r"\s*(!?)([\w/]+)\s*\(([^()]*)\)\s*")
_HOLE = re.compile(r"\s*([\w']+)\s*(?::\s*([\w/-]+)\s*)?")


@lru_cache(maxsize=1024)
def parse_query(source: str) -> Query:
    """Parse a conjunction such as ``openable(r:receptacle) & opened(r:receptacle)``, once.

    A name without a type is its own type, less apostrophes.
    """
    patterns = []
    for part in source.split("&"):
        match = _PREDICATE.fullmatch(part)
        names = match[3].split(",") if match and match[3].strip() else []
        holes = [_HOLE.fullmatch(name) for name in names]
        if match is None or None in holes:
            raise ValueError(f"'{source.strip()}' is no query")
        typed = tuple((hole[1], hole[2] or hole[1].rstrip("'")) for hole in holes if hole)
        types: dict[str, str] = {}
        if any(types.setdefault(hole, kind) != kind for hole, kind in typed):
            raise ValueError(f"'{source.strip()}' gives one name two types")
        predicate = f"not_{match[2]}" if match[1] else match[2]
        patterns.append(Pattern((predicate, tuple(kind for _, kind in typed)), typed))
    return tuple(patterns)


class TypeTable:
    """Which concrete signatures a query predicate covers, in TextWorld's order."""

    def __init__(self, types: Mapping[str, tuple[str, ...]]) -> None:
        """Types with everything they are a kind of."""
        self._children: dict[str, list[str]] = {name: [] for name in types}
        for name, above in sorted(types.items()):
            for parent in above:
                self._children.setdefault(parent, []).append(name)
        self._covered: dict[Signature, tuple[Signature, ...]] = {}

    def covered(self, signature: Signature) -> tuple[Signature, ...]:
        """Return the signatures whose facts may satisfy a predicate of this signature."""
        if signature not in self._covered:
            name, kinds = signature
            self._covered[signature] = tuple((name, narrow) for narrow in self._subtypes(kinds))
        return self._covered[signature]

    def _subtypes(self, kinds: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """The types themselves, then breadth first; TextWorld may name one twice, and so do we."""
        yield kinds
        queue = deque(self._narrower(kinds))
        seen: set[tuple[str, ...]] = set()
        while queue:
            wider = queue.popleft()
            yield wider
            for narrower in self._narrower(wider):
                if narrower not in seen:
                    seen.add(narrower)
                    queue.append(narrower)

    def _narrower(self, kinds: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for at, kind in enumerate(kinds):
            for child in self._children[kind]:
                yield (*kinds[:at], child, *kinds[at + 1 :])


class FactBase:
    """The facts of the current state, each group kept sorted so that a query never sorts.

    TextWorld sorts every group again for every predicate of every query. This gives the same
    answers in the same order for a fraction of the cost; because the order is sorted, no list in
    a description depends on hashing.
    """

    def __init__(self, types: TypeTable, facts: Mapping[Signature, list[Arguments]]) -> None:
        """Start from these facts, each group already sorted; they are copied."""
        self._types = types
        self._facts = {signature: list(rows) for signature, rows in facts.items()}

    def __iter__(self) -> Iterator[tuple[str, Arguments]]:
        """Yield every fact as predicate and arguments."""
        for (name, _), rows in self._facts.items():
            for row in rows:
                yield name, row

    def holds(self, signature: Signature, row: Arguments) -> bool:
        """Whether a fact is true."""
        rows = self._facts.get(signature, [])
        at = bisect_left(rows, row)
        return at < len(rows) and rows[at] == row

    def put(self, signature: Signature, row: Arguments, true: bool) -> None:
        """Make a fact true or not, whatever it was."""
        if self.holds(signature, row) == true:
            return
        rows = self._facts.setdefault(signature, [])
        at = bisect_left(rows, row)
        rows[at : at + (not true)] = [row] if true else []

    def matches(
        self, query: Query, bound: Mapping[Placeholder, Variable]
    ) -> Iterator[dict[Placeholder, Variable]]:
        """Yield every way to complete ``bound`` so that the whole query holds.

        As in TextWorld, two placeholders bound by the query never name the same entity.
        """
        return self._extend(query, 0, dict(bound), set(bound.values()))

    def _extend(
        self, query: Query, depth: int, bound: dict[Placeholder, Variable], used: set[Variable]
    ) -> Iterator[dict[Placeholder, Variable]]:
        if depth == len(query):
            yield dict(bound)
            return
        pattern = query[depth]
        known = [(at, bound[hole]) for at, hole in enumerate(pattern.placeholders) if hole in bound]
        for signature in self._types.covered(pattern.signature):
            rows = self._facts.get(signature, ())
            for at, variable in known:
                rows = [row for row in rows if row[at] == variable]
            for row in rows:
                fresh = []
                for hole, variable in zip(pattern.placeholders, row, strict=True):
                    existing = bound.get(hole)
                    if existing is None:
                        if variable in used:
                            break
                        bound[hole] = variable
                        used.add(variable)
                        fresh.append(hole)
                    elif existing != variable:
                        break
                else:
                    yield from self._extend(query, depth + 1, bound, used)
                for hole in fresh:
                    used.discard(bound.pop(hole))


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing as templates may speak of it."""

    id: str
    type: str
    name: str
    definite: str = "the"
    indefinite: str = "a"

    def __str__(self) -> str:
        """``{o}`` writes the name."""
        return self.name


class Context(NamedTuple):
    """The entities in scope: by name for expressions, by placeholder for queries."""

    names: Mapping[str, Entity]
    bound: Mapping[Placeholder, Variable]


class Writer:
    """Expands texts of one grammar against the current facts of one game.

    TextWorld re-parses every template and deep-copies the whole context for every symbol it
    expands; nearly all of a step goes there. Here each text was parsed once, and expanding a node
    copies nothing but the placeholders a query binds.
    """

    def __init__(self, grammar: Grammar, facts: FactBase, entities: Mapping[str, Entity]) -> None:
        """Write about ``facts``, calling things by their names as ``entities``."""
        self._grammar = grammar
        self._facts = facts
        self._entities = entities

    def write(self, text: Text, context: Context) -> str:
        """Return the text with everything in it expanded."""
        out: list[str] = []
        self._expand(text, context, out)
        return "".join(out)

    def _expand(self, text: Text, context: Context, out: list[str]) -> None:
        for node in text:
            if isinstance(node, str):
                out.append(node)
            elif isinstance(node, Reference):
                self._expand(self._choose(node.name, context), context, out)
            elif isinstance(node, Expression):
                out.append(str(eval(node.code, _NO_BUILTINS, context.names)))
            elif isinstance(node, Each):
                for inner in self._scopes(node, context):
                    self._expand((node.body,), inner, out)
            else:
                scopes = self._scopes(node.each, context)
                if not scopes:
                    self._expand((LIST_EMPTY,), context, out)
                for remaining, inner in zip(range(len(scopes), 0, -1), scopes, strict=True):
                    if remaining < len(scopes):
                        self._expand((LIST_AND if remaining == 1 else LIST_COMMA,), context, out)
                    self._expand((node.each.body,), inner, out)

    def _choose(self, name: str, context: Context) -> Text:
        for production in self._grammar.rules[name]:
            condition = production.condition
            if condition is None or any(
                True for _ in self._facts.matches(condition, context.bound)
            ):
                return production.text
        raise LookupError(f"no alternative of #{name}# applies")

    def _scopes(self, each: Each, context: Context) -> list[Context]:
        if each.query is None:
            return [context]
        scopes = []
        for bound in self._facts.matches(each.query, context.bound):
            names = dict(context.names)
            names.update((hole[0], self._entities[variable[0]]) for hole, variable in bound.items())
            scopes.append(Context(names, bound))
        return scopes
