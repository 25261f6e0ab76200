"""The parts of a generated home, the data it is drawn from and the dice.

Kept apart from the drawing itself so that the writer of game files needs to know no more than
what a finished home looks like.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar

import yaml

T = TypeVar("T")
Position = tuple[int, int, int]
"""Centimetres: x, height, z. Whole numbers, because ids are printed from them."""


@dataclass(frozen=True)
class Receptacle:
    """A place that holds things; ``spot`` is where one stands to use it."""

    kind: str
    id: str
    spot: str
    opens: bool
    position: Position


@dataclass(frozen=True)
class Item:
    """Anything that is not a receptacle; what stands on the floor is ``inside`` nothing."""

    kind: str
    id: str
    spot: str
    inside: Receptacle | None
    portable: bool


@dataclass(frozen=True)
class Goal:
    """What the home is asked for; ``parent`` and ``toggle`` are empty where not needed."""

    task_type: str
    wording: int
    object: str
    parent: str = ""
    toggle: str = ""
    changed_by: str = ""


@dataclass(frozen=True)
class Home:
    """One furnished room with a goal that does not hold yet."""

    room: str
    receptacles: tuple[Receptacle, ...]
    items: tuple[Item, ...]
    start: str
    goal: Goal
    layout: str


class Draws:
    """Random choices built on ``random()`` alone.

    It is the only method whose sequence Python promises to keep between versions, and whole
    games must stay the same byte for byte.
    """

    def __init__(self, seed: str) -> None:
        """Start the sequence that belongs to ``seed``."""
        self._random = random.Random(seed).random

    def chance(self, likelihood: float) -> bool:
        """True with the given likelihood."""
        return self._random() < likelihood

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def weighted(self, weights: Mapping[str, float]) -> str:
        """One of the keys, in proportion to its weight."""
        left = self._random() * sum(weights.values())
        for key, weight in weights.items():
            left -= weight
            if left < 0:
                return key
        return list(weights)[-1]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """The options in random order."""
        order = sorted(range(len(options)), key=lambda _: self._random())
        return [options[place] for place in order]


@cache
def data() -> dict[str, Any]:
    """The generator's templates and likelihoods."""
    loaded: dict[str, Any] = yaml.safe_load(data_text())
    return loaded


def data_text() -> str:
    """The data file as it stands, so that a cache can tell when it was edited."""
    return (resources.files(__package__) / "homes.yaml").read_text(encoding="utf-8")
