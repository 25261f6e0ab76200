"""The goal, the current sub-goal, and the keys of experience.

Signatures are the compact keys by which experience is stored and retrieved (Eq. 2 and 3). A world
may define its own format; the defaults are the paper's.
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
        object: the kind of the goal's object.
        state: the state the object must be brought to, or None.
        count: how many objects.
        destination: where the object must end up (for look tasks, the lamp).
        signature: the printed goal signature, which the world can parse.
    """

    sentence: str
    type: str
    object: str
    state: str | None
    count: int
    destination: str
    signature: str


class Target(TypedDict, total=False):
    """The target of a sub-goal, as data.

    Attributes:
        object: the thing, or the kind of thing.
        place: where it is, or where it belongs.
        which: what distinguishes it from others of its kind.
        limits: for each place to choose from, the side of a number, the number and its unit.
    """

    object: str
    place: str
    which: str
    limits: dict[str, tuple[str, float, str]]


class SubGoal(TypedDict):
    """The current sub-goal, and the progress of the whole goal in percent.

    ``target`` is its target in words, for prompts and logs; ``about`` is the same as data, so that
    the words need not be parsed. ``words`` is the whole step as an instruction, if a world's prompt
    prints one.
    """

    name: str
    target: str
    progress: int
    about: NotRequired[Target]
    words: NotRequired[str]


class GoalSignature(NamedTuple):
    """gamma(g) = (type, object, destination); the printed form adds the target state.

    If the destination does not distinguish the goals of a type, another field replaces it.
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
    """Return whether a printed state signature has an empty hand."""
    return read_state(printed).get("holding", "none") == "none"


def hand(printed: str) -> str:
    """The occupancy of the hand, which the paper's COMPAT compares."""
    return "empty hand" if hand_was_empty(printed) else "full hand"


class Keys(NamedTuple):
    """The parsers of a memory's signatures; a world with its own format has its own.

    Attributes:
        goal: parses gamma from a printed goal signature.
        compat: the part of a printed state that COMPAT compares for equality. Retrieval takes some
            entries of each value, so that the state filter has a choice in any state.
    """

    goal: Callable[[str], GoalSignature] = read_signature
    compat: Callable[[str], str] = hand


PAPER = Keys()
