"""What the task asks for, where the agent is within it, and the keys of experience.

Signatures are the compact keys by which experience is stored and found (Eq. 2 and 3). A world
prints them its own way and says how they are read; the defaults are the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, NotRequired

from typing_extensions import TypedDict

# The fields of a printed goal signature, in the form of the paper's listings.
PRINTED = ("type", "object", "state", "destination")


class GoalSpec(TypedDict):
    """A parsed goal g.

    Attributes:
        sentence: the task as the environment states it.
        type: the goal type or family; indexes the domain rules.
        object: the kind of object the goal is about.
        state: the state the object must be brought to, or None.
        count: how many objects.
        destination: where it must end up (for look tasks, the lamp).
        signature: the printed goal signature, in a form that its world can read back.
    """

    sentence: str
    type: str
    object: str
    state: str | None
    count: int
    destination: str
    signature: str


class Target(TypedDict, total=False):
    """What a sub-goal is about, as data.

    Attributes:
        object: the thing, or the kind of thing.
        place: where it is, or where it belongs.
        which: what tells it from its like.
        limits: of places to choose from: the side of a number, the number and its unit.
    """

    object: str
    place: str
    which: str
    limits: dict[str, tuple[str, float, str]]


class SubGoal(TypedDict):
    """The current sub-goal pointer and how far the whole goal has come, in percent.

    ``target`` says in words what it is about, for prompts and logs. A world that gives the same as
    data, under ``about``, need not have its words read again; ``words`` is the whole step as an
    order, where a world's prompt prints one.
    """

    name: str
    target: str
    progress: int
    about: NotRequired[Target]
    words: NotRequired[str]


class GoalSignature(NamedTuple):
    """gamma(g) = (type, object, destination); the printed form adds the target state.

    Where the destination does not tell goals of a type apart, what does stands in its place.
    """

    type: str
    object: str
    destination: str


def read_signature(printed: str, fields: Sequence[str] = PRINTED) -> GoalSignature:
    """The three matching fields of a printed goal signature."""
    parts = dict(zip(fields, printed.split(":"), strict=False))
    return GoalSignature(*(parts.get(name, "") for name in GoalSignature._fields))


def read_state(printed: str) -> dict[str, str]:
    """The fields of a printed state signature: ``holding=none|open=chest 1``."""
    fields = (part.partition("=") for part in printed.split("|"))
    return {name: value for name, _, value in fields}


def hand_was_empty(printed: str) -> bool:
    """Whether a printed state signature tells of an empty hand."""
    return read_state(printed).get("holding", "none") == "none"


def hand(printed: str) -> str:
    """What the paper's COMPAT compares: the occupancy of the hand."""
    return "empty hand" if hand_was_empty(printed) else "full hand"


class Keys(NamedTuple):
    """How the signatures of a memory are read; a world that prints its own brings its own.

    Attributes:
        goal: gamma from a printed goal signature.
        compat: the part of a printed state that COMPAT compares for equality. Recalling some
            entries of each, not just some of each type, leaves the state filter something to
            choose from wherever the agent is.
    """

    goal: Callable[[str], GoalSignature] = read_signature
    compat: Callable[[str], str] = hand


PAPER = Keys()
