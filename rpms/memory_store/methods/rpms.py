"""Our own memory: entries whose goal resembles this one (Eq. 4), said for this home.

``recall`` has the candidates, by goal alone, and what each of them says here; nothing is left out.
State filter and arbiter judge them all. Of those that are left, ``select`` keeps what earns its
place: nothing that a printed rule says already, nothing that speaks against what another one
advises, equal ones as one, and the best k of each type.
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
from rpms.envs.manuals import load_manual
from rpms.memory_store import (
    Candidate,
    Entry,
    MemoryIndex,
    controlled,
    load_from_store,
    merge_entries,
    parse_entry,
    read_snapshot,
)
from rpms.memory_store.controls import Control
from rpms.memory_store.grounding import GroundingContext, ground
from rpms.memory_store.lessons import learn
from rpms.memory_store.methods.method import (
    Ask,
    Fill,
    Learned,
    MemoryMethod,
    PrintedRules,
    RecallRequest,
)
from rpms.memory_store.stores import store_version
from rpms.rules import Manual, match_action
from rpms.rules.predicates import is_predicate, parse_predicate
from rpms.rules.wording import statement
from rpms.vocabulary.belief import kind_of
from rpms.vocabulary.context import MemoryForm, RunContext
from rpms.vocabulary.files import NOT_THERE, stamp_of
from rpms.vocabulary.recall import Recall, drop, new_advice, new_recall
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
        """Every candidate, put into words; what this task's own trials taught comes first."""
        indexes, now, context = self._indexes(request), request.now, request.context
        recalls = [r for index in indexes for r in recall(index, now, context)]
        if not get_environment(request.env).embodied:
            recalls = [of_this_step(recalled, now) for recalled in recalls]
        return sorted(recalls, key=lambda r: (ORDER.index(r["entry"]["type"]), -r["score"]))

    def truncated(self, request: RecallRequest) -> dict[str, int]:
        """Entries that say what a listed one says, and those that a long list leaves behind."""
        counts: Counter[str] = Counter()
        for index in self._indexes(request):
            context = request.context
            counts.update(index.truncated(request.now.gamma, context.theta, context.k))
        return dict(counts)

    def select(
        self, recalls: Sequence[Recall], context: RunContext, rules: PrintedRules | None = None
    ) -> list[Recall]:
        """What says something new and speaks with one voice, equal ones as one, the best k."""
        if rules:
            recalls = [covered(recalled, rules) for recalled in recalls]
        return list(best(merged(one_voice(recalls, context.memory_form)), context.k))

    def _indexes(self, request: RecallRequest) -> list[MemoryIndex]:
        frozen = find_memory(request)
        if not (entries := request.cross_trial_memory.get("entries")):
            return [frozen]
        known = _categories(request.now.manual)
        return [_carried(request.env, json.dumps(entries), known), frozen]

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
        """By replaying the episodes on paper; nobody is asked. What says nothing is left out."""
        return Learned([entry for entry in learn(records, manual) if says_something(entry)])

    async def carry(
        self,
        cross_trial_memory: Mapping[str, Any],
        record: EpisodeRecord,
        ask: Ask,
        manual: Manual | None = None,
    ) -> dict[str, Any]:
        """What this task's trials taught so far, beside the frozen memory."""
        known = [parse_entry(entry) for entry in cross_trial_memory.get("entries", [])]
        keys = get_environment(record["env"]).keys
        merged = merge_entries([*known, *learn([record], manual)], keys)
        return {"entries": [entry.model_dump(mode="json") for entry in merged]}


def of_this_step(recalled: Recall, now: GroundingContext) -> Recall:
    """Where no place and no hand tell how far one is, a snippet is for its own sub-goal."""
    entry, step = recalled["entry"], now.sub_goal["name"]
    foreign = entry["type"] == "success" and step and entry["sub_goal_type"] != step
    if recalled["dropped_by"] or not foreign:
        return recalled
    return drop(recalled, "not groundable", f"it is about {entry['sub_goal_type']}, not {step}")


def says_something(entry: Entry) -> bool:
    """Whether an entry can teach anything: a schema without need and effect cannot."""
    return entry.type != "schema" or bool(entry.preconditions or entry.effects)


