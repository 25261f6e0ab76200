"""The memory of the paper: entries with a similar goal (Eq. 4), grounded in the current scene.

``recall`` returns every candidate for the goal, grounded. The state filter and the arbiter judge
them all. From the survivors ``select`` drops memories that a printed rule covers, memories that
another one contradicts, and duplicates; of the rest it keeps the best k of each type.
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

# A hint that lists more places than this is of no use.
MOST_PLACES = 8
# The control that is applied to the memory, and its seed.
Controlled = tuple[Control, int]
AS_LEARNED: Controlled = ("none", 0)
# Kinds of things that belong together, by name, as a hashable key.
Categories = tuple[tuple[str, tuple[str, ...]], ...]
# The order in the prompt; the token budget drops the last ones first.
ORDER = ("critical_failure", "success", "found", "failure", "schema")


class RpmsMemory(MemoryMethod):
    """Entries of the paper's four types and finds, from a snapshot or the deployment's store."""

    name = "rpms"
    cumulative = True
    needs_file = False

    def recall(self, request: RecallRequest) -> list[Recall]:
        """Return every candidate, grounded, in the order of types."""
        indexes, moment, context = self._indexes(request), request.moment, request.context
        recalls = [r for index in indexes for r in recall(index, moment, context)]
        if not get_environment(request.env).embodied:
            recalls = [of_this_step(recalled, moment) for recalled in recalls]
        return sorted(recalls, key=lambda r: (ORDER.index(r["entry"]["type"]), -r["score"]))

    def truncated(self, request: RecallRequest) -> dict[str, int]:
        """Count the entries that are not listed: duplicates, and those over top-k."""
        counts: Counter[str] = Counter()
        for index in self._indexes(request):
            context = request.context
            counts.update(index.truncated(request.moment.gamma, context.theta, context.k))
        return dict(counts)

    def select(
        self, recalls: Sequence[Recall], context: RunContext, rules: PrintedRules | None = None
    ) -> list[Recall]:
        """Drop covered, contradicted and duplicate memories; keep the best k of each type."""
        if rules:
            recalls = [covered(recalled, rules) for recalled in recalls]
        return list(best(merged(one_voice(recalls, context.memory_form)), context.k))

    def _indexes(self, request: RecallRequest) -> list[MemoryIndex]:
        frozen = find_memory(request)
        if not (entries := request.cross_trial_memory.get("entries")):
            return [frozen]
        categories = _categories(request.moment.manual)
        return [_carried(request.env, json.dumps(entries), categories), frozen]

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


def of_this_step(recalled: Recall, moment: GroundingContext) -> Recall:
    """Drop a snippet for another sub-goal; only for environments without a body.

    In the others, place and hand show which steps of a snippet remain.
    """
    entry, step = recalled["entry"], moment.sub_goal["name"]
    foreign = entry["type"] == "success" and step and entry["sub_goal_type"] != step
    if recalled["dropped_by"] or not foreign:
        return recalled
    return drop(recalled, "not groundable", f"it is about {entry['sub_goal_type']}, not {step}")


def says_something(entry: Entry) -> bool:
    """Return False for a schema without preconditions and effects."""
    return entry.type != "schema" or bool(entry.preconditions or entry.effects)


def recall(index: MemoryIndex, moment: GroundingContext, context: RunContext) -> Iterator[Recall]:
    """Yield hints where to look for unseen things, then every candidate."""
    if context.prompt_style == "ours":  # the paper has no such memories
        yield from where_to_look(index, moment)
    for entry, score, count, _ in retrieve(index, moment, context):
        advice, not_groundable = ground(entry, moment)
        recalled = new_recall(entry, score, count, advice)
        yield drop(recalled, "not groundable", not_groundable) if not_groundable else recalled


def retrieve(
    index: MemoryIndex, moment: GroundingContext, context: RunContext
) -> Iterator[Candidate]:
    """Yield snippets and lessons of similar goals, then the schemas of the actions they end with.

    The schemas for the current sub-goal come first.
    """
    near = index.recall(moment.gamma, context.theta, context.k)
    yield from near
    snippets = [c.entry for c in near if c.entry["type"] == "success"]
    snippets.sort(key=lambda entry: entry["sub_goal_type"] != moment.sub_goal["name"])
    completing = (entry["precondition"].get("action_type", "") for entry in snippets)
    yield from index.schemas(dict.fromkeys(completing))


def covered(recalled: Recall, rules: PrintedRules) -> Recall:
    """Drop a lesson or a schema that says no more than a printed rule.

    That is the action's own rule, or one that states a precondition of all actions.
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
        covers = _within(entry["preconditions"], rule.preconditions, rules.manual)
        covers = covers and _within(entry["effects"], rule.effects, rules.manual)
    else:
        covers = bool(entry["violated"])
        covers = covers and _within(entry["violated"], rule.preconditions, rules.manual)
    reason = f"[{rule.id}] says so already"
    return drop(recalled, "covered", reason, rule.id) if covers else recalled


