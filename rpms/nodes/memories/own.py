"""Our own memory: entries whose goal resembles this one (Eq. 4), said for this home.

The index answers by goal alone. Here its candidates are filled in for the home and the moment,
equal ones become one, and the best k of each type go on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore

from rpms.envs import get_environment
from rpms.memory_store import (
    Header,
    MemoryIndex,
    load_from_store,
    load_index,
    merge_entries,
    parse_entry,
    read_snapshot,
    write_snapshot,
)
from rpms.memory_store.controls import Control, controlled
from rpms.memory_store.stores import store_version
from rpms.nodes.context import RunContext
from rpms.nodes.instantiation import Moment, instantiate
from rpms.nodes.manual import load_manual
from rpms.nodes.memories.lessons import learn
from rpms.nodes.memories.method import Ask, Fill, Learned, MemoryMethod, Origin, Request
from rpms.rules import Manual
from rpms.vocabulary.belief import kind_of
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


class OwnMemory(MemoryMethod):
    """Entries of the paper's four types and finds, from a snapshot or the deployment's store."""

    name = "rpms"
    cumulative = True
    needs_file = False

    def recall(self, request: Request) -> list[Recall]:
        """The best k of each type, filled in for this home."""
        context = request.context
        control = (context.memory_control, context.seed)
        index = find_memory(
            request.env, context.memory_file, request.store, control, begun=request.begun,
            manual=request.now.manual,
        )  # fmt: skip
        found = recall(index, request.now, context)
        if not (entries := request.carried.get("entries")):
            return found
        kinds = _categories(request.now.manual)
        earlier = recall(_carried(request.env, json.dumps(entries), kinds), request.now, context)
        return _ordered([*earlier, *(one for one in found if not _said_by(earlier, one))])

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

    def save(self, file: Path, env: str, learned: Learned, origin: Origin) -> Header:
        """A snapshot."""
        return write_snapshot(
            file, env, learned.entries, origin.sources, origin.rounds, origin.learned_by
        )


def recall(index: MemoryIndex, now: Moment, context: RunContext) -> list[Recall]:
    """The best k of each type that can be said here, and where to look for what is not seen yet."""
    near = index.recall(now.gamma, context.theta, context.k)
    near = [*near, *index.schemas(now.upcoming, context.k)]
    said: dict[tuple[str, ...], Recall] = {}
    for entry, score, count in near:
        advice = instantiate(entry, now)
        if advice is None:
            continue
        state = now.keys.compat(entry["state_signature"]) if "state_signature" in entry else ""
        key = (entry["type"], state, *advice["actions"], "|", *advice["needs"])
        if key in said:
            said[key]["count"] += count
        else:
            said[key] = new_recall(entry, score, count, advice)
    chosen = [*_where_found(index, now), *_best(_without_parts(said), context.k)]
    return _ordered(chosen)


def _ordered(recalls: Iterable[Recall]) -> list[Recall]:
    return sorted(recalls, key=lambda one: (ORDER.index(one["entry"]["type"]), -one["score"]))


def _said_by(others: Iterable[Recall], one: Recall) -> bool:
    """Whether an earlier trial of this very task says the same."""
    return any(
        other["entry"]["type"] == one["entry"]["type"] and other["advice"] == one["advice"]
        for other in others
    )


def _without_parts(said: dict[tuple[str, ...], Recall]) -> Iterator[Recall]:
    """Leave out a snippet that is only the beginning of another one from the same state."""
    snippets = [key[: key.index("|")] for key in said if key[0] == "success"]
    for key, one in said.items():
        mine = key[: key.index("|")]
        longer = (k for k in snippets if len(k) > len(mine) and k[: len(mine)] == mine)
        if key[0] != "success" or not any(longer):
            yield one


def _best(recalls: Iterable[Recall], k: int) -> Iterator[Recall]:
    taken: dict[str, int] = {}
    for one in sorted(recalls, key=lambda r: (-r["score"], -r["count"], r["entry"]["id"])):
        kind = one["entry"]["type"]
        taken[kind] = taken.get(kind, 0) + 1
        if taken[kind] <= k:
            yield one


def _where_found(index: MemoryIndex, now: Moment) -> Iterator[Recall]:
    """Where such things were found before, for what the goal asks for and nobody has seen yet.

    Places of this home that were not searched, the likeliest first.
    """
    belief = now.belief
    known = {*belief["holding"], *belief["last_seen"], *belief["visible"], *belief["places"]}
    seen = {kind_of(name) for name in known}
    searched = set(belief["searched"])
    left = [place for place in now.places if place not in searched]
    for kind in dict.fromkeys((now.goal["object"], now.goal["destination"])):
        if kind in seen and kind != now.sub_goal["target"]:
            continue
        counts = index.places_of(kind)
        ranked = sorted(
            counts, key=lambda place: (-counts[place][0] / (counts[place][1] + 1), place)
        )
        places = []
        total = 0
        for sort in ranked:
            here = [place for place in left if kind_of(place) == sort][: MOST_PLACES - total]
            if here:
                held, looked = counts[sort]
                places.append(f"{', '.join(here)} ({held} of {looked} held one)")
                total += len(here)
        if places:
            entry = {"id": f"found_{kind}", "type": "found", "object": kind}
            found = sum(held for held, _ in counts.values())
            yield new_recall(entry, 1.0, found, new_advice([], places=places))


def find_memory(
    env: str,
    file: str,
    store: BaseStore | None,
    control: Controlled = AS_LEARNED,
    *,
    begun: bool = False,
    manual: Manual | None = None,
) -> MemoryIndex:
    """The named snapshot; else the deployment's store; else the snapshot shipped with us.

    A store may have grown since the last episode, so each one asks for its version when it
    begins; while it goes on, that would be a query per step.
    """
    if not file and store is not None:
        known = _versions.setdefault(store, {})
        if not begun or env not in known:
            known[env] = store_version(store, env)
        if known[env]:
            kinds = _categories(manual or load_manual(env))
            return _from_store(store, env, known[env], _asked(control), kinds)
    return open_memory(env, file, control, manual)


_versions: WeakKeyDictionary[BaseStore, dict[str, str]] = WeakKeyDictionary()


def open_memory(
    env: str, file: str, control: Controlled = AS_LEARNED, manual: Manual | None = None
) -> MemoryIndex:
    """A snapshot, loaded once per process and content; a world without one has an empty memory."""
    path = Path(file) if file else get_environment(env).memory
    stamp = stamp_of(path)
    if not file and stamp == NOT_THERE:
        return MemoryIndex()
    return _open(path, env, stamp, _asked(control), _categories(manual or load_manual(env)))


@lru_cache(maxsize=64)
def _categories(manual: Manual) -> Categories:
    """Manuals that differ elsewhere share an index: a large memory takes long to load."""
    return tuple((name, tuple(kinds)) for name, kinds in manual.domain.categories.items())


def _asked(control: Controlled) -> Controlled:
    """Filler takes the place of what is printed: it is looked for in the memory as it is."""
    return AS_LEARNED if control[0] in ("none", "filler") else control


@lru_cache(maxsize=8)
def _open(
    path: Path,
    env: str,
    _stamp: tuple[int, int],
    control: Controlled,
    kinds: Categories,
) -> MemoryIndex:
    categories, keys = dict(kinds), get_environment(env).keys
    if control == AS_LEARNED:
        return load_index(path, env, categories, keys)
    return MemoryIndex.of(controlled(read_snapshot(path, env)[1], *control), categories, keys)


@lru_cache(maxsize=64)
def _carried(env: str, entries: str, kinds: Categories) -> MemoryIndex:
    """What earlier trials of a task taught, as an index; the same at every step of the next."""
    found = [parse_entry(entry) for entry in json.loads(entries)]
    return MemoryIndex.of(found, dict(kinds), get_environment(env).keys)


@lru_cache(maxsize=8)
def _from_store(
    store: BaseStore, env: str, _version: str, control: Controlled, kinds: Categories
) -> MemoryIndex:
    entries = controlled(load_from_store(store, env), *control)
    return MemoryIndex.of(entries, dict(kinds), get_environment(env).keys)
