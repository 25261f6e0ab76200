"""Describe a game state in TextWorld's own words, without TextWorld's repeated work.

TextWorld re-parses every template and deep-copies the whole context for every symbol it expands;
nearly all of a step goes there. Here each text was parsed once, and expanding a node copies
nothing but the placeholders a query binds. What is written, and in which order, stays TextWorld's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rpms.envs.alfworld.facts import FactBase, Placeholder, Variable
from rpms.envs.alfworld.texts import (
    LIST_AND,
    LIST_COMMA,
    LIST_EMPTY,
    Each,
    Expression,
    Grammar,
    Reference,
    Text,
)

_NO_BUILTINS: dict[str, Any] = {"__builtins__": {}}


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing as templates may speak of it; what ALFWorld never sets stays None."""

    id: str
    type: str
    name: str
    definite: str = "the"
    indefinite: str = "a"
    noun: str | None = None
    adj: str | None = None
    desc: str | None = None
    room_type: str | None = None
    synonyms: str | None = None

    def __str__(self) -> str:
        """``{o}`` writes the name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Context:
    """The entities in scope: by name for expressions, by placeholder for queries."""

    names: Mapping[str, Entity]
    bound: Mapping[Placeholder, Variable]


class Writer:
    """Expands texts of one grammar against the current facts of one game."""

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
                self._enumerate(node.each, context, out)

    def _enumerate(self, each: Each, context: Context, out: list[str]) -> None:
        scopes = self._scopes(each, context)
        if not scopes:
            self._expand((LIST_EMPTY,), context, out)
        for position, inner in enumerate(scopes):
            if position:
                last = position == len(scopes) - 1
                self._expand((LIST_AND if last else LIST_COMMA,), context, out)
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
            names.update((hole[0], self._entities[one[0]]) for hole, one in bound.items())
            scopes.append(Context(names, bound))
        return scopes
