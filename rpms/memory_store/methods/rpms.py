"""The memory of the paper: entries with a similar goal (Eq. 4), grounded in the current scene.

``recall`` returns every candidate for the goal, grounded. The state filter and the arbiter judge
them all. From the survivors ``select`` drops duplicates and keeps the best k of each type.
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
    merge_entries,
    parse_entry,
    read_snapshot,
)
from rpms.memory_store.controls import Control
from rpms.memory_store.grounding import ground
from rpms.memory_store.lessons import learn, says_something
from rpms.memory_store.methods.method import (
    Ask,
    Fill,
    Learned,
    MemoryMethod,
    RecallRequest,
)
from rpms.memory_store.retrieval import Found
from rpms.memory_store.snapshot import store_version
from rpms.rules import Manual
from rpms.vocabulary.belief import kind_of
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.files import NOT_THERE, stamp_of
from rpms.vocabulary.recall import Recall, drop, new_advice, new_recall
from rpms.vocabulary.turn import EpisodeRecord

# A hint that lists more places than this is of no use.
MOST_PLACES = 8
# The control that is applied to the memory, and its seed.
Controlled = tuple[Control, int]
AS_LEARNED: Controlled = ("none", 0)
# The order in the prompt; the token budget drops the last ones first.
ORDER = ("critical_failure", "success", "found", "failure", "schema")


class RpmsMemory(MemoryMethod):
    """Entries of the paper's four types and finds, from a snapshot or the deployment's store."""

    name = "rpms"
    cumulative = True
    needs_file = False

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return every candidate, grounded, in the order of types."""
        recalls: list[Recall] = []
        for index in self._indexes(request):
            if request.context.prompt_style == "ours":  # the paper has no such memories
                recalls += where_to_look(index, request)
            for entry, score, count, _ in retrieve(index, request):
                advice, not_groundable = ground(entry, request.moment)
                recalled = new_recall(entry, score, count, advice)
                if not_groundable:
                    recalled = drop(recalled, "not groundable", not_groundable)
                recalls.append(recalled)
        return sorted(recalls, key=lambda r: (ORDER.index(r["entry"]["type"]), -r["score"]))

    def truncated(self, request: RecallRequest) -> dict[str, int]:
        """Count the entries that are not listed: duplicates, and those over top-k."""
        counts: Counter[str] = Counter()
        for index in self._indexes(request):
            counts.update(_find(index, request).truncated)
        return dict(counts)

    def select(self, recalls: Sequence[Recall], context: RunContext) -> list[Recall]:
        """Drop duplicates; keep the best k of each type."""
        return list(best(merged(recalls), context.k))

    def _indexes(self, request: RecallRequest) -> list[MemoryIndex]:
        frozen = find_memory(request)
        if not (entries := request.cross_trial_memory.get("entries")):
            return [frozen]
        return [_cross_trial_index(request.env, json.dumps(entries)), frozen]

    def check(self, env: str, context: RunContext) -> None:
        """Read the memory file, if the settings name one."""
        if context.memory_file:
            open_memory(env, context.memory_file)

    def render(self, recalls: Sequence[Recall], fill: Fill) -> str:
        """Print the memories as in the paper's listings."""
        return fill("memory.j2", recalls=recalls)

    async def learn(
        self, records: Sequence[EpisodeRecord], ask: Ask | None, manual: Manual | None = None
    ) -> Learned:
        """Extract entries from the recorded episodes, without a model; drop empty schemas."""
        return Learned([entry for entry in learn(records, manual) if says_something(entry)])

    async def carry(
        self,
        cross_trial_memory: Mapping[str, Any],
        record: EpisodeRecord,
        ask: Ask,
        manual: Manual | None = None,
    ) -> dict[str, Any]:
        """Merge the entries of this trial into those of the task's earlier trials."""
        entries = [parse_entry(entry) for entry in cross_trial_memory.get("entries", [])]
        keys = get_environment(record["env"]).keys
        merged = merge_entries([*entries, *learn([record], manual)], keys)
        return {"entries": [entry.model_dump(mode="json") for entry in merged]}