def recall(index: MemoryIndex, now: GroundingContext, context: RunContext) -> Iterator[Recall]:
    """Where to look for what is not seen yet, and every candidate, best first within its type."""
    if context.prompt_style == "ours":  # the paper has no such memories
        yield from where_to_look(index, now)
    for entry, score, count, _ in retrieve(index, now, context):
        advice, not_groundable = ground(entry, now)
        recalled = new_recall(entry, score, count, advice)
        yield drop(recalled, "not groundable", not_groundable) if not_groundable else recalled


def retrieve(index: MemoryIndex, now: GroundingContext, context: RunContext) -> Iterator[Candidate]:
    """Snippets and lessons of goals near enough, and the schemas of what completes their steps.

    The schema for the step at hand comes first; what that is, the snippets tell.
    """
    near = index.recall(now.gamma, context.theta, context.k)
    yield from near
    snippets = [c.entry for c in near if c.entry["type"] == "success"]
    snippets.sort(key=lambda entry: entry["sub_goal_type"] != now.sub_goal["name"])
    completing = (entry["precondition"].get("action_type", "") for entry in snippets)
    yield from index.schemas(dict.fromkeys(completing))


def covered(recalled: Recall, rules: PrintedRules) -> Recall:
    """A lesson or a schema that says no more than a printed line does is left out.

    That is the action's own line, or the one that says for all actions what they need.
    """
    entry = recalled["entry"]
    if recalled["dropped_by"] or entry["type"] not in ("failure", "schema"):
        return recalled
    if entry["type"] == "schema":
        rule = next((r for r in rules.manual.actions if r.name == entry["action_type"]), None)
    else:
        rule, _ = match_action(rules.manual, entry["failed_action"]) or (None, {})
    if rule is not None and entry["type"] == "failure" and _understood(entry["violated"], rules):
        return drop(recalled, "covered", "a rule says so of all actions", rule.id)
    if rule is None or rule.id not in rules.ids:
        return recalled
    if entry["type"] == "schema":
        told = _within(entry["preconditions"], rule.preconditions, rules.manual)
        told = told and _within(entry["effects"], rule.effects, rules.manual)
    else:
        told = bool(entry["violated"])
        told = told and _within(entry["violated"], rule.preconditions, rules.manual)
    reason = f"[{rule.id}] says so already"
    return drop(recalled, "covered", reason, rule.id) if told else recalled


def _understood(violated: Sequence[str], rules: PrintedRules) -> bool:
    """Whether all that was missing is what Tier 3 says once for all actions, in a printed rule."""
    environment = rules.manual.environment
    if not rules.ids & {rule.id for rule in environment.rules}:
        return False
    names = [parse_predicate(text).name for text in violated if is_predicate(text)]
    return bool(names) and len(names) == len(violated) and {*names} <= {*environment.understood}


# What follows from the others: a thing that lies where the agent is, is here and in view; who has
# put the one thing down has an empty hand.
_FOLLOWS = ("here", "visible", "hand_empty", "holding")


def _within(noticed: Iterable[str], taught: Iterable[str], manual: Manual) -> bool:
    """Whether a rule says all that was noticed, in the same words, or what that follows from.

    What was written by hand, in words, cannot be compared.
    """

    def words(text: str) -> str:
        if not is_predicate(text):
            return text
        return statement(parse_predicate(text), {}, manual.facts)

    said = {words(text) for text in taught}
    new = [text for text in noticed if words(text) not in said]
    return all(is_predicate(text) and parse_predicate(text).name in _FOLLOWS for text in new)


