"""Belief against truth: TextWorld knows the real facts, so drift (P2) can be measured.

For tests and metrics only. Nothing the agent reads may come from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rpms.envs.alfworld.engine import Fact
from rpms.vocabulary.belief import Belief


class _Truth(NamedTuple):
    """The facts that a belief makes statements about."""

    here: set[str]
    spots: dict[str, str]
    doors: set[str]
    opened: set[str]
    held: set[str]
    inside: set[tuple[str, str]]


def _read(facts: Iterable[Fact]) -> _Truth:
    opened: set[str] = set()
    doors: set[str] = set()
    held: set[str] = set()
    inside: set[tuple[str, str]] = set()
    spot = ""
    spots: dict[str, str] = {}
    for name, arguments in facts:
        names = [argument.strip() for argument in arguments]
        if name == "atlocation":
            spot = names[1]
        elif name == "receptacleatlocation":
            spots[names[0]] = names[1]
        elif name == "openable":
            doors.add(names[0])
        elif name == "opened":
            opened.add(names[0])
        elif name == "holds":
            held.add(names[1])
        elif name == "inreceptacle":
            inside.add((names[0], names[1]))
    here = {place for place, where in spots.items() if where == spot}
    return _Truth(here, spots, doors, opened, held, inside=inside)


def true_state(facts: Iterable[Fact]) -> dict[str, str]:
    """Location (every place of the spot), hand and open containers, in words."""
    true = _read(facts)
    return {
        "location": ", ".join(sorted(true.here)) or "middle of the room",
        "holding": ", ".join(sorted(true.held)) or "nothing",
        "open": ", ".join(sorted(true.opened)) or "nothing",
    }


def disagreements(belief: Belief, facts: Iterable[Fact]) -> list[str]:
    """Every statement of the belief that the true facts contradict, in words."""
    true = _read(facts)
    here, spots = true.here, true.spots
    wrong = []
    location = belief["location"]
    if location not in here and not (location is None and not here):
        wrong.append(f"location: believed {location}, truly at {sorted(here) or 'no place'}")
    wrong += [f"reachable: {p} is not at this spot" for p in belief["reachable"] if p not in here]
    if set(belief["holding"]) != true.held:
        wrong.append(f"holding: believed {belief['holding']}, truly {sorted(true.held)}")
    wrong += [
        f"{place}: believed {door}"
        for place, door in belief["containers"].items()
        if place not in true.doors or (door == "open") != (place in true.opened)
    ]
    wrong += [
        f"last seen: {thing} is not at {place}"
        for thing, place in belief["last_seen"].items()
        if (thing, place) not in true.inside
    ]
    wrong += [
        f"spot of {place}: believed {sorted(together)}"
        for place, together in belief["spots"].items()
        if set(together) != {other for other, where in spots.items() if where == spots.get(place)}
    ]
    if set(belief["places"]) != set(spots):
        wrong.append(f"places: {sorted(set(belief['places']) ^ set(spots))} should not differ")
    return wrong