def retrieve(index: MemoryIndex, request: RecallRequest) -> Iterator[Candidate]:
    """Yield snippets and lessons of similar goals, then the schemas of the actions they end with.

    The schemas for the current sub-goal come first.
    """
    near = _find(index, request).candidates
    yield from near
    snippets = [c.entry for c in near if c.entry["type"] == "success"]
    snippets.sort(key=lambda entry: entry["sub_goal_type"] != request.moment.sub_goal["name"])
    completing = (entry["precondition"].get("action_type", "") for entry in snippets)
    yield from index.schemas(dict.fromkeys(completing))


def _find(index: MemoryIndex, request: RecallRequest) -> Found:
    context = request.context
    return index.find(request.moment.gamma, context.theta, context.k, request.similarity)


def merged(recalls: Sequence[Recall]) -> list[Recall]:
    """Drop duplicates: memories that print the same, and those that add nothing to another.

    A snippet adds nothing if it is the beginning of another one, or has the same steps with
    repetitions or in another order. A lesson adds nothing to one that says the same of the same
    action, and more.
    """
    speaker: dict[tuple[object, ...], int] = {}
    after = list(recalls)
    for number, recalled in enumerate(recalls):
        if recalled["dropped_by"]:
            continue
        first = speaker.setdefault(_content(recalled), number)
        if first != number:
            same = after[first]
            after[first] = {**same, "count": same["count"] + recalled["count"]}
            after[number] = drop(recalled, "duplicate", f"says the same as {same['entry']['id']}")
    longer: dict[tuple[object, ...], str] = {}
    snippets = [n for n in speaker.values() if after[n]["entry"]["type"] == "success"]
    for number in snippets:
        printed = after[number]["advice"]["printed"]
        for length in range(1, len(printed)):
            longer.setdefault(tuple(printed[:length]), after[number]["entry"]["id"])
    for number in snippets:
        if whole := longer.get(tuple(after[number]["advice"]["printed"])):
            after[number] = drop(after[number], "duplicate", f"is the beginning of {whole}")
    left = [number for number in snippets if not after[number]["dropped_by"]]
    left.sort(key=lambda number: len(after[number]["advice"]["printed"]))
    for position, number in enumerate(left):
        for short in left[:position]:
            steps, others = (after[n]["advice"]["printed"] for n in (number, short))
            if _detour(steps, others) or sorted(steps) == sorted(others):
                how = "with steps repeated" if len(steps) > len(others) else "in another order"
                why = f"is {after[short]['entry']['id']} {how}"
                after[number] = drop(after[number], "duplicate", why)
                break
    lessons = [n for n in speaker.values() if after[n]["entry"]["type"] == "failure"]
    for number in lessons:
        action, needs = after[number]["advice"]["printed"], {*after[number]["advice"]["needs"]}
        for other in lessons:
            advice = after[other]["advice"]
            if needs and advice["printed"] == action and needs < {*advice["needs"]}:
                why = f"{after[other]['entry']['id']} says more"
                after[number] = drop(after[number], "duplicate", why)
    return after


def _detour(steps: Sequence[str], shorter: Sequence[str]) -> bool:
    """Return True if the steps are the shorter ones with repetitions, and end the same.

    Any additional step may be needed, so it is no detour.
    """
    if len(steps) <= len(shorter) or steps[-1:] != shorter[-1:] or {*steps} - {*shorter}:
        return False
    rest = iter(steps)
    return all(step in rest for step in shorter)


def _content(recalled: Recall) -> tuple[object, ...]:
    entry, advice = recalled["entry"], recalled["advice"]
    contents = (tuple(advice[part]) for part in ("printed", "needs", "then", "places"))
    return entry["type"], *contents


