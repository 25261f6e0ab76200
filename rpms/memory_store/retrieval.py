"""M_cand: entries whose goal signature is similar to the goal's (Eq. 4), a few of each kind.

d_gamma requires the same goal type. The object counts 0.6 and the destination 0.4: in full for the
same kind (plurals, numbers and letters are ignored), times 0.8 for a kind of the same category, and
zero otherwise. With theta = 0.6:

    heat a mug, put it in a cabinet   ~ heat a mug, put it in a cabinet     1.00   recalled
                                      ~ heat a cup, put it in a cabinet     0.88   recalled
                                      ~ heat a mug, put it on a desk        0.60   recalled
                                      ~ heat an egg, put it in a cabinet    0.40   not recalled

Similar spelling counts for nothing: a pot is no potato. An entry's weight multiplies its score, for
the threshold and for the rank. Each goal is scored once; further steps reuse the result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

from rpms.memory_store.entries import CriticalFailure, Entry, Failure, Finds, Schema, Success
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import PAPER, GoalSignature, Keys
from rpms.vocabulary.naming import same_kind

OBJECT_SHARE, DESTINATION_SHARE = 0.6, 0.4
# Two kinds of one category are close without being spelled alike: mug ~ cup.
SAME_CATEGORY = 0.8
# The state filter and the arbiter choose among this many times k entries of each bucket.
CHOICE = 3

# Entry type, sub-goal or action, and the part of the state that COMPAT compares.
Bucket = tuple[str, str, str]
Similarity = Callable[[GoalSignature, GoalSignature], float]
"""How much an entry's goal, the second one, is like the goal of the episode: 0 to 1.