def _understood(violated: Sequence[str], rules: PrintedRules) -> bool:
    """Return True if a printed Tier 3 rule states the violated preconditions for all actions."""
    environment = rules.manual.environment
    if not rules.ids & {rule.id for rule in environment.rules}:
        return False
    names = [parse_predicate(text).name for text in violated if is_predicate(text)]
    return bool(names) and len(names) == len(violated) and {*names} <= {*environment.understood}


# Literals that follow from others: a thing at the agent's place is here and in view; an agent that
# put its one thing down has an empty hand.
_FOLLOWS = ("here", "visible", "hand_empty", "holding")


def _within(noticed: Iterable[str], taught: Iterable[str], manual: Manual) -> bool:
    """Return True if a rule states every observed condition, or one that it follows from.

    Conditions that were written by hand, in words, cannot be compared.
    """

    def words(text: str) -> str:
        if not is_predicate(text):
            return text
        return statement(parse_predicate(text), {}, manual.facts)

    taught_words = {words(text) for text in taught}
    new = [text for text in noticed if words(text) not in taught_words]
    return all(is_predicate(text) and parse_predicate(text).name in _FOLLOWS for text in new)


def one_voice(recalls: Sequence[Recall], form: MemoryForm) -> list[Recall]:
    """Drop memories that contradict another one: a warning against an action it advises.

    A lesson that only states what an action needs contradicts nothing, unless it is printed as the
    paper's AVOID. If an action was right for one goal and fatal for another, the more similar goal
    wins; if both are equally similar, the fatal one does, because it cannot be undone.
    """
    after = list(recalls)

    def shown(*types: str) -> list[int]:
        survivors = (n for n, recalled in enumerate(after) if not recalled["dropped_by"])
        return [n for n in survivors if after[n]["entry"]["type"] in types]

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
    """Drop duplicates: memories that print the same, and snippets that add nothing to another.

    A snippet adds nothing if it is the beginning of another one, or has the same steps with
    repetitions or in another order.
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


def where_to_look(index: MemoryIndex, moment: GroundingContext) -> Iterator[Recall]:
    """Yield where the goal's object and destination were found before, if not seen yet.

    A hint lists unsearched places of this scene, the likeliest first.
    """
    belief = moment.belief
    things = {*belief["holding"], *belief["last_seen"], *belief["visible"], *belief["places"]}
    seen = {kind_of(name) for name in things}
    unsearched = [place for place in moment.places if place not in set(belief["searched"])]
    for kind in dict.fromkeys((moment.goal["object"], moment.goal["destination"])):
        if kind in seen and kind != moment.sub_goal["target"]:
            continue
        counts = index.places_of(kind)
        ranked = sorted(counts, key=lambda sort: (-counts[sort][0] / (counts[sort][1] + 1), sort))
        places = []
        total = 0
        for sort in ranked:
            candidates = [place for place in unsearched if kind_of(place) == sort][
                : MOST_PLACES - total
            ]
            if candidates:
                held, looked = counts[sort]
                names = f"; here: {', '.join(candidates)}" if moment.form == "grounded" else ""
                places.append(f"{sort} ({held} of {looked} searched held one{names})")
                total += len(candidates)
        if places:
            entry = {"id": f"found_{kind}", "type": "found", "object": kind}
            times = sum(held for held, _ in counts.values())
            yield new_recall(entry, 1.0, times, new_advice([], places=places))


def find_memory(request: RecallRequest) -> MemoryIndex:
    """Return the snapshot that the settings name, else the store, else the shipped snapshot.

    A store may have grown since the last episode. Its version is read once an episode, because
    reading it at every step would cost a query each.
    """
    env, context, store = request.env, request.context, request.store
    control, moment = (context.memory_control, context.seed), request.moment
    if not context.memory_file and store is not None:
        versions = _versions.setdefault(store, {})
        if not request.begun or env not in versions:
            versions[env] = store_version(store, env)
        if versions[env]:
            return _load(store, env, versions[env], _spoiled(control), _categories(moment.manual))
    return open_memory(env, context.memory_file, control, moment.manual)


_versions: WeakKeyDictionary[BaseStore, dict[str, str]] = WeakKeyDictionary()


def open_memory(
    env: str, file: str, control: Controlled = AS_LEARNED, manual: Manual | None = None
) -> MemoryIndex:
    """Load a snapshot, once per process and content; without one the memory is empty."""
    path = Path(file) if file else get_environment(env).memory
    stamp = stamp_of(path)
    if not file and stamp == NOT_THERE:
        return MemoryIndex()
    return _load(path, env, stamp, _spoiled(control), _categories(manual or load_manual(env)))


@lru_cache(maxsize=64)
def _categories(manual: Manual) -> Categories:
    """Return the only part of a manual that the index depends on, so that manuals share one."""
    return tuple((name, tuple(kinds)) for name, kinds in manual.domain.categories.items())


def _spoiled(control: Controlled) -> Controlled:
    """Return the control of the entries; ``filler`` changes only what is printed."""
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
    """Index the entries of earlier trials, once for all steps of the next trial."""
    parsed = [parse_entry(entry) for entry in json.loads(entries)]
    return MemoryIndex(parsed, dict(kinds), get_environment(env).keys)
