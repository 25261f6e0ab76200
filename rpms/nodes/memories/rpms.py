"""Our own memory: entries whose goal resembles this one (Eq. 4), said for this home.

Three steps, each of its own: ``retrieve`` has the index's candidates, by goal alone;
``put_into_words`` fills them in for the home and the moment; ``choose`` makes equal ones one and
lets the best k of each type go on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore

from rpms.envs import get_environment
from rpms.memory_store import (
    Candidate,
    MemoryIndex,
    controlled,
    load_from_store,
    load_index,
    merge_entries,
    parse_entry,
    read_snapshot,
    store_version,
)
from rpms.memory_store.controls import Control
from rpms.nodes.manual import load_manual
from rpms.nodes.memories.grounding import GroundingContext, ground
from rpms.nodes.memories.lessons import learn
from rpms.nodes.memories.method import Ask, Fill, Learned, MemoryMethod, RecallRequest
from rpms.rules import Manual
from rpms.vocabulary.belief import kind_of
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.files import NOT_THERE, stamp_of
from rpms.vocabulary.recall import Recall, new_advice, new_recall
from rpms.vocabulary.turn import EpisodeRecord

# Beyond that many places a hint where to look is no hint any more.
MOST_PLACES = 8
# How the memory is spoiled, if it is, and the seed for that.
Controlled = tuple[Control, int]
AS_LEARNED: Controlled = ("none", 0)
# Which kinds of things belong together, by name, so that it can be told from another such table.
Categories = tuple[tuple[str, tuple[str, ...]], ...]
# What is said first; the last is the first to go where there is no room.
ORDER = ("critical_failure", "success", "found", "failure", "schema")


class RpmsMemory(MemoryMethod):
    """Entries of the paper's four types and finds, from a snapshot or the deployment's store."""

    name = "rpms"
    cumulative = True
    needs_file = False

    def recall(self, request: RecallRequest) -> list[Recall]:
        """The best k of each type, filled in for this home; this task's own trials come first."""
        now, context = request.now, request.context
        recalls = recall(find_memory(request), now, context)
        if not (entries := request.carried.get("entries")):
            return recalls
        index = _carried(request.env, json.dumps(entries), _categories(now.manual))
        earlier = recall(index, now, context)
        known = [(other["entry"]["type"], other["advice"]) for other in earlier]
        new = [r for r in recalls if (r["entry"]["type"], r["advice"]) not in known]
        return _ordered([*earlier, *new])

    def check(self, env: str, context: RunContext) -> None:
        """A file that is named must be there; else the shipped one, or none, will do."""
        if context.memory_file:
            open_memory(env, context.memory_file)

    def render(self, recalls: Sequence[Recall], fill: Fill) -> str:
        """As the paper's listings have it."""
        return fill("memory.j2", recalls=recalls)

    async def learn(
        self, records: Sequence[EpisodeRecord], ask: Ask | None, manual: Manual | None = None
    ) -> Learned:
        """By replaying the episodes on paper; nobody is asked."""
        return Learned(learn(records, manual))

    async def carry(
        self, carried: Mapping[str, Any], record: EpisodeRecord, ask: Ask
    ) -> dict[str, Any]:
        """What this task's trials taught so far, beside the frozen memory."""
        known = [parse_entry(entry) for entry in carried.get("entries", [])]
        keys = get_environment(record["env"]).keys
        merged = merge_entries([*known, *learn([record])], keys)
        return {"entries": [entry.model_dump(mode="json") for entry in merged]}


def recall(index: MemoryIndex, now: GroundingContext, context: RunContext) -> list[Recall]:
    """The best k of each type that can be said here, and where to look for what is not seen yet."""
    worded = put_into_words(retrieve(index, now, context), now)
    return _ordered([*where_to_look(index, now), *choose(worded, now, context.k)])


def retrieve(index: MemoryIndex, now: GroundingContext, context: RunContext) -> Iterator[Candidate]:
    """Snippets and lessons of goals near enough, and the schemas of what is to be done."""
    yield from index.recall(now.gamma, context.theta, context.k)
    yield from index.schemas(now.upcoming, context.k)


def put_into_words(candidates: Iterable[Candidate], now: GroundingContext) -> Iterator[Recall]:
    """What each candidate says here; those that cannot be said are none."""
    for entry, score, count in candidates:
        if advice := ground(entry, now):
            yield new_recall(entry, score, count, advice)