def best(recalls: Iterable[Recall], k: int) -> Iterator[Recall]:
    """Drop all but the first k survivors of each type."""
    chosen: Counter[str] = Counter()
    for recalled in recalls:
        kind = recalled["entry"]["type"]
        chosen[kind] += not recalled["dropped_by"]
        if not recalled["dropped_by"] and chosen[kind] > k and kind != "found":
            recalled = drop(recalled, "over top-k", f"{k} of its type are better")
        yield recalled


def where_to_look(index: MemoryIndex, request: RecallRequest) -> Iterator[Recall]:
    """Yield where the goal's object and destination were found before, if not seen yet.

    A hint lists unsearched places of this scene, the likeliest first. There is none for a thing
    that is another one in each task, such as that task's red box.
    """
    moment = request.moment
    individual = moment.env.individual
    belief = moment.belief
    things = {*belief["holding"], *belief["last_seen"], *belief["visible"], *belief["places"]}
    seen = {kind_of(name) for name in things}
    unsearched = [place for place in moment.places if place not in set(belief["searched"])]
    for kind in dict.fromkeys((moment.goal["object"], moment.goal["destination"])):
        if (kind in seen and kind != moment.sub_goal["target"]) or individual(kind):
            continue
        counts = index.places_of(kind)
        ranked = sorted(counts, key=lambda sort: (-counts[sort][0] / (counts[sort][1] + 1), sort))
        places = []
        total = 0
        for sort in ranked:
            candidates = [place for place in unsearched if kind_of(place) == sort]
            listed = candidates[: MOST_PLACES - total]
            if listed:
                held, looked = counts[sort]
                more = len(candidates) - len(listed)
                names = ", ".join(listed) + (f" and {more} more" if more else "")
                numbered = names != sort and moment.form == "grounded"
                hint = f"; here: {names}" if numbered else ""
                places.append(f"{sort} ({held} of {looked} searched held one{hint})")
                total += len(listed)
        if places:
            entry = {"id": f"found_{kind}", "type": "found", "object": kind}
            times = sum(held for held, _ in counts.values())
            yield new_recall(entry, 1.0, times, new_advice([], places=places))


def find_memory(request: RecallRequest) -> MemoryIndex:
    """Return the snapshot that the settings name, else the store, else the shipped snapshot.

    A store may have grown since the last episode. Its version is read once an episode, because
    reading it at every step would cost a query each. The control ``filler`` changes no entries.
    """
    env, context, store = request.env, request.context, request.store
    as_learned = context.memory_control in ("none", "filler")
    control = AS_LEARNED if as_learned else (context.memory_control, context.seed)
    if not context.memory_file and store is not None:
        versions = _versions.setdefault(store, {})
        if not request.begun or env not in versions:
            versions[env] = store_version(store, env)
        if versions[env]:
            return _load(store, env, versions[env], control)
    return open_memory(env, context.memory_file, control)


_versions: WeakKeyDictionary[BaseStore, dict[str, str]] = WeakKeyDictionary()


def open_memory(env: str, file: str, control: Controlled = AS_LEARNED) -> MemoryIndex:
    """Load a snapshot, once per process and content; without one the memory is empty."""
    path = Path(file) if file else get_environment(env).memory
    stamp = stamp_of(path)
    if not file and stamp == NOT_THERE:
        return MemoryIndex()
    return _load(path, env, stamp, control)


@lru_cache(maxsize=8)
def _load(source: Path | BaseStore, env: str, _version: object, control: Controlled) -> MemoryIndex:
    if isinstance(source, BaseStore):
        entries = load_from_store(source, env)
    else:
        _, entries = read_snapshot(source, env)
    world = get_environment(env)
    return MemoryIndex(controlled(entries, *control), world.categories, world.keys)


@lru_cache(maxsize=64)
def _cross_trial_index(env: str, entries: str) -> MemoryIndex:
    """Index the entries of earlier trials, once for all steps of the next trial."""
    world = get_environment(env)
    return MemoryIndex(map(parse_entry, json.loads(entries)), world.categories, world.keys)
