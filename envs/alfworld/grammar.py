"""Describe a game state in TextWorld's own words, without TextWorld's repeated work.

TextWorld re-parses every template and deep-copies the whole context for every symbol it expands;
nearly all of a step goes there. Here each text is parsed once, by TextWorld's own parsers, into
small immutable nodes, and expanding a node copies nothing but the placeholders a query binds.
What is written, and in which order, stays TextWorld's.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType
from typing import Any

from rpms.envs.alfworld.facts import FactBase, Placeholder, Query, Variable, parse_query

_SENTINEL = "THE TASK SENTENCE"
# The task sentence is all that differs between the grammars of two official games.
_TASK = re.compile(r'("task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*)"([^"\\\n]*)"')
# TextWorld's parsers are module globals with state of their own.
_parsing = threading.Lock()
# Templates only read names; anything that could call or import is foreign to these games.
_HARMLESS = (
    ast.Expression,
    ast.Name,
    ast.Load,
    ast.Attribute,
    ast.BinOp,
    ast.Add,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.IfExp,
    ast.Constant,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """``#name#``: expand the rule of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over the entities bound so far, such as ``o.name``."""

    code: CodeType


@dataclass(frozen=True, slots=True)
class Each:
    """``{body | query}``: the body once for every match of the query."""

    body: Reference | Expression
    query: Query | None


@dataclass(frozen=True, slots=True)
class Listing:
    """``[{body | query}]``: the same, written as an English list."""

    each: Each


Node = str | Reference | Expression | Each | Listing
_EMPTY = Reference("list_empty")
_COMMA = Reference("list_separator")
_AND = Reference("list_last_separator")
Text = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Production:
    """One alternative of a grammar rule; the first whose condition holds is used."""

    condition: Query | None
    text: Text


@dataclass(frozen=True, slots=True)
class Wording:
    """How a player asks for an action and what the game answers."""

    command: Text
    feedback: Text


@dataclass(frozen=True, slots=True)
class Context:
    """The entities in scope: by name for expressions, by placeholder for queries."""

    names: Mapping[str, Any]
    bound: Mapping[Placeholder, Variable]


@dataclass(frozen=True, slots=True)
class Grammar:
    """All the texts of a game, parsed; immutable, so games with the same wording share one."""

    rules: Mapping[str, tuple[Production, ...]]
    actions: Mapping[str, Wording]


class Writer:
    """Expands texts of one grammar against the current facts of one game."""

    def __init__(self, grammar: Grammar, facts: FactBase, infos: Mapping[str, Any]) -> None:
        """Write about ``facts``, calling entities by their ``infos``."""
        self._grammar = grammar
        self._facts = facts
        self._infos = infos

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
                out.append(str(eval(node.code, {"__builtins__": {}}, context.names)))
            elif isinstance(node, Each):
                for inner in self._scopes(node, context):
                    self._expand((node.body,), inner, out)
            else:
                self._enumerate(node.each, context, out)

    def _enumerate(self, each: Each, context: Context, out: list[str]) -> None:
        scopes = self._scopes(each, context)
        if not scopes:
            self._expand((_EMPTY,), context, out)
        for position, inner in enumerate(scopes):
            if position:
                last = position == len(scopes) - 1
                self._expand((_AND if last else _COMMA,), context, out)
            self._expand((each.body,), inner, out)

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
            names.update((hole[0], self._infos[variable[0]]) for hole, variable in bound.items())
            scopes.append(Context(names, bound))
        return scopes


def consulted(grammar: Grammar, text: Text) -> set[str]:
    """Name every predicate that expanding a text may ask about, through other rules too.

    A text that asks only about things no action changes is a constant of the game.
    """
    names: set[str] = set()
    visited: set[str] = set()
    pending = list(text)
    while pending:
        node = pending.pop()
        queries: list[Query | None] = []
        if isinstance(node, Listing):
            pending += [node.each, _EMPTY, _COMMA, _AND]
        elif isinstance(node, Each):
            queries = [node.query]
            pending.append(node.body)
        elif isinstance(node, Reference) and node.name not in visited:
            visited.add(node.name)
            for production in grammar.rules.get(node.name, ()):
                queries.append(production.condition)
                pending += production.text
        for query in queries:
            names.update(pattern.signature[0].removeprefix("not_") for pattern in query or ())
    return names


def parse_grammar(source: str) -> Grammar:
    """Parse a game's grammar, paying only for the task sentence when the rest is known.

    Raises:
        Exception: the grammar is not one TextWorld can read; its parsers raise many kinds.
    """
    found = _TASK.findall(source)
    with _parsing:
        if len(found) == 1:
            shared = _parse_document(_TASK.sub(rf'\1"{_SENTINEL}"', source))
            # Only if the sentence is the whole rule may the shared parse stand for this one.
            if shared.rules.get("task") == (Production(None, (_SENTINEL,)),):
                sentence = Production(None, _parse_text(found[0][1]))
                return replace(shared, rules={**shared.rules, "task": (sentence,)})
        return _parse_document(source)


@lru_cache(maxsize=16)
def _parse_document(source: str) -> Grammar:
    from textworld.envs.pddl import logic

    actions, grammar = logic._parse_and_convert(source, rule_name="pddlStart")
    rules = {
        name: tuple(
            Production(
                parse_query(rule.condition) if rule.condition else None,
                tuple(_node(symbol) for symbol in rule.rhs),
            )
            for rule in alternatives
        )
        for name, alternatives in grammar._rules.items()
    }
    wordings = {
        name: Wording(_parse_text(action.template), _parse_text(action.feedback_rule))
        for name, action in actions.items()
    }
    return Grammar(rules, wordings)


@lru_cache(maxsize=1024)
def _parse_text(source: str) -> Text:
    from textworld.envs.pddl import textgen

    return tuple(
        _node(symbol) for symbol in textgen._parse_and_convert(source, rule_name="symbols")
    )


def _node(symbol: Any) -> Node:
    from textworld.envs.pddl import textgen

    if isinstance(symbol, textgen.TerminalSymbol):
        return str(symbol.symbol)
    if isinstance(symbol, textgen.NonterminalSymbol):
        return Reference(str(symbol.symbol))
    if isinstance(symbol, textgen.ListSymbol):
        each = _node(symbol.symbol)
        assert isinstance(each, Each)
        return Listing(each)
    if isinstance(symbol, textgen.ConditionalSymbol):
        body = _node(symbol.expression)
        assert isinstance(body, Reference | Expression)
        return Each(body, parse_query(symbol.given) if symbol.given else None)
    return Expression(_compile(str(symbol.expression)))


def _compile(source: str) -> CodeType:
    tree = ast.parse(source.strip(), mode="eval")
    for node in ast.walk(tree):
        private = isinstance(node, ast.Attribute) and node.attr.startswith("_")
        if private or not isinstance(node, _HARMLESS):
            raise ValueError(f"the template {{{source.strip()}}} does more than read names")
    return compile(tree, "<game template>", "eval")
