"""Signatures: the compact keys by which experience is stored and found (Eq. 2 and 3)."""

from __future__ import annotations

from typing import NamedTuple

from vocabulary.belief import Belief
from vocabulary.goal import GoalSpec


class StateSignature(NamedTuple):
    """sigma(b_t) = (location, hand): the two parts most telling for whether an action fits."""

    location: str | None
    holding: tuple[str, ...]


class GoalSignature(NamedTuple):
    """gamma(g) = (type, object, destination); the printed form adds the target state."""

    type: str
    object: str
    destination: str


def state_signature(belief: Belief) -> StateSignature:
    """Compress the belief into sigma."""
    return StateSignature(belief["location"], tuple(belief["holding"]))


def goal_signature(goal: GoalSpec) -> GoalSignature:
    """Compress the goal into gamma."""
    return GoalSignature(goal["type"], goal["object"], goal["destination"])
