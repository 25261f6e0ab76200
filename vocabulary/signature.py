"""Signatures: the compact keys by which experience is stored and found (Eq. 2 and 3)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rpms.vocabulary.goal import GoalSpec


class GoalSignature(NamedTuple):
    """gamma(g) = (type, object, destination); the printed form adds the target state.

    Where the destination does not tell goals of a type apart but the verb does (ScienceWorld), the
    verb stands in its place.
    """

    type: str
    object: str
    destination: str


def goal_signature(goal: GoalSpec) -> GoalSignature:
    """Compress the goal into gamma."""
    return read_signature(goal["signature"])


def read_signature(printed: str) -> GoalSignature:
    """The three matching fields of a printed signature.

    ALFWorld prints type:object:state:destination, ScienceWorld family:verb:target.
    """
    parts = printed.split(":")
    if len(parts) >= 4:
        return GoalSignature(parts[0], parts[1], parts[3])
    parts += [""] * (3 - len(parts))
    return GoalSignature(parts[0], parts[2], parts[1])


def read_state(printed: str) -> dict[str, str]:
    """The fields of a printed state signature: ``holding=none|open=fridge 1``."""
    fields = (part.partition("=") for part in printed.split("|"))
    return {name: value for name, _, value in fields}


def hand_was_empty(printed: str) -> bool:
    """Whether a printed state signature tells of an empty hand."""
    return read_state(printed).get("holding", "none") == "none"


@lru_cache(maxsize=65536)
def occasion(printed: str) -> str:
    """The part of a printed state that COMPAT compares for equality.

    Recalling some entries of each occasion, not just some of each type, leaves the state filter
    something to choose from wherever the agent is: in any room, or with either state of the hand.
    """
    if room := read_state(printed).get("room"):
        return room
    return "empty hand" if hand_was_empty(printed) else "full hand"
