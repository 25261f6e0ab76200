"""The facts of a running game, and the queries TextWorld's texts ask of them.

TextWorld sorts every group of facts again for every predicate of every query. Keeping each group
sorted as facts come and go gives the same answers in the same order for a fraction of the cost;
because the order is sorted, no list in a description depends on hashing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
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


_PREDICATE = re.compile(r"\s*(!?)([\w/]+)\s*\(([^()]*)\)\s*")
_HOLE = re.compile(r"\s*([\w']+)\s*(?::\s*([\w/-]+)\s*)?")


@lru_cache(maxsize=1024)
def parse_query(source: str) -> Query:
    """Parse a conjunction such as ``openable(r:receptacle) & opened(r:receptacle)``, once.

    Raises:
        ValueError: it is none.
    """
    patterns = []
    for part in source.split("&"):
        found = _PREDICATE.fullmatch(part)
        if found is None:
            raise ValueError(f"'{source.strip()}' is no query")
        negation, name, inside = found.groups()
        holes = tuple(_hole(text, source) for text in inside.split(",")) if inside.strip() else ()
        types: dict[str, str] = {}
        if any(types.setdefault(hole, kind) != kind for hole, kind in holes):
            raise ValueError(f"'{source.strip()}' gives one name two types")
        kinds = tuple(kind for _, kind in holes)
        patterns.append(Pattern((f"not_{name}" if negation else name, kinds), holes))
    return tuple(patterns)


def _hole(text: str, source: str) -> Placeholder:
    """``o:object``; a name without a type is its own type, less apostrophes."""
    found = _HOLE.fullmatch(text)
    if found is None:
        raise ValueError(f"'{source.strip()}' is no query")
    name, kind = found.groups()
    return name, kind or name.rstrip("'")


class TypeTable:
    """Which concrete signatures a query predicate covers, in TextWorld's order."""

    def __init__(self, types: Mapping[str, tuple[str, ...]]) -> None:
        """Types with everything they are a kind of."""
        self._children: dict[str, list[str]] = {name: [] for name in types}
        for name, above in types.items():
            for parent in above:
                self._children.setdefault(parent, []).append(name)
        for names in self._children.values():
            names.sort()
        self._covered: dict[Signature, tuple[Signature, ...]] = {}

    def covered(self, signature: Signature) -> tuple[Signature, ...]:
        """Return the signatures whose facts may satisfy a predicate of this signature."""
        found = self._covered.get(signature)
        if found is None:
            name, kinds = signature
            found = tuple((name, combination) for combination in self._subtypes(kinds))
            self._covered[signature] = found
        return found

    def _subtypes(self, kinds: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """The types themselves, then breadth first; TextWorld may name one twice, and so do we."""
        yield kinds
        queue = deque(self._narrower(kinds))
        seen: set[tuple[str, ...]] = set()
        while queue:
            one = queue.popleft()
            yield one
            for narrower in self._narrower(one):
                if narrower not in seen:
                    seen.add(narrower)
                    queue.append(narrower)

    def _narrower(self, kinds: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for at, kind in enumerate(kinds):
            for child in self._children[kind]:
                yield (*kinds[:at], child, *kinds[at + 1 :])


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

    def holds(self, signature: Signature, row: Arguments) -> bool:
        """Whether a fact is true."""
        rows = self._facts.get(signature, [])
        at = bisect_left(rows, row)
        return at < len(rows) and rows[at] == row

    def put(self, signature: Signature, row: Arguments, true: bool) -> None:
        """Make a fact true or not."""
        (self.add if true else self.remove)(signature, row)

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
