"""TextWorld's grammar format: the words of a game, parsed into small immutable nodes.

A game's grammar is a document of actions (a command template, a feedback) and JSON tables of
text rules. A text mixes plain words with ``#rule#``, ``{expression | query}`` and lists of those,
``[{...}]``. TextWorld reads a text as far as it understands it and ignores the rest; since some
official texts end in a stray bracket, that is kept.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from rpms.envs.alfworld.facts import Query, parse_query

# Templates only read names; anything that could call or import is foreign to these games.
_HARMLESS = (
    ast.Expression, ast.Name, ast.Load, ast.Attribute, ast.BinOp, ast.Add, ast.BoolOp, ast.And,
    ast.Or, ast.IfExp, ast.Constant,
)  # fmt: skip

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
Text = tuple[Node, ...]
LIST_EMPTY = Reference("list_empty")
LIST_COMMA = Reference("list_separator")
LIST_AND = Reference("list_last_separator")


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
class Grammar:
    """All the texts of a game, parsed."""

    rules: Mapping[str, tuple[Production, ...]]
    actions: Mapping[str, Wording]

    def consulted(self, text: Text) -> set[str]:
        """Every predicate that expanding a text may ask about, through other rules too.

        A text that asks only about things no action changes is a constant of the game.
        """
        names: set[str] = set()
        visited: set[str] = set()
        pending = list(text)
        while pending:
            node = pending.pop()
            queries: list[Query | None] = []
            if isinstance(node, Listing):
                pending += [node.each, LIST_EMPTY, LIST_COMMA, LIST_AND]
            elif isinstance(node, Each):
                queries = [node.query]
                pending.append(node.body)
            elif isinstance(node, Reference) and node.name not in visited:
                visited.add(node.name)
                for production in self.rules.get(node.name, ()):
                    queries.append(production.condition)
                    pending += production.text
            for query in queries:
                names.update(pattern.signature[0].removeprefix("not_") for pattern in query or ())
        return names


def parse_grammar(source: str) -> Grammar:
    """Parse a game's grammar; texts that games share are parsed once.

    Raises:
        ValueError: the grammar is not one TextWorld can read.
    """
    tables: dict[str, Any] = {}
    actions: dict[str, Wording] = {}
    at = _blank(source, 0)
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


def _blank(source: str, at: int) -> int:
    found = _BLANK.match(source, at)
    return found.end() if found else at


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
    """Parse one text.

    Raises:
        ValueError: a query in it does not parse, or an expression does more than read names.
    """
    nodes: list[Node] = []
    at = 0
    while True:
        start = at
        if skipped := _SKIPPED.match(source, at):
            at = skipped.end()
        if found := _LIST.match(source, at):
            nodes.append(Listing(_each(found)))
        elif found := _EACH.match(source, at):
            nodes.append(_each(found))
        elif found := _RULE.match(source, at):
            nodes.append(Reference(found["rule"]))
        elif found := _QUOTED.match(source, at):
            nodes.append(found[1])
        else:
            found = _PLAIN.match(source, at)
            assert found is not None  # The pattern matches nothing, too.
            if found.end() == start and nodes:
                return tuple(nodes)
            nodes.append(found[0])
        at = found.end()


def _each(found: re.Match[str]) -> Each:
    body = Reference(found["rule"]) if found["rule"] else Expression(_compile(found["code"]))
    return Each(body, parse_query(found["query"]) if found["query"] else None)


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
