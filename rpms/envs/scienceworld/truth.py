"""Compares a belief with the simulator's object tree, to measure the belief error (P2).

For tests and metrics only. Nothing the agent reads may come from this module.

The statements of a belief refer to different times, so each is compared in its way:

- room, inventory, doors and switches with the present: they never change without a message;
- a state of matter only if the thing has just been seen, because a thing on the stove melts unseen;
- a temperature with the range of the recorded state of matter: a liquid below its melting point was
  not measured as a liquid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from rpms.envs.scienceworld.parse_view import EXIT
from rpms.envs.scienceworld.things import (
    CARRYING,
    UNLISTED,
    UNSURE,
    phase_of,
    split_phase,
    states_of,
    temperature_of,
)
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.naming import same_words


class Facts(NamedTuple):
    """The true state of the simulator, which the agent never sees.

    Attributes:
        room: where the agent is.
        inventory: names of the things it carries, without their contents.
        look: the text of ``look around``.
        tree: every object with its properties, each inside its container.
    """

    room: str
    inventory: list[str]
    look: str
    tree: dict[str, Any]


# The thermometer prints whole degrees, and a substance changes one tick after it is warm enough.
_DEGREES = 1.0
_ROOM = 20.0


def disagreements(belief: Belief, facts: Facts, looked: bool = False) -> list[str]:
    """Every statement of the belief that the facts contradict.

    A belief that is unsure of the inventory states nothing about it, and one without a listing does
    not exclude further things. ``looked`` means that the room has just been looked at, so the
    states of matter in it are current.
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
        # Among several things of one name, the belief does not identify one.
        if len(open_ones) == 1:
            truly[name] = "open" if open_ones[0] else "closed"
    wrong += [
        f"{name}: believed {door}"
        for name, door in belief["containers"].items()
        if name in truly and truly[name] != door
    ]
    things = [*everything(facts.tree)]
    wrong += _wrong_switches(belief, things)
    wrong += _impossible_readings(belief, things)
    if looked:
        wrong += _wrong_phases(belief, facts)
    return wrong


def _wrong_switches(belief: Belief, things: list[dict[str, Any]]) -> Iterator[str]:
    """Devices wrongly believed on, off or broken, if only one has the name."""
    devices: dict[str, list[dict[str, Any]]] = {}
    for thing in things:
        if thing["propDevice"]:
            devices.setdefault(thing["name"], []).append(thing["propDevice"])
    for name, (device, *alike) in devices.items():
        truly = {
            "activated": device["isActivated"],
            "deactivated": not device["isActivated"],
            "broken": device["isBroken"],
        }
        for state in states_of(belief, name) if not alike else ():
            if not truly.get(state, True):
                yield f"{name}: believed {state}"


def _impossible_readings(belief: Belief, things: list[dict[str, Any]]) -> Iterator[str]:
    """Temperatures that the substance cannot have in the recorded state of matter."""
    points = {
        material["substanceName"].lower(): (material["meltingPoint"], material["boilingPoint"])
        for thing in things
        if (material := thing["propMaterial"]) and _is_substance(thing)
    }
    for name in belief["flags"]:
        reading, limits = temperature_of(belief, name), points.get(name.lower())
        if reading is None or limits is None:
            continue
        melts, boils = limits
        # Under its plain name a substance is in the state it has at room temperature.
        phase = phase_of(belief, name) or ("solid" if melts > _ROOM else "liquid")
        lowest = {"solid": -math.inf, "liquid": melts, "gas": boils}[phase]
        highest = {"solid": melts, "liquid": boils, "gas": math.inf}[phase]
        if not lowest - _DEGREES <= reading <= highest + _DEGREES:
            yield f"{name}: believed {phase} at {reading:g} degrees celsius"


def _wrong_phases(belief: Belief, facts: Facts) -> Iterator[str]:
    """Wrong states of matter in the room just looked at, if there is only one portion."""
    [room] = [room for room in facts.tree["contents"].values() if room["name"] == facts.room]
    portions: dict[str, list[str]] = {}
    for thing in everything(room):
        if _is_substance(thing):
            state = thing["propMaterial"]["stateOfMatter"]
            portions.setdefault(split_phase(thing["name"])[0], []).append(state)
    seen = {split_phase(name)[0] for name in belief["visible"]}
    for name, (state, *alike) in portions.items():
        phase = phase_of(belief, name)
        if name in seen and phase and not alike and phase != state:
            yield f"{name}: believed {phase}, truly {state}"


def _is_substance(thing: dict[str, Any]) -> bool:
    """True for a substance, false for a thing made of it, such as a tin cup."""
    material = thing["propMaterial"] or {}
    name = split_phase(thing["name"])[0].lower()
    return bool(material) and material["substanceName"].lower() == name


def true_state(facts: Facts) -> dict[str, str]:
    return {"location": facts.room, "holding": ", ".join(facts.inventory) or "nothing"}


def _same_things(believed: list[str], truly: list[str], and_more: bool) -> bool:
    """Match the names one to one, exact names first; ``and_more`` allows unmatched true names.

    Names may differ by printed adjectives (``red apple``) and by a phase: a thing that melts in the
    inventory is renamed without a message.
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
    for thing in everything(tree):
        container = thing["propContainer"] or {}
        if container.get("isClosable"):
            doors.setdefault(thing["name"], []).append(container["isOpen"])
    return doors


def everything(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All objects of a tree, each before its contents."""
    for thing in tree["contents"].values():
        yield thing
        yield from everything(thing)
