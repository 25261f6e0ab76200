"""The belief state b_t: only what is needed to check preconditions and screen memories.

One shape serves every world. What a *place* is (a piece of furniture, a room), and whether one or
many things can be held, is the world's own affair.
"""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

from typing_extensions import TypedDict

Door = Literal["open", "closed"]


class Event(TypedDict):
    """Something that happened and cannot be read off the state of things any more."""

    kind: str
    thing: str


class PastCall(TypedDict):
    """A tool call that was carried out."""

    tool: str
    arguments: dict[str, Any]


class Belief(TypedDict):
    """b_t = (location, hand, open/closed, last-seen locations), plus what was searched.

    Attributes:
        location: the place the agent stands at; None before the first move.
        reachable: other places known to share that spot, so usable without moving.
        spots: for places whose spot was looked at as a whole, everything that stands there.
        holding: objects in the hand, or carried along.
        containers: open or closed, for every openable place seen so far.
        last_seen: where each object was last observed.
        also_at: other places where an object was listed as well, for worlds in which one thing can
            be in two places at once.
        places: every place known to exist.
        searched: places whose contents have been seen, in the order they were first seen.
        visible: objects in view now, for environments that list them apart from places.
        alike: states of objects in view that share a name, by ``soil in flower pot 1``.
        flags: observed states of objects, such as water -> gas.
        events: what happened, in order, for environments whose goals are about what was done.
        disambiguation: the numbered choices of an ambiguous request, while it waits for a number.
        progress: pointer into the goal's sub-goals, for environments that count it.
        records: what tools' answers said of each thing, field by field, for agents with tools.
        calls: the tool calls that were carried out, in order, likewise.
    """

    location: str | None
    reachable: list[str]
    spots: dict[str, list[str]]
    holding: list[str]
    containers: dict[str, Door]
    last_seen: dict[str, str]
    also_at: dict[str, list[str]]
    places: list[str]
    searched: list[str]
    visible: list[str]
    alike: dict[str, str]
    flags: dict[str, str]
    events: list[Event]
    disambiguation: dict[str, str]
    progress: int
    records: dict[str, dict[str, Any]]
    calls: list[PastCall]


def empty_belief() -> Belief:
    """Nothing is known yet."""
    return Belief(
        location=None, reachable=[], spots={}, holding=[], containers={}, last_seen={}, also_at={},
        places=[], searched=[], visible=[], alike={}, flags={}, events=[], disambiguation={},
        progress=0, records={}, calls=[],
    )  # fmt: skip


def fingerprint(belief: Belief) -> str:
    """The same for equal beliefs, and short enough to keep one for every step of an episode."""
    text = json.dumps(without_calls(belief), sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def without_calls(belief: Belief) -> Belief:
    """What is so, apart from which calls led to it."""
    return {**belief, "calls": []}


def copy_belief(belief: Belief) -> Belief:
    """An independent copy, so that updates and simulations never touch their input."""
    twin = Belief(**{**empty_belief(), **belief})  # which an earlier version may have saved
    for name, part in belief.items():
        if isinstance(part, (list, dict)):
            twin[name] = part.copy()  # type: ignore[literal-required]
    twin["spots"] = {place: list(spot) for place, spot in belief["spots"].items()}
    twin["also_at"] = {thing: list(places) for thing, places in twin["also_at"].items()}
    twin["events"] = [event.copy() for event in belief["events"]]
    twin["records"] = {thing: dict(fields) for thing, fields in twin["records"].items()}
    twin["calls"] = [{**call, "arguments": dict(call["arguments"])} for call in twin["calls"]]
    return twin


@lru_cache(maxsize=65536)
def kind_of(name: str) -> str:
    """The type word of an instance name: ``mug 2`` -> ``mug``."""
    head, _, tail = name.rpartition(" ")
    return head if head and tail.isdigit() else name


@lru_cache(maxsize=65536)
def in_order(name: str) -> tuple[str, int]:
    """Sorts ``drawer 10`` behind ``drawer 9``."""
    kind = kind_of(name)
    number = name.removeprefix(kind).strip()
    return kind, int(number) if number.isdigit() else 0


def objects_at(belief: Belief, place: str) -> list[str]:
    """Objects last seen at a place, in the order they were seen."""
    return [thing for thing, where in belief["last_seen"].items() if where == place]