It replaces d_gamma as a whole, the test of the goal type too. The entry's weight multiplies it.
"""
GoalEntry = Success | Failure | CriticalFailure


class Row(NamedTuple):
    """An entry about a goal, with its retrieval keys."""

    goal: GoalSignature
    bucket: Bucket
    seen: int
    entry: GoalEntry


class Candidate(NamedTuple):
    """An entry that is similar enough to the goal.

    Attributes:
        entry: as plain data.
        score: d_gamma times its weight.
        seen: how often this experience was made.
        entries: how many entries with the same content it represents.
    """

    entry: dict[str, Any]
    score: float
    seen: int
    entries: int = 1


class Found(NamedTuple):
    """The candidates for a goal, best first, and the counts of the others, by outcome."""

    candidates: list[Candidate]
    truncated: dict[str, int]


class MemoryIndex:
    def __init__(
        self,
        entries: Iterable[Entry] = (),
        categories: Mapping[str, Sequence[str]] | None = None,
        keys: Keys = PAPER,
    ) -> None:
        """``categories`` maps a name to kinds that belong together; ``keys`` reads signatures."""
        self._entries = list(entries)
        self._listed = {name: tuple(kinds) for name, kinds in (categories or {}).items()}
        self._categories: dict[str, frozenset[str]] = {}
        self._rows = sorted(
            (_row(entry, keys) for entry in self._entries if isinstance(entry, GoalEntry)),
            key=lambda row: (-row.seen, row.entry.id),
        )
        self._schemas: dict[str, Schema] = {}
        self._looked: Counter[str] = Counter()
        self._held: dict[str, Counter[str]] = {}
        for entry in self._entries:
            if isinstance(entry, Schema):
                best = self._schemas.setdefault(entry.action_type, entry)
                if (-entry.confidence, entry.id) < (-best.confidence, best.id):
                    self._schemas[entry.action_type] = entry
            elif isinstance(entry, Finds):
                self._looked[entry.place] += entry.looked
                for kind, count in entry.objects.items():
                    self._held.setdefault(kind, Counter())[entry.place] += count
        self._found: dict[tuple[GoalSignature, float, int, Similarity | None], Found] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find(
        self, goal: GoalSignature, theta: float, k: int, similarity: Similarity | None = None
    ) -> Found:
        """Find snippets and lessons with d_gamma * weight >= theta; cached for later steps.

        At most ``CHOICE`` times k of each bucket are listed, with equal experiences as one; the
        caller selects k of them.
        """
        key = (goal, theta, k, similarity)
        if key not in self._found:
            alike = similarity or self.nearness
            scores = {other: alike(goal, other) for other in {r.goal for r in self._rows}}
            for score in scores.values() if similarity else ():
                _check_similarity(similarity, score)
            near: dict[Bucket, list[tuple[float, Row]]] = defaultdict(list)
            places: Counter[tuple[GoalSignature, Bucket]] = Counter()
            total = 0
            for row in self._rows:
                if not scores[row.goal]:
                    continue
                score = scores[row.goal] * row.entry.retrieval_weight
                places[row.goal, row.bucket] += 1
                if score >= theta:
                    total += 1
                    if places[row.goal, row.bucket] <= CHOICE * k:
                        near[row.bucket].append((score, row))
            candidates = _ranked(c for rows in near.values() for c in _merge(rows)[: CHOICE * k])
            represented = sum(candidate.entries for candidate in candidates)
            counts = {"duplicate": represented - len(candidates), "over top-k": total - represented}
            truncated = {outcome: count for outcome, count in counts.items() if count}
            self._found[key] = Found(candidates, truncated)
        return self._found[key]

    def schemas(self, actions: Iterable[str]) -> list[Candidate]:
        """Return the schema with the highest confidence for each of these actions."""
        schemas = (self._schemas[action] for action in actions if action in self._schemas)
        return [Candidate(_plain(schema), 1.0, schema.success_count) for schema in schemas]

    def places_of(self, kind: str) -> dict[str, tuple[int, int]]:
        """Map the kinds of places where a thing was found to (places with one, places searched).

        A kind that was never found uses the finds of its category.
        """
        held = self._held.get(kind)
        if not held:
            categories, held = self._categories_of(kind), Counter()
            for other in [other for other in self._held if self._categories_of(other) & categories]:
                held |= self._held[other]  # the maximum: how many places held any is not recorded
        return {place: (count, self._looked[place]) for place, count in held.items()}

    def nearness(self, goal: GoalSignature, other: GoalSignature) -> float:
        """Return d_gamma; see the head of this file."""
        if goal.type != other.type:
            return 0.0
        alike = OBJECT_SHARE * self._alike(goal.object, other.object)
        return alike + DESTINATION_SHARE * self._alike(goal.destination, other.destination)

    def _alike(self, word: str, other: str) -> float:
        if same_kind(word, other):
            return 1.0
        return SAME_CATEGORY if self._categories_of(word) & self._categories_of(other) else 0.0

    def _categories_of(self, word: str) -> frozenset[str]:
        if word not in self._categories:
            self._categories[word] = frozenset(
                name
                for name, kinds in self._listed.items()
                if any(same_kind(word, kind) for kind in kinds)
            )
        return self._categories[word]


def _check_similarity(similarity: object, score: object) -> None:
    if not (isinstance(score, Real) and 0 <= float(score) <= 1):
        name = getattr(similarity, "__qualname__", type(similarity).__name__)
        raise RpmsError(f"similarity {name} returned {score!r}; it must be a number from 0 to 1")


def _row(entry: GoalEntry, keys: Keys) -> Row:
    if isinstance(entry, Success):
        topic, seen = entry.sub_goal_type, entry.success_count
    else:
        topic, seen = entry.failed_action.partition(" ")[0], entry.occurrence_count
    bucket = (entry.type, topic, keys.compat(entry.state_signature))
    return Row(keys.goal(entry.goal_signature), bucket, seen, entry)


def _merge(rows: Iterable[tuple[float, Row]]) -> list[Candidate]:
    """Merge entries that read the same with roles for names into one candidate."""
    merged: dict[str, Candidate] = {}
    for score, row in sorted(rows, key=lambda each: (-each[0], -each[1].seen, each[1].entry.id)):
        entry = _plain(row.entry)
        same = str((entry["lifted"], entry.get("violated"))) if entry["lifted"] else entry["id"]
        first = merged.get(same)
        if first is None:
            merged[same] = Candidate(entry, score, row.seen)
        else:
            merged[same] = first._replace(seen=first.seen + row.seen, entries=first.entries + 1)
    return _ranked(merged.values())


def _plain(entry: Entry) -> dict[str, Any]:
    return entry.model_dump(mode="json")


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda c: (-c.score, -c.seen, c.entry["id"]))