def one_voice(recalls: Sequence[Recall], form: MemoryForm) -> list[Recall]:
    """Nothing warns of what something else advises.

    A lesson that says what an action needs speaks against nothing, unless it is printed as the
    paper's AVOID. Of an answer that was right for one goal and fatal for another, the nearer goal's
    counts; of equally near ones the fatal one, which cannot be undone.
    """
    after = list(recalls)

    def shown(*types: str) -> list[int]:
        alive = (n for n, recalled in enumerate(after) if not recalled["dropped_by"])
        return [n for n in alive if after[n]["entry"]["type"] in types]

    def nearness(number: int) -> float:
        weight: float = after[number]["entry"].get("retrieval_weight", 1.0)
        return after[number]["score"] / weight

    for number in shown("critical_failure"):
        action = "".join(after[number]["advice"]["printed"][-1:])
        for snippet in shown("success"):
            if action in after[snippet]["advice"]["printed"]:
                fatal = nearness(number) >= nearness(snippet)
                loser, winner = (snippet, number) if fatal else (number, snippet)
                why = f"{after[winner]['entry']['id']} says otherwise of '{action}'"
                after[loser] = drop(after[loser], "contradicted", why)
                if loser == number:
                    break
    advised = {a: n for n in shown("success") for a in after[n]["advice"]["printed"]}
    for number in shown("failure"):
        lesson = after[number]
        action = "".join(lesson["advice"]["printed"][-1:])
        explained = bool(lesson["advice"]["needs"])
        if action in advised and (form == "recorded" or not explained):
            why = f"{after[advised[action]]['entry']['id']} advises '{action}'"
            after[number] = drop(lesson, "contradicted", why)
    return after


def merged(recalls: Sequence[Recall]) -> list[Recall]:
    """Of those still in: what prints the same once, and of ways to one end the shortest.

    No snippet is told that only begins another, nor one that is another with steps repeated or in
    another order.
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
    for at, number in enumerate(left):
        for short in left[:at]:
            steps, others = (after[n]["advice"]["printed"] for n in (number, short))
            if _detour(steps, others) or sorted(steps) == sorted(others):
                how = "with steps repeated" if len(steps) > len(others) else "in another order"
                why = f"is {after[short]['entry']['id']} {how}"
                after[number] = drop(after[number], "duplicate", why)
                break
    return after


def _detour(steps: Sequence[str], shorter: Sequence[str]) -> bool:
    """Whether a way is a shorter one with some of its steps repeated, and ends as that does.

    Any other step that it has besides may be one that is needed.
    """
    if len(steps) <= len(shorter) or steps[-1:] != shorter[-1:] or {*steps} - {*shorter}:
        return False
    rest = iter(steps)
    return all(step in rest for step in shorter)


def _content(recalled: Recall) -> tuple[object, ...]:
    entry, advice = recalled["entry"], recalled["advice"]
    said = (tuple(advice[part]) for part in ("printed", "needs", "then", "places"))
    return entry["type"], *said


def best(recalls: Iterable[Recall], k: int) -> Iterator[Recall]:
    """The first k of each type that are still in go on."""
    chosen: Counter[str] = Counter()
    for recalled in recalls:
        kind = recalled["entry"]["type"]
        chosen[kind] += not recalled["dropped_by"]
        if not recalled["dropped_by"] and chosen[kind] > k and kind != "found":
            recalled = drop(recalled, "over top-k", f"{k} of its type are better")
        yield recalled


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
                names = f"; here: {', '.join(here)}" if now.form == "grounded" else ""
                places.append(f"{sort} ({held} of {looked} searched held one{names})")
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
    control, now = (context.memory_control, context.seed), request.now
    if not context.memory_file and store is not None:
        known = _versions.setdefault(store, {})
        if not request.begun or env not in known:
            known[env] = store_version(store, env)
        if known[env]:
            return _load(store, env, known[env], _spoiled(control), _categories(now.manual))
    return open_memory(env, context.memory_file, control, now.manual)


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
    """Manuals that differ elsewhere share an index."""
    return tuple((name, tuple(kinds)) for name, kinds in manual.domain.categories.items())


def _spoiled(control: Controlled) -> Controlled:
    """Filler takes the place of what is printed: it is looked for in the memory as it is."""
    return AS_LEARNED if control[0] in ("none", "filler") else control


@lru_cache(maxsize=8)
def _load(
    source: Path | BaseStore, env: str, _version: object, control: Controlled, kinds: Categories
) -> MemoryIndex:
    if isinstance(source, BaseStore):
        entries = load_from_store(source, env)
    else:
        _, entries = read_snapshot(source, env)
    return MemoryIndex(controlled(entries, *control), dict(kinds), get_environment(env).keys)


@lru_cache(maxsize=64)
def _carried(env: str, entries: str, kinds: Categories) -> MemoryIndex:
    """What earlier trials of a task taught, as an index; the same at every step of the next."""
    parsed = [parse_entry(entry) for entry in json.loads(entries)]
    return MemoryIndex(parsed, dict(kinds), get_environment(env).keys)
