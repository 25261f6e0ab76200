"""Belief against truth: the simulator's object tree knows, so drift (P2) can be measured.

For tests and metrics only. Nothing the agent reads may come from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rpms.envs.scienceworld.parse_view import EXIT
from rpms.envs.scienceworld.things import CARRYING, UNLISTED, UNSURE, split_phase
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.naming import same_words


class Facts(NamedTuple):
    """The true state of the world, which the agent never sees.

    Attributes:
        room: where the agent is.
        inventory: names of what it carries, without what those things contain.
        look: what ``look around`` would say.
        tree: every object of the world with its properties, each inside its container.
    """

    room: str
    inventory: list[str]
    look: str
    tree: dict[str, Any]


def disagreements(belief: Belief, facts: Facts) -> list[str]:
    """Every statement of the belief about room, inventory and doors that the facts contradict.

    A belief that calls itself unsure of the inventory states nothing about it, and one that never
    saw it listed does not state that there is no more.
    """
    wrong = []
    if belief["location"] != facts.room:
        wrong.append(f"room: believed {belief['location']}, truly {facts.room}")
    carrying = belief["flags"].get(CARRYING)
    if carrying != UNSURE and not _same_things(
        belief["holding"], facts.inventory, and_more=carrying == UNLISTED
    ):
        wrong.append(f"inventory: believed {belief['holding']}, truly {facts.inventory}")
    truly = {f"door to {room}": state for room, state in EXIT.findall(facts.look)}
    for name, open_ones in _closable(facts.tree).items():
        # Of several things of one name the belief cannot say which one it means.
        if len(open_ones) == 1:
            truly[name] = "open" if open_ones[0] else "closed"
    wrong += [
        f"{name}: believed {door}"
        for name, door in belief["containers"].items()
        if name in truly and truly[name] != door
    ]
    return wrong


def true_state(facts: Facts) -> dict[str, str]:
    """Room and inventory, in words."""
    return {"location": facts.room, "holding": ", ".join(facts.inventory) or "nothing"}


def _same_things(believed: list[str], truly: list[str], and_more: bool) -> bool:
    """One to one, exact names first; ``and_more`` may be there.

    Names may differ by what is printed in front (``red apple``), and by a phase: a thing that
    melts in the inventory is renamed without a word, but it is still there.
    """
    unmatched = [split_phase(name)[0] for name in truly]
    loose = []
    for name in (split_phase(name)[0] for name in believed):
        if name in unmatched:
            unmatched.remove(name)
        else:
            loose.append(name)
    for name in loose:
        fitting = next((other for other in unmatched if same_words(name, other)), None)
        if fitting is None:
            return False
        unmatched.remove(fitting)
    return and_more or not unmatched


def _closable(tree: dict[str, Any]) -> dict[str, list[bool]]:
    """Name -> open or not, for everything with a door or a lid."""
    doors: dict[str, list[bool]] = {}
    for thing in _everything(tree):
        container = thing["propContainer"] or {}
        if container.get("isClosable"):
            doors.setdefault(thing["name"], []).append(container["isOpen"])
    return doors


def _everything(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for thing in tree["contents"].values():
        yield thing
        yield from _everything(thing)
