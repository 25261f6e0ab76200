"""Writing a home as a game: PDDL problem, object names and the plan that solves it.

The form follows the official game files fact by fact, so that the engine and everything that
reads its facts cannot tell a generated game from a downloaded one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rpms.envs.alfworld import wheel
from rpms.envs.alfworld.home_model import Home, Item, Receptacle

# Named by the domain itself, so they must exist even in rooms that have none of them.
_DOMAIN_OBJECT_TYPES = ("ButterKnife", "Knife")
_DOMAIN_RECEPTACLE_TYPES = ("Fridge", "Microwave", "SinkBasin")

_TRAITS = {
    "cleanable": "Cleanable",
    "heatable": "Heatable",
    "coolable": "Coolable",
    "toggleable": "Toggleable",
    "sliceable": "Sliceable",
}
_CHANGES = {"SinkBasin": "clean", "Microwave": "heat", "Fridge": "cool"}


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """The names the game prints, such as ``mug 2``, for the ids of one problem.

    Instances are numbered from the last id in alphabetical order to the first, as alfworld does;
    a plan is only right if it counts the same way.
    """
    ordered = sorted(one.lower() for one in ids)
    kinds = {one: _printed_kind(one) for one in ordered}
    left = Counter(kinds.values())
    names = {}
    for one in ordered:
        kind = kinds[one]
        names[one] = f"{kind} {left[kind]}"
        left[kind] -= 1
    return names


def _printed_kind(thing_id: str) -> str:
    kind = thing_id.split("_bar_", 1)[0]
    return kind + "basin" if "basin" in thing_id else kind


def problem(home: Home, name: str) -> str:
    """The PDDL problem of a home."""
    object_kinds = sorted({one.kind for one in home.items})
    receptacle_kinds = sorted({one.kind for one in home.receptacles})
    item_spots = [one.spot for one in home.items]
    spots = sorted({home.start, *item_spots, *(one.spot for one in home.receptacles)})
    objects = ["agent1 - agent"]
    objects += [f"{kind}Type - otype" for kind in _with(object_kinds, _DOMAIN_OBJECT_TYPES)]
    objects += [f"{kind}Type - rtype" for kind in _with(receptacle_kinds, _DOMAIN_RECEPTACLE_TYPES)]
    objects += [f"{one.id} - object" for one in home.items]
    objects += [f"{one.id} - receptacle" for one in home.receptacles]
    objects += [f"{spot} - location" for spot in spots]
    facts = [
        *_receptacle_facts(home.receptacles),
        *_item_facts(home.items),
        *_can_contain(receptacle_kinds, object_kinds),
        f"atLocation agent1 {home.start}",
    ]
    goal = wheel.goal_condition(
        home.goal.task_type, home.goal.object, home.goal.parent, home.goal.toggle
    )
    lines = [
        f"(define (problem plan_{name})",
        "(:domain alfred)",
        "(:objects",
        *(f"        {line}" for line in objects),
        "        )",
        "(:init",
        *(f"        ({fact})" for fact in facts),
        "        )",
    ]
    return "\n".join(lines) + goal


def _with(kinds: Sequence[str], needed: Sequence[str]) -> list[str]:
    return sorted({*kinds, *needed})


def _receptacle_facts(receptacles: Sequence[Receptacle]) -> Iterable[str]:
    for one in receptacles:
        yield f"receptacleType {one.id} {one.kind}Type"
        yield f"receptacleAtLocation {one.id} {one.spot}"
        if one.opens:
            yield f"openable {one.id}"


def _item_facts(items: Sequence[Item]) -> Iterable[str]:
    for one in items:
        yield f"objectType {one.id} {one.kind}Type"
        yield f"objectAtLocation {one.id} {one.spot}"
        if one.inside:
            yield f"inReceptacle {one.id} {one.inside.id}"
        if one.portable:
            yield f"pickupable {one.id}"
        if one.kind in wheel.containers():
            yield f"isReceptacleObject {one.id}"
        for predicate, trait in _TRAITS.items():
            if one.kind in wheel.with_trait(trait):
                yield f"{predicate} {one.id}"


def _can_contain(receptacle_kinds: Sequence[str], object_kinds: Sequence[str]) -> Iterable[str]:
    for receptacle in receptacle_kinds:
        for kind in object_kinds:
            if kind in wheel.can_hold(receptacle):
                yield f"canContain {receptacle}Type {kind}Type"


def walkthrough(home: Home, dialect: wheel.Dialect) -> list[str]:
    """The commands that win, built from the home instead of being searched by a planner."""
    return _Walk(home, dialect).solve()


class _Walk:
    """Writes a plan down while keeping track of where the agent is and what is open."""

    def __init__(self, home: Home, dialect: wheel.Dialect) -> None:
        self.home = home
        self.put = "move {} to {}" if dialect == "move" else "put {} in/on {}"
        ids = [one.id for one in home.items] + [one.id for one in home.receptacles]
        names = display_names(ids)
        self.names = {one: names[one.lower()] for one in ids}
        self.spot = home.start
        self.open: list[Receptacle] = []
        self.commands: list[str] = []

    def solve(self) -> list[str]:
        """Fetch what the goal names, change it if asked, and bring it where it belongs."""
        goal = self.home.goal
        wanted = [one for one in self.home.items if one.kind == goal.object]
        if goal.toggle:
            self._take(wanted[0])
            lamp = next(one for one in self.home.items if one.kind == goal.toggle)
            self._go(_holder(lamp))
            self._say(f"use {self.names[lamp.id]}")
            return self.commands
        target = self._first(goal.parent)
        for one in wanted[: 2 if goal.task_type == "pick_two_obj_and_place" else 1]:
            self._take(one)
            if goal.changed_by:
                device = self._first(goal.changed_by)
                self._go(device)
                verb = _CHANGES[goal.changed_by]
                self._say(f"{verb} {self.names[one.id]} with {self.names[device.id]}")
            self._go(target)
            self._unlock(target)
            self._say(self.put.format(self.names[one.id], self.names[target.id]))
        return self.commands

    def _take(self, one: Item) -> None:
        holder = _holder(one)
        self._go(holder)
        self._unlock(holder)
        self._say(f"take {self.names[one.id]} from {self.names[holder.id]}")

    def _go(self, receptacle: Receptacle) -> None:
        # Everything within reach of the same spot can be used without moving.
        if receptacle.spot != self.spot:
            self.spot = receptacle.spot
            self._say(f"go to {self.names[receptacle.id]}")

    def _unlock(self, receptacle: Receptacle) -> None:
        if receptacle.opens and receptacle not in self.open:
            self.open.append(receptacle)
            self._say(f"open {self.names[receptacle.id]}")

    def _say(self, command: str) -> None:
        self.commands.append(command)

    def _first(self, kind: str) -> Receptacle:
        return next(one for one in self.home.receptacles if one.kind == kind)


def _holder(one: Item) -> Receptacle:
    if one.inside is None:
        raise ValueError(f"{one.id} is on the floor, where nothing can be done with it")
    return one.inside
