"""M_cand: entries whose goal signature is near enough to the goal's (Eq. 4).

d_gamma is exact on the type and goes by meaning on the rest: 0.6 for the object and 0.4 for the
destination, each counted whole for the same kind (the same words; a plural, a number or a letter
makes no difference), as 0.8 for a kind of the same category, and as nothing otherwise. With
theta = 0.6:

    heat a mug, put it in a cabinet   ~ heat a mug, put it in a cabinet     1.00   recalled
                                      ~ heat a cup, put it in a cabinet     0.88   recalled
                                      ~ heat a mug, put it on a desk        0.60   recalled
                                      ~ heat an egg, put it in a cabinet    0.40   left
    a pot is no potato, and a non-living thing no living thing: spelling alone counts for nothing.

An entry's weight multiplies its score, for the threshold and for the rank.

Entries are grouped by unique goal signature when the memory is loaded, and sorted within each
group. A goal is scored against the unique signatures once; a step only copies the result. So
the cost of a step does not grow with the store.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rpms.memory_store.entries import ADAPTER, Entry, Finds, Schema, Success
from rpms.vocabulary.goal import PAPER, GoalSignature, Keys
from rpms.vocabulary.naming import same_kind

OBJECT_SHARE, DESTINATION_SHARE = 0.6, 0.4
# Two kinds of one category are close without being spelled alike: mug ~ cup.
SAME_CATEGORY = 0.8
# What fits this home and this moment is chosen among this many times k of each kind.
CHOICE = 3

# Entry type, sub-goal or action, and what COMPAT compares: of each there is a choice.
Bucket = tuple[str, str, str]
# Rank within a bucket: how often seen (negated, so that smaller is better), id, row, weight.
Ranked = tuple[int, str, int, float]


class Candidate(NamedTuple):
    """An entry near the goal.

    Attributes:
        entry: as plain data.
        score: d_gamma times its weight.
        seen: how often its like was seen.
        entries: how many entries of the memory it speaks for: those that say the same.
    """

    entry: dict[str, Any]
    score: float
    seen: int
    entries: int = 1


class MemoryIndex:
    """All entries of a memory, ready to be asked by goal."""

    def __init__(
        self, categories: Mapping[str, Sequence[str]] | None = None, keys: Keys = PAPER
    ) -> None:
        """An empty index; ``categories`` maps a name to the kinds that belong together.

        ``keys`` reads the signatures; a memory has many times fewer states than entries.
        """
        self._read_goal = lru_cache(maxsize=65536)(keys.goal)
        self._compat = lru_cache(maxsize=65536)(keys.compat)
        self._listed = {name: tuple(kinds) for name, kinds in (categories or {}).items()}
        self._categories: dict[str, frozenset[str]] = {}
        self._rows: list[bytes] = []
        self._groups: dict[GoalSignature, dict[Bucket, list[Ranked]]] = {}
        self._weights: dict[GoalSignature, Counter[float]] = defaultdict(Counter)
        self._schemas: dict[str, list[tuple[float, str, int]]] = defaultdict(list)
        self._looked: Counter[str] = Counter()
        self._held: dict[str, Counter[str]] = {}
        self._cache: dict[tuple[GoalSignature, float, int], list[Candidate]] = {}
        self._totals: dict[tuple[GoalSignature, float], int] = {}

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
            self._schemas[entry.action_type].append((-entry.confidence, entry.id, number))
            return
        if isinstance(entry, Finds):
            self._looked[entry.place] += entry.looked
            for kind, count in entry.objects.items():
                self._held.setdefault(kind, Counter())[entry.place] += count
            return
        goal = self._read_goal(entry.goal_signature)
        group = self._groups.setdefault(goal, {})
        self._weights[goal][entry.retrieval_weight] += 1
        if isinstance(entry, Success):
            about, count = entry.sub_goal_type, entry.success_count
        else:
            about, count = entry.failed_action.partition(" ")[0], entry.occurrence_count
        bucket = (entry.type, about, self._compat(entry.state_signature))
        group.setdefault(bucket, []).append((-count, entry.id, number, entry.retrieval_weight))

    def freeze(self) -> None:
        """Sort every group once, so that recalling only looks at the head of each."""
        for ranked in self._schemas.values():
            ranked.sort()
        for group in self._groups.values():
            for rows in group.values():
                rows.sort()
        self._cache.clear()
        self._totals.clear()

    def recall(self, goal: GoalSignature, theta: float, k: int) -> list[Candidate]:
        """Snippets and lessons with d_gamma * weight >= theta, best first.

        Up to ``CHOICE`` times k of each bucket, equal experience of several goals as one: which k
        of each type fit this home and this moment is for the asker to say. The rest is counted.
        """
        key = (goal, theta, k)
        if key not in self._cache:
            self._cache[key] = self._find(*key)
        return self._cache[key]

    def truncated(self, goal: GoalSignature, theta: float, k: int) -> dict[str, int]:
        """How many entries near enough ``recall`` does not list, by what becomes of them."""
        if (goal, theta) not in self._totals:
            self._totals[goal, theta] = sum(
                count
                for signature, weights in self._weights.items()
                if (score := self.nearness(goal, signature))
                for weight, count in weights.items()
                if score * weight >= theta
            )
        listed = self.recall(goal, theta, k)
        spoken_for = sum(candidate.entries for candidate in listed)
        merged, beyond = spoken_for - len(listed), self._totals[goal, theta] - spoken_for
        return {
            outcome: n for outcome, n in {"duplicate": merged, "over top-k": beyond}.items() if n
        }

    def schemas(self, actions: Iterable[str]) -> list[Candidate]:
        """The most reliable schema of each of these actions."""
        rows = [self._schemas[action][0][2] for action in actions if action in self._schemas]
        entries = [self._entry(row) for row in rows]
        return [Candidate(entry, 1.0, entry["success_count"]) for entry in entries]

    def places_of(self, kind: str) -> dict[str, tuple[int, int]]:
        """Where a kind of thing was found: kind of place -> how many held one, of how many.

        What was never found itself is looked for where its category was.
        """
        held = self._held.get(kind)
        if not held:
            mine, held = self._categories_of(kind), Counter()
            for other in [other for other in self._held if self._categories_of(other) & mine]:
                held |= self._held[other]  # the most that any of them had: together is not known
        return {place: (count, self._looked[place]) for place, count in held.items()}

    def nearness(self, goal: GoalSignature, other: GoalSignature) -> float:
        """d_gamma, as the head of this file has it."""
        if goal.type != other.type:
            return 0.0
        alike = OBJECT_SHARE * self._alike(goal.object, other.object)
        return alike + DESTINATION_SHARE * self._alike(goal.destination, other.destination)

    def _alike(self, word: str, other: str) -> float:
        if same_kind(word, other):
            return 1.0
        return SAME_CATEGORY if self._categories_of(word) & self._categories_of(other) else 0.0

    def _categories_of(self, word: str) -> frozenset[str]:
        """The categories that list a kind."""
        if word not in self._categories:
            self._categories[word] = frozenset(
                name
                for name, kinds in self._listed.items()
                if any(same_kind(word, kind) for kind in kinds)
            )
        return self._categories[word]

    def _find(self, goal: GoalSignature, theta: float, k: int) -> list[Candidate]:
        most = CHOICE * k
        near: dict[Bucket, list[tuple[float, int, str, int]]] = defaultdict(list)
        for signature, group in self._groups.items():
            if score := self.nearness(goal, signature):
                for bucket, ranked in group.items():
                    near[bucket] += [
                        (-score * weight, negated, name, row)
                        for negated, name, row, weight in ranked[:most]
                        if score * weight >= theta
                    ]
        return _ranked(c for rows in near.values() for c in self._merge(sorted(rows))[:most])

    def _merge(self, ranked: Sequence[tuple[float, int, str, int]]) -> list[Candidate]:
        """One candidate for entries that say the same with roles for names."""
        merged: dict[str, Candidate] = {}
        for score, negated, _, row in ranked:
            entry = self._entry(row)
            same = str((entry["lifted"], entry.get("violated"))) if entry["lifted"] else entry["id"]
            known = merged.get(same)
            if known is None:
                merged[same] = Candidate(entry, -score, -negated)
            else:
                merged[same] = known._replace(seen=known.seen - negated, entries=known.entries + 1)
        return _ranked(merged.values())

    def _entry(self, row: int) -> dict[str, Any]:
        """An entry as plain data; what is read from JSON is nobody else's."""
        return ADAPTER.validate_json(self._rows[row]).model_dump(mode="json")


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda c: (-c.score, -c.seen, c.entry["id"]))
