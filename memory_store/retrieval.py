"""M_cand: entries whose goal signature is near enough to the goal's (Eq. 4).

Entries are grouped by unique goal signature when the memory is loaded, and sorted within each
group. A goal is scored against the unique signatures once; a step only copies the result. So
the cost of a step does not grow with the store.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from rapidfuzz import fuzz

from rpms.memory_store.entries import ADAPTER, Entry, Schema, Success
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.signature import PAPER, GoalSignature, Keys

# Two kinds of one category are close without being spelled alike: mug ~ cup.
SAME_CATEGORY = 0.8

# Entry type and what COMPAT compares: k of each bucket are recalled, not k of each type.
Bucket = tuple[str, str]
# Rank within a bucket: how often seen (negated, so that smaller is better), id, row.
Ranked = tuple[int, str, int]


class MemoryIndex:
    """All entries of a memory, ready to be asked by goal."""

    def __init__(
        self, categories: Mapping[str, Sequence[str]] | None = None, keys: Keys = PAPER
    ) -> None:
        """An empty index; ``categories`` maps a name to the kinds that belong together.

        ``keys`` reads the signatures; a memory has many times fewer states than entries.
        """
        self._read_goal = keys.goal
        self._compat = lru_cache(maxsize=65536)(keys.compat)
        self._categories: dict[str, frozenset[str]] = defaultdict(frozenset)
        for name, kinds in (categories or {}).items():
            for kind in kinds:
                self._categories[kind] |= {name}
        self._rows: list[bytes] = []
        self._groups: dict[GoalSignature, dict[Bucket, list[Ranked]]] = {}
        self._schemas: list[tuple[float, str, int, str]] = []
        self._signatures: dict[str, dict[Bucket, list[Ranked]]] = {}
        self._cache: dict[tuple[GoalSignature, float, int, tuple[str, ...]], list[Recall]] = {}

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._rows)

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        categories: Mapping[str, Sequence[str]] | None = None,
        keys: Keys = PAPER,
    ) -> MemoryIndex:
        """An index over entries that are already in memory."""
        index = cls(categories, keys)
        for entry in entries:
            index.add(entry, entry.model_dump_json().encode())
        index.freeze()
        return index

    def add(self, entry: Entry, row: bytes) -> None:
        """Add one entry; ``row`` is its JSON text, kept until the entry is recalled."""
        number = len(self._rows)
        self._rows.append(row)
        if isinstance(entry, Schema):
            self._schemas.append((-entry.confidence, entry.id, number, entry.action_type))
            return
        group = self._signatures.get(entry.goal_signature)
        if group is None:
            signature = self._read_goal(entry.goal_signature)
            group = self._groups.setdefault(signature, {})
            self._signatures[entry.goal_signature] = group
        count = entry.success_count if isinstance(entry, Success) else entry.occurrence_count
        bucket = (entry.type, self._compat(entry.state_signature))
        group.setdefault(bucket, []).append((-count, entry.id, number))

    def freeze(self) -> None:
        """Sort every group once, so that recalling only looks at the head of each."""
        self._schemas.sort()
        for group in self._groups.values():
            for ranked in group.values():
                ranked.sort()
        self._cache.clear()

    def recall(
        self, goal: GoalSignature, theta: float, k: int, actions: Sequence[str] = ()
    ) -> list[Recall]:
        """The k best entries of each bucket with d_gamma >= theta, best first.

        Schemas carry no goal; those of the given actions (the ones the goal's procedure uses)
        are recalled, most reliable first.
        """
        key = (goal, theta, k, tuple(actions))
        if key not in self._cache:
            self._cache[key] = self._find(*key)
        return [recall.copy() for recall in self._cache[key]]

    def nearness(self, goal: GoalSignature, other: GoalSignature) -> float:
        """d_gamma: exact on type, fuzzy on object category and destination."""
        if goal.type != other.type:
            return 0.0
        alike = self._alike(goal.object, other.object)
        return (alike + self._alike(goal.destination, other.destination)) / 2

    def _alike(self, one: str, other: str) -> float:
        if one == other:
            return 1.0
        if self._categories[one] & self._categories[other]:
            return SAME_CATEGORY
        return fuzz.ratio(one, other) / 100

    def _find(
        self, goal: GoalSignature, theta: float, k: int, actions: tuple[str, ...]
    ) -> list[Recall]:
        near: dict[Bucket, list[tuple[float, list[Ranked]]]] = defaultdict(list)
        for signature, group in self._groups.items():
            score = self.nearness(goal, signature)
            if score >= theta:
                for bucket, ranked in group.items():
                    near[bucket].append((score, ranked))
        recalls = []
        for bucket in sorted(near):
            heads = [[(-s, *rank) for rank in ranked[:k]] for s, ranked in near[bucket]]
            for score, _, _, row in islice(heapq.merge(*heads), k):
                recalls.append(self._recall(row, -score))
        useful = [row for _, _, row, action in self._schemas if action in actions]
        recalls += [self._recall(row, 1.0) for row in useful[:k]]
        recalls.sort(key=lambda recall: -recall["score"])
        return recalls

    def _recall(self, row: int, near: float) -> Recall:
        entry = ADAPTER.validate_json(self._rows[row]).model_dump(mode="json")
        weight = float(entry["retrieval_weight"])
        return Recall(
            entry=entry, score=near * weight, dropped_by="", reason="", warning="", rule=""
        )
