"""The facts of a running game, and the queries TextWorld's texts ask of them.

TextWorld sorts every group of facts again for every predicate of every query. Keeping each group
sorted as facts come and go gives the same answers in the same order for a fraction of the cost;
because the order is sorted, no list in a description depends on hashing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

Variable = tuple[str, str]
"""An entity as (name, type)."""
Placeholder = tuple[str, str]
"""A hole in a query as (name, type)."""
Signature = tuple[str, tuple[str, ...]]
"""A predicate and the types of its arguments."""
Arguments = tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One predicate of a query."""

    signature: Signature
    placeholders: tuple[Placeholder, ...]


Query = tuple[Pattern, ...]


@lru_cache(maxsize=1024)
def parse_query(source: str) -> Query:
    """Parse a conjunction such as ``openable(r:receptacle) & opened(r:receptacle)``, once."""
    from textworld.logic import Rule

    return tuple(
        Pattern(
            (predicate.name, tuple(predicate.types)),
            tuple((hole.name, hole.type) for hole in predicate.parameters),
        )
        for predicate in Rule.parse_conjunctive_query(source).preconditions
    )


class TypeTable:
    """Which concrete signatures a query predicate covers, in TextWorld's order."""

    def __init__(self, types: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        """Build TextWorld's own hierarchy from (type, parents) pairs."""
        from textworld.logic import Type, TypeHierarchy

        self._hierarchy = TypeHierarchy()
        known: set[str] = set()
        for name, parents in types:
            if name not in known:  # The translator lists the root type "object" twice.
                known.add(name)
                self._hierarchy.add(Type(name, parents))
        self._covered: dict[Signature, tuple[Signature, ...]] = {}

    def covered(self, signature: Signature) -> tuple[Signature, ...]:
        """Return the signatures whose facts may satisfy a predicate of this signature."""
        found = self._covered.get(signature)
        if found is None:
            kinds = [self._hierarchy.get(kind) for kind in signature[1]]
            found = self._covered[signature] = tuple(
                (signature[0], tuple(kind.name for kind in combination))
                for combination in self._hierarchy.multi_subtypes(kinds)
            )
        return found


class FactBase:
    """The facts of the current state, each group kept sorted so that a query never sorts."""

    def __init__(self, types: TypeTable, facts: Mapping[Signature, list[Arguments]]) -> None:
        """Start from these facts, each group already sorted; they are copied."""
        self._types = types
        self._facts = {signature: list(rows) for signature, rows in facts.items()}

    def __iter__(self) -> Iterator[tuple[str, Arguments]]:
        """Yield every fact as predicate and arguments."""
        for (name, _), rows in self._facts.items():
            for row in rows:
                yield name, row

    def add(self, signature: Signature, row: Arguments) -> None:
        """Make a fact true."""
        rows = self._facts.setdefault(signature, [])
        at = bisect_left(rows, row)
        if at == len(rows) or rows[at] != row:
            rows.insert(at, row)

    def remove(self, signature: Signature, row: Arguments) -> None:
        """Make a fact no longer true; it need not have been."""
        rows = self._facts.get(signature)
        if rows:
            at = bisect_left(rows, row)
            if at < len(rows) and rows[at] == row:
                del rows[at]

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
        for signature in self._types.covered(pattern.signature):
            for row in self._facts.get(signature, ()):
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
