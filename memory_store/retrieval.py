"""M_cand: entries whose goal signature is near enough to the goal's (Eq. 4).

Entries are grouped by unique goal signature when the memory is loaded, and the groups near a
goal are scored once per goal, so a step never scans the store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rapidfuzz import fuzz

from vocabulary.recall import Recall
from vocabulary.signature import GoalSignature

# Two kinds of one category are close without being spelled alike: mug ~ cup.
SAME_CATEGORY = 0.8


class MemoryIndex:
    """All entries of a snapshot, ready to be asked by goal."""

    def __init__(
        self,
        entries: Iterable[Mapping[str, Any]],
        categories: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Group entries by goal signature; ``categories`` maps a name to its kinds."""
        self._kinds: dict[str, set[str]] = defaultdict(set)
        for name, kinds in (categories or {}).items():
            for kind in kinds:
                self._kinds[kind].add(name)
        self._groups: dict[GoalSignature, list[Mapping[str, Any]]] = defaultdict(list)
        self._schemas: list[Mapping[str, Any]] = []
        for entry in entries:
            if entry["type"] == "schema":
                self._schemas.append(entry)
            else:
                self._groups[read_signature(entry["goal_signature"])].append(entry)
        self._cache: dict[tuple[GoalSignature, float, int], list[Recall]] = {}

    def recall(self, goal: GoalSignature, theta: float, k: int) -> list[Recall]:
        """The k best entries of each type with d_gamma >= theta, best first."""
        key = (goal, theta, k)
        if key not in self._cache:
            self._cache[key] = self._score(goal, theta, k)
        return [recall.copy() for recall in self._cache[key]]

    def distance(self, goal: GoalSignature, other: GoalSignature) -> float:
        """d_gamma: exact on type, fuzzy on object and destination."""
        if goal.type != other.type:
            return 0.0
        return (
            self._alike(goal.object, other.object)
            + self._alike(goal.destination, other.destination)
        ) / 2

    def _alike(self, one: str, other: str) -> float:
        if one == other:
            return 1.0
        spelled = fuzz.ratio(one, other) / 100
        return max(spelled, SAME_CATEGORY if self._kinds[one] & self._kinds[other] else 0.0)

    def _score(self, goal: GoalSignature, theta: float, k: int) -> list[Recall]:
        by_type: dict[str, list[tuple[float, int, str, Mapping[str, Any]]]] = defaultdict(list)
        for signature, entries in self._groups.items():
            near = self.distance(goal, signature)
            if near < theta:
                continue
            for entry in entries:
                count = entry.get("success_count") or entry.get("occurrence_count") or 1
                score = near * entry["retrieval_weight"]
                by_type[entry["type"]].append((-score, -count, entry["id"], entry))
        for entry in self._schemas:
            by_type["schema"].append((-entry["confidence"], 0, entry["id"], entry))
        return [
            Recall(entry=dict(entry), score=-score, dropped_by="", reason="", warning="", rule="")
            for kind in sorted(by_type)
            for score, _, _, entry in sorted(by_type[kind], key=lambda row: row[:3])[:k]
        ]


def read_signature(printed: str) -> GoalSignature:
    """The three matching fields of a printed signature (type, object, state, destination)."""
    parts = [*printed.split(":"), "", "", ""]
    if parts[3]:
        return GoalSignature(parts[0], parts[1], parts[3])
    return GoalSignature(parts[0], parts[2], parts[1])
