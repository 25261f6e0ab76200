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

A goal is scored against the entries once; every further step with that goal takes the result as it
is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rpms.memory_store.entries import CriticalFailure, Entry, Failure, Finds, Schema, Success
from rpms.vocabulary.goal import PAPER, GoalSignature, Keys
from rpms.vocabulary.naming import same_kind

OBJECT_SHARE, DESTINATION_SHARE = 0.6, 0.4
# Two kinds of one category are close without being spelled alike: mug ~ cup.
SAME_CATEGORY = 0.8
# What fits this home and this moment is chosen among this many times k of each kind.
CHOICE = 3

# Entry type, sub-goal or action, and what COMPAT compares: of each there is a choice.
Bucket = tuple[str, str, str]
GoalEntry = Success | Failure | CriticalFailure


class Row(NamedTuple):
    """An entry about a goal, with what it is retrieved by."""

    goal: GoalSignature
    bucket: Bucket
    seen: int
    entry: GoalEntry


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


class Found(NamedTuple):
    """What a goal finds: the candidates, and how many entries are near enough."""

    candidates: list[Candidate]
    near: int


class MemoryIndex:
    """All entries of a memory, ready to be asked by goal."""

    def __init__(
        self,
        entries: Iterable[Entry] = (),
        categories: Mapping[str, Sequence[str]] | None = None,
        keys: Keys = PAPER,
    ) -> None:
        """``categories`` has kinds that belong together, by name; ``keys`` reads signatures."""
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
        self._found: dict[tuple[GoalSignature, float, int], Found] = {}

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    def recall(self, goal: GoalSignature, theta: float, k: int) -> list[Candidate]:
        """Snippets and lessons with d_gamma * weight >= theta, best first.

        Up to ``CHOICE`` times k of each bucket, equal experience of several goals as one: which k
        of each type fit this home and this moment is for the asker to say. The rest is counted.
        """
        return self._find(goal, theta, k).candidates

    def truncated(self, goal: GoalSignature, theta: float, k: int) -> dict[str, int]:
        """How many entries near enough ``recall`` does not list, by what becomes of them."""
        listed, near = self._find(goal, theta, k)
        spoken_for = sum(candidate.entries for candidate in listed)
        merged, beyond = spoken_for - len(listed), near - spoken_for
        return {
            outcome: n for outcome, n in {"duplicate": merged, "over top-k": beyond}.items() if n
        }

    def schemas(self, actions: Iterable[str]) -> list[Candidate]:
        """The most reliable schema of each of these actions."""
        schemas = (self._schemas[action] for action in actions if action in self._schemas)
        return [Candidate(_plain(schema), 1.0, schema.success_count) for schema in schemas]

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

    def _find(self, goal: GoalSignature, theta: float, k: int) -> Found:
        """The candidates for a goal, and how many entries are near enough; kept for later steps."""
        key = (goal, theta, k)
        if key not in self._found:
            scores = {other: self.nearness(goal, other) for other in {r.goal for r in self._rows}}
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
            chosen = (c for rows in near.values() for c in _merge(rows)[: CHOICE * k])
            self._found[key] = Found(_ranked(chosen), total)
        return self._found[key]


def _row(entry: GoalEntry, keys: Keys) -> Row:
    if isinstance(entry, Success):
        about, seen = entry.sub_goal_type, entry.success_count
    else:
        about, seen = entry.failed_action.partition(" ")[0], entry.occurrence_count
    bucket = (entry.type, about, keys.compat(entry.state_signature))
    return Row(keys.goal(entry.goal_signature), bucket, seen, entry)


def _merge(rows: Iterable[tuple[float, Row]]) -> list[Candidate]:
    """One candidate for entries that say the same with roles for names."""
    merged: dict[str, Candidate] = {}
    for score, row in sorted(rows, key=lambda each: (-each[0], -each[1].seen, each[1].entry.id)):
        entry = _plain(row.entry)
        same = str((entry["lifted"], entry.get("violated"))) if entry["lifted"] else entry["id"]
        known = merged.get(same)
        if known is None:
            merged[same] = Candidate(entry, score, row.seen)
        else:
            merged[same] = known._replace(seen=known.seen + row.seen, entries=known.entries + 1)
    return _ranked(merged.values())


def _plain(entry: Entry) -> dict[str, Any]:
    return entry.model_dump(mode="json")


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda c: (-c.score, -c.seen, c.entry["id"]))
