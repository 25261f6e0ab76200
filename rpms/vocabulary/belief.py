"""The belief state b_t: what is needed to check preconditions and filter memories.

All worlds use this type. A world decides what a *place* is (a piece of furniture, a room), and
whether the agent can hold one thing or many.
"""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

Door = Literal["open", "closed"]


class Event(TypedDict):
    """Something that happened and that the current state does not show."""

    kind: str
    thing: str


class PastCall(TypedDict):
    """A tool call that was carried out, when, and whether it was answered with an error."""

    tool: str
    arguments: dict[str, Any]
    failed: NotRequired[bool]
    at: NotRequired[str]


class Belief(TypedDict):
    """b_t = (location, hand, open/closed, last-seen locations), plus what was searched.

    Attributes:
        location: the place the agent stands at; None before the first move.
        reachable: other places at the same spot, usable without moving.
        spots: for places where the agent looked around, everything at that spot.
        holding: objects in the hand or carried.
        containers: open or closed, for every openable place seen so far.
        last_seen: where each object was last observed.
        also_at: further places of an object, for worlds in which one thing can be in two places.
        places: every place known to exist.
        searched: places whose contents have been seen, in the order they were first seen.
        visible: objects in view, for environments that list them separately from places.
        alike: states of objects in view that share a name, keyed by ``soil in flower pot 1``.
        flags: observed states of objects, such as water -> gas.
        events: what happened, in order, for environments whose goals depend on events.
        disambiguation: the numbered choices of an ambiguous request that waits for a number.
        progress: pointer into the goal's sub-goals, for environments that count it.
        records: the fields that tools' answers gave for each thing, for agents with tools.
        calls: the tool calls that were carried out, in order, for agents with tools.
        owned: of each record the fields that a look-up of this very thing has shown.
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
    owned: dict[str, list[str]]


def empty_belief() -> Belief:
    return Belief(
        location=None, reachable=[], spots={}, holding=[], containers={}, last_seen={}, also_at={},
        places=[], searched=[], visible=[], alike={}, flags={}, events=[], disambiguation={},
        progress=0, records={}, calls=[], owned={},
    )  # fmt: skip


def fingerprint(belief: Belief) -> str:
    """A short hash of a belief, kept for every step of an episode; calls are ignored."""
    shown = {name: part for name, part in without_calls(belief).items() if name != "owned"}
    text = json.dumps(shown, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def without_calls(belief: Belief) -> Belief:
    return {**belief, "calls": []}


def copy_belief(belief: Belief) -> Belief:
    """A copy, so that updates and simulations never change their input.

    It is deep but for past calls: there are many in a long conversation, and nothing changes one.
    """
    copy = Belief(**belief)
    for name, part in belief.items():
        if isinstance(part, (list, dict)):
            copy[name] = part.copy()  # type: ignore[literal-required]
    copy["spots"] = {place: list(spot) for place, spot in belief["spots"].items()}
    copy["also_at"] = {thing: list(places) for thing, places in copy["also_at"].items()}
    copy["events"] = [event.copy() for event in belief["events"]]
    copy["records"] = {thing: dict(fields) for thing, fields in copy["records"].items()}
    copy["owned"] = {thing: [*fields] for thing, fields in copy["owned"].items()}
    return copy


@lru_cache(maxsize=65536)
def kind_of(name: str) -> str:
    """The type word of an instance name: ``mug 2`` -> ``mug``."""
    head, _, tail = name.rpartition(" ")
    return head if head and tail.isdigit() else name


@lru_cache(maxsize=65536)
def in_order(name: str) -> tuple[str, int]:
    """A sort key that puts ``drawer 10`` after ``drawer 9``."""
    kind = kind_of(name)
    number = name.removeprefix(kind).strip()
    return kind, int(number) if number.isdigit() else 0


def objects_at(belief: Belief, place: str) -> list[str]:
    """Objects last seen at a place, in the order they were seen."""
    return [thing for thing, where in belief["last_seen"].items() if where == place]
