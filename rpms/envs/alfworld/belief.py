"""f_upd for ALFWorld: the belief follows from the observation texts alone (Eq. 1).

The patterns below are every sentence of the game's grammar that carries state. They are
matched against the observation rather than the action where possible, because only the
observation tells what really happened; a rejected action changes nothing.
"""

from __future__ import annotations

import re

from rpms.envs.base import NOTHING_HAPPENS
from rpms.vocabulary.belief import Belief, Door, copy_belief, empty_belief, objects_at

_ROOM = re.compile(r"You are in the middle of a room\. Looking quickly around you, you see (.+?)\.")
_SURFACE = re.compile(r"On the (.+? \d+), you see (.+?)\.")
_CLOSED = re.compile(r"The (.+? \d+) is closed\.")
_OPEN = re.compile(r"The (.+? \d+) is open\. In it, you see (.+?)\.")
_SHUT = re.compile(r"You close the (.+? \d+)\.")
_TOOK = re.compile(r"You pick up the (.+? \d+) from the (.+? \d+)\.")
_PUT = re.compile(r"You put the (.+? \d+) in/on the (.+? \d+)\.")
_FACING = re.compile(r"You are facing the (.+?)\. Next to it")
_CARRYING = re.compile(r"You are carrying: (.+?)\.")
_GO = re.compile(r"go to (.+)$")
_CHANGED = re.compile(
    r"You (heat|cool|clean|sliced|turn on|turn off) the (.+? \d+)(?: (?:using|with) the .+? \d+)?\."
)
# Verb in the game's sentence -> (state that begins, state that ends).
_STATES = {
    "heat": ("hot", "cool"), "cool": ("cool", "hot"), "clean": ("clean", ""),
    "sliced": ("sliced", ""), "turn on": ("on", ""), "turn off": ("", "on"),
}  # fmt: skip


def first_belief(observation: str) -> Belief:
    """b_0: the places named in the opening text. The agent stands at none of them."""
    belief = empty_belief()
    if match := _ROOM.search(observation):
        belief["places"] = _names(match[1])
    return belief


def update_belief(previous: Belief, action: str, observation: str) -> Belief:
    """b_t from (b_{t-1}, a_{t-1}, o_t)."""
    belief = copy_belief(previous)
    if observation.startswith(NOTHING_HAPPENS):
        return belief
    _move(belief, action, observation)
    _see(belief, observation)
    _handle(belief, observation)
    return belief


def _move(belief: Belief, action: str, observation: str) -> None:
    if match := _GO.match(action):
        if any(pattern.match(observation) for pattern in (_SURFACE, _CLOSED, _OPEN)):
            belief["location"] = match[1]
            belief["reachable"] = [p for p in belief["spots"].get(match[1], []) if p != match[1]]
    elif match := _FACING.match(observation):
        places = _names(match[1])
        belief["spots"].update(dict.fromkeys(places, places))
        belief["reachable"] = [place for place in places if place != belief["location"]]


def _see(belief: Belief, observation: str) -> None:
    """Read doors and contents. A listing of a place replaces the belief about that place."""
    if match := _SURFACE.search(observation):
        _contents(belief, match[1], _names(match[2]))
    if match := _OPEN.search(observation):
        _door(belief, match[1], "open")
        _contents(belief, match[1], _names(match[2]))
    elif match := _CLOSED.search(observation) or _SHUT.match(observation):
        _door(belief, match[1], "closed")


def _handle(belief: Belief, observation: str) -> None:
    if match := _TOOK.match(observation):
        belief["holding"] = [match[1]]
        if (before := belief["last_seen"].pop(match[1], match[2])) != match[2]:
            belief["also_at"][match[1]] = [*belief["also_at"].get(match[1], []), before]
        _not_at(belief, match[1], match[2])
        _reach(belief, match[2])
    elif match := _PUT.match(observation):
        belief["holding"] = []
        belief["last_seen"][match[1]] = match[2]
        _not_at(belief, match[1], match[2])
        _reach(belief, match[2])
    elif match := _CHANGED.match(observation):
        _change(belief, match[2], *_STATES[match[1]])
    elif match := _CARRYING.match(observation):
        belief["holding"] = _names(match[1])
    elif observation.startswith("You are not carrying anything"):
        belief["holding"] = []


def _change(belief: Belief, thing: str, state: str, ended: str) -> None:
    before = belief["flags"].get(thing, "").split(", ")
    states = [each for each in before if each not in ("", state, ended)]
    belief["flags"][thing] = ", ".join([*states, state] if state else states)
    if not belief["flags"][thing]:
        del belief["flags"][thing]


def _not_at(belief: Belief, thing: str, place: str) -> None:
    places = [each for each in belief["also_at"].pop(thing, []) if each != place]
    if places:
        belief["also_at"][thing] = places


def _door(belief: Belief, place: str, door: Door) -> None:
    belief["containers"][place] = door
    _reach(belief, place)


def _contents(belief: Belief, place: str, things: list[str]) -> None:
    """Games list a thing that starts in two places in both, so the belief keeps both.

    They go on to list it in the second place while it is held: it is in the hand, and also there.
    """
    for absent in set(objects_at(belief, place)) - set(things):
        del belief["last_seen"][absent]
    for absent in set(belief["also_at"]) - set(things):
        _not_at(belief, absent, place)
    for thing in things:
        held = thing in belief["holding"]
        before = place if held else belief["last_seen"].get(thing, place)
        _not_at(belief, thing, place)
        if held or before != place:
            other = place if held else before
            belief["also_at"][thing] = [*belief["also_at"].get(thing, []), other]
        if not held:
            belief["last_seen"][thing] = place
    if place not in belief["searched"]:
        belief["searched"].append(place)
    _reach(belief, place)


def _reach(belief: Belief, place: str) -> None:
    """A place that the agent acts on shares its spot, even if it never walked there."""
    if place != belief["location"] and place not in belief["reachable"]:
        belief["reachable"].append(place)


def _names(listing: str) -> list[str]:
    """``a mug 2, a mug 1, and a pen 1`` -> names in order; ``nothing`` -> none."""
    parts = re.split(r",? and |, ", listing)
    names = [re.sub(r"^(?:a|an|the) ", "", part.strip()) for part in parts]
    return [name for name in names if re.search(r" \d+$", name)]