def choose(recalls: Iterable[Recall], now: GroundingContext, k: int) -> Iterator[Recall]:
    """Equal ones as one, no snippet that is only the beginning of another, the best k of each type.

    Equal are those that say the same and were recorded in states which COMPAT takes for one.
    """
    distinct: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], Recall] = {}
    for recalled in recalls:
        entry, advice = recalled["entry"], recalled["advice"]
        state = now.keys.compat(entry["state_signature"]) if "state_signature" in entry else ""
        key = (entry["type"], state, tuple(advice["actions"]), tuple(advice["needs"]))
        if key in distinct:
            distinct[key]["count"] += recalled["count"]
        else:
            distinct[key] = recalled
    beginnings = {
        (state, actions[:length])
        for kind, state, actions, _ in distinct
        if kind == "success"
        for length in range(1, len(actions))
    }
    whole = [
        recalled
        for (kind, state, actions, _), recalled in distinct.items()
        if kind != "success" or (state, actions) not in beginnings
    ]
    chosen: Counter[str] = Counter()
    for recalled in sorted(whole, key=lambda r: (-r["score"], -r["count"], r["entry"]["id"])):
        chosen[recalled["entry"]["type"]] += 1
        if chosen[recalled["entry"]["type"]] <= k:
            yield recalled


def _ordered(recalls: Iterable[Recall]) -> list[Recall]:
    return sorted(recalls, key=lambda r: (ORDER.index(r["entry"]["type"]), -r["score"]))


def where_to_look(index: MemoryIndex, now: GroundingContext) -> Iterator[Recall]:
    """Where such things were found before, for what the goal asks for and nobody has seen yet.

    Places of this home that were not searched, the likeliest first.
    """
    belief = now.belief
    known = {*belief["holding"], *belief["last_seen"], *belief["visible"], *belief["places"]}
    seen = {kind_of(name) for name in known}
    unsearched = [place for place in now.places if place not in set(belief["searched"])]
    for kind in dict.fromkeys((now.goal["object"], now.goal["destination"])):
        if kind in seen and kind != now.sub_goal["target"]:
            continue
        counts = index.places_of(kind)
        ranked = sorted(counts, key=lambda sort: (-counts[sort][0] / (counts[sort][1] + 1), sort))
        places = []
        total = 0
        for sort in ranked:
            here = [place for place in unsearched if kind_of(place) == sort][: MOST_PLACES - total]
            if here:
                held, looked = counts[sort]
                places.append(f"{', '.join(here)} ({held} of {looked} held one)")
                total += len(here)
        if places:
            entry = {"id": f"found_{kind}", "type": "found", "object": kind}
            times = sum(held for held, _ in counts.values())
            yield new_recall(entry, 1.0, times, new_advice([], places=places))


def find_memory(request: RecallRequest) -> MemoryIndex:
    """The named snapshot; else the deployment's store; else the snapshot shipped with us.

    A store may have grown since the last episode, so each one asks for its version when it
    begins; while it goes on, that would be a query per step.
    """
    env, context, store = request.env, request.context, request.store
    control, manual = (context.memory_control, context.seed), request.now.manual
    if not context.memory_file and store is not None:
        known = _versions.setdefault(store, {})
        if not request.begun or env not in known:
            known[env] = store_version(store, env)
        if known[env]:
            return _load(store, env, known[env], _spoiled(control), _categories(manual))
    return open_memory(env, context.memory_file, control, manual)


_versions: WeakKeyDictionary[BaseStore, dict[str, str]] = WeakKeyDictionary()


def open_memory(
    env: str, file: str, control: Controlled = AS_LEARNED, manual: Manual | None = None
) -> MemoryIndex:
    """A snapshot, loaded once per process and content; a world without one has an empty memory."""
    path = Path(file) if file else get_environment(env).memory
    stamp = stamp_of(path)
    if not file and stamp == NOT_THERE:
        return MemoryIndex()
    return _load(path, env, stamp, _spoiled(control), _categories(manual or load_manual(env)))


@lru_cache(maxsize=64)
def _categories(manual: Manual) -> Categories:
    """Manuals that differ elsewhere share an index: a large memory takes long to load."""
    return tuple((name, tuple(kinds)) for name, kinds in manual.domain.categories.items())


def _spoiled(control: Controlled) -> Controlled:
    """Filler takes the place of what is printed: it is looked for in the memory as it is."""
    return AS_LEARNED if control[0] in ("none", "filler") else control


@lru_cache(maxsize=8)
def _load(
    source: Path | BaseStore, env: str, _version: object, control: Controlled, kinds: Categories
) -> MemoryIndex:
    categories, keys = dict(kinds), get_environment(env).keys
    if isinstance(source, BaseStore):
        entries = load_from_store(source, env)
    elif control == AS_LEARNED:
        return load_index(source, env, categories, keys)
    else:
        _, entries = read_snapshot(source, env)
    return MemoryIndex.of(controlled(entries, *control), categories, keys)


@lru_cache(maxsize=64)
def _carried(env: str, entries: str, kinds: Categories) -> MemoryIndex:
    """What earlier trials of a task taught, as an index; the same at every step of the next."""
    parsed = [parse_entry(entry) for entry in json.loads(entries)]
    return MemoryIndex.of(parsed, dict(kinds), get_environment(env).keys)
