"""Which names stand for something in this house, as far as anybody can know who acts in it.

Most things differ from task to task. A memory of another task may name a box, an animal or a seed
that this house does not have. Known are the words of the task, what was seen, and the furniture
that stands in a room in every variation of the train split (``furniture.yaml``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from rpms.envs.scienceworld.things import INVENTORY, split_phase
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.files import read_yaml
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import same_words

FURNITURE = Path(__file__).with_name("furniture.yaml")
# Words for anything that is in a container, and for what the agent carries.
_ANYTHING = ("substance", "thing", "object", "organism", "material", "liquid", "solid", "gas",
             INVENTORY)  # fmt: skip
# What a task may ask for by kind alone; nothing has such a name.
_KINDS = ("living thing", "non-living thing", "plant", "animal")
# Separates a thing from where it is: ``apple seed in seed jar``. A stage of life is no place.
_WHERE = re.compile(r" (?:in|on|containing|and) (?!(?:the )?\w+ stage\b)")
_STAGE = re.compile(r" in (?:the )?\w+ stage\b")


@cache
def furniture() -> frozenset[str]:
    """The rooms of every house, and what stands in them."""
    rooms: dict[str, list[str]] = read_yaml(FURNITURE)[1]  # type: ignore[assignment]
    return frozenset(chain(rooms, *rooms.values()))


def is_known(name: str, goal: GoalSpec, belief: Belief) -> bool:
    """Return whether all that a command names, with the place of it, is known to be here."""
    return all(_is_known(part, goal, belief) for part in parts_of(name))


def parts_of(phrase: str) -> Iterator[str]:
    for part in _WHERE.split(_STAGE.sub("", phrase.lower())):
        yield part.removeprefix("the ").strip()


def _is_known(name: str, goal: GoalSpec, belief: Belief) -> bool:
    if name in _KINDS:
        return False
    # "to boil water" has the water, and no thing called "boil water".
    mentioned = rf"(?<!to )\b{re.escape(name)}s?\b"
    if name in _ANYTHING or re.search(mentioned, goal["sentence"], re.I):
        return True
    lasting = split_phase(name)[0]
    if lasting != name and _is_known(lasting, goal, belief):
        return True
    seen = chain(belief["places"], belief["holding"], belief["visible"], belief["last_seen"],
                 belief["containers"])  # fmt: skip
    names = chain(furniture(), seen)
    return any(same_words(split_phase(other)[0], lasting) for other in names)
