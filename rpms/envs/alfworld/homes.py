"""Generates homes from a seed and writes each as a game with the plan that solves it.

Every draw comes from one seed, so a home is the same on every machine. The templates and the
likelihoods are data (``homes.yaml``); no layout of an existing game is copied. The files follow the
official game files fact by fact, so the engine and its readers treat both alike.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeVar

import yaml

from rpms.envs.alfworld import alfworld_package as package
from rpms.envs.alfworld.game_file import display_names
from rpms.vocabulary.files import YAML_LOADER

T = TypeVar("T")
Unit = tuple[str, bool]
"""A receptacle before it has a position: its kind, and whether it opens."""
Position = tuple[int, int, int]
"""Centimetres: x, height, z. Whole numbers, because ids are printed from them."""

# Unit steps of the four headings, in the order in which location ids number them.
_HEADINGS = ((0, 1), (1, 0), (0, -1), (-1, 0))
# The domain names these types, so they must exist even in rooms that have none of them.
_DOMAIN_OBJECTS = ("ButterKnife", "Knife")
_DOMAIN_RECEPTACLES = ("Fridge", "Microwave", "SinkBasin")
# A game file has these as predicates in lower case.
_TRAITS = ("Cleanable", "Heatable", "Coolable", "Toggleable", "Sliceable")
_CHANGES = {"SinkBasin": "clean", "Microwave": "heat", "Fridge": "cool"}


class Receptacle(NamedTuple):
    """A place that holds things; the agent stands at ``spot`` to use it."""

    kind: str
    id: str
    spot: str
    opens: bool
    position: Position


class Item(NamedTuple):
    """A thing that is not a receptacle; ``inside`` is None for things on the floor."""

    kind: str
    id: str
    spot: str
    inside: Receptacle | None
    portable: bool


class HomeGoal(NamedTuple):
    """The goal of a generated home; ``parent`` and ``toggle`` are empty where not needed."""

    task_type: str
    wording: int
    object: str
    parent: str = ""
    toggle: str = ""
    changed_by: str = ""


class Home(NamedTuple):
    """One furnished room with a goal that is not yet reached."""

    room: str
    receptacles: tuple[Receptacle, ...]
    items: tuple[Item, ...]
    start: str
    goal: HomeGoal
    layout: str


class Draws:
    """Random choices built on ``random()`` alone.

    Python guarantees the sequence of no other method between versions, and games must stay the
    same byte for byte.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def chance(self, likelihood: float) -> bool:
        return self._random() < likelihood

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def weighted(self, weights: Mapping[str, float]) -> str:
        """One of the keys, in proportion to its weight."""
        rest = self._random() * sum(weights.values())
        for key, weight in weights.items():
            rest -= weight
            if rest < 0:
                return key
        return list(weights)[-1]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        order = sorted(range(len(options)), key=lambda _: self._random())
        return [options[place] for place in order]


@cache
def data() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(data_text(), Loader=YAML_LOADER)
    return loaded


def data_text() -> str:
    """The text of the data file; the cache takes its digest to detect an edit."""
    return (resources.files(__package__) / "homes.yaml").read_text(encoding="utf-8")


def draw_home(seed: str, task_type: str, wording: int, side: int) -> Home:
    """Furnish the home that belongs to a seed.

    Args:
        seed: decides everything that is random.
        task_type: the kind of goal; it also limits which rooms make sense.
        wording: which of the two task sentences to use.
        side: 0 or 1. A digest splits all possible layouts into two halves and only one half is
            used, so homes drawn with different sides can never share a layout.
    """
    draws = Draws(seed)
    task = data()["tasks"][task_type]
    room = draws.weighted(task["rooms"])
    template = data()["rooms"][room]
    while True:
        groups = _draw_groups(draws, template)
        layout = _fingerprint(groups)
        if int(hashlib.sha256(layout.encode()).hexdigest()[:2], 16) % 2 == side:
            break
    builder = _Builder(draws, template)
    builder.stand(groups)
    goal = _draw_goal(draws, template, builder.receptacles, task_type, wording)
    builder.furnish(goal)
    return Home(
        room=room,
        receptacles=tuple(sorted(builder.receptacles, key=lambda place: place.id)),
        items=tuple(sorted(builder.items, key=lambda item: item.id)),
        start=builder.start,
        goal=goal,
        layout=layout,
    )


def _draw_groups(draws: Draws, template: Mapping[str, Any]) -> list[list[Unit]]:
    """Choose the receptacles of a room and which of them are reached from the same spot."""
    low_count, high_count = template["size"]
    kinds: list[str] = []
    while not low_count <= len(kinds) <= high_count:
        kinds = []
        for kind, (likelihood, low, high) in template["receptacles"].items():
            if draws.chance(likelihood):
                kinds += [kind] * draws.between(low, high)
    free: list[Unit] = [(kind, draws.chance(data()["opens"].get(kind, 0))) for kind in kinds]
    groups: list[list[Unit]] = []
    for first, second, likelihood in template["together"]:
        for _ in range(sum(kind == first for kind, _ in free)):
            if not draws.chance(likelihood):
                continue
            first_unit = next((unit for unit in free if unit[0] == first), None)
            rest = list(free)
            if first_unit is not None:
                rest.remove(first_unit)
            other = next((unit for unit in rest if unit[0] == second), None)
            if first_unit is not None and other is not None:
                rest.remove(other)
                free = rest
                groups.append([first_unit, other])
    return draws.shuffled(groups + [[unit] for unit in free])


def _fingerprint(groups: Sequence[Sequence[Unit]]) -> str:
    """A layout without coordinates: the furniture, what opens, and what stands together."""
    names = ["+".join(sorted(k + ("*" if opens else "") for k, opens in g)) for g in groups]
    return " ".join(sorted(names))


def _draw_goal(
    draws: Draws,
    template: Mapping[str, Any],
    receptacles: Sequence[Receptacle],
    task_type: str,
    wording: int,
) -> HomeGoal:
    """Choose a goal that can be reached in this room and is not reached yet."""
    task = data()["tasks"][task_type]
    present = sorted({place.kind for place in receptacles})
    usable = {kind: likelihood for kind, (likelihood, _) in template["objects"].items()}
    if task_type == "look_at_obj_in_light":
        lamps = [
            lamp
            for lamp, (_, stands) in template["lamps"].items()
            if any(stand in present for stand in stands)
        ]
        usable = {k: w for k, w in usable.items() if _holders(k, present)}
        return HomeGoal(task_type, wording, draws.weighted(usable), toggle=draws.pick(lamps))
    changed_by: str = task.get("changed_by", "")
    if changed_by:
        usable = {k: w for k, w in usable.items() if k in package.with_trait(task["needs"])}
    avoided = [changed_by, *(data()["single"] if task_type == "pick_two_obj_and_place" else [])]
    targets: dict[str, dict[str, float]] = {}
    for kind in usable:
        holders = _holders(kind, present)
        weights = {
            place: data()["targets"].get(place, 1.0) for place in holders if place not in avoided
        }
        # At least two kinds of place: one to find the object in, another to bring it to.
        if weights and len(holders) > 1:
            targets[kind] = weights
    obj = draws.weighted({kind: usable[kind] for kind in targets})
    parent = draws.weighted(targets[obj])
    return HomeGoal(task_type, wording, obj, parent=parent, changed_by=changed_by)


def _holders(obj: str, receptacle_kinds: Sequence[str]) -> list[str]:
    return [kind for kind in receptacle_kinds if obj in package.can_hold(kind)]


class _Builder:
    """Gives everything a position and a unique id, in the form of the official games."""

    def __init__(self, draws: Draws, template: Mapping[str, Any]) -> None:
        self.draws = draws
        self.template = template
        self.receptacles: list[Receptacle] = []
        self.items: list[Item] = []
        width, depth = draws.between(10, 15), draws.between(10, 15)
        west, near = -(width // 2), -(depth // 2)
        walls = [(x, near, 2) for x in range(west, west + width)]
        walls += [(x, near + depth, 0) for x in range(west, west + width)]
        walls += [(west, z, 3) for z in range(near, near + depth)]
        walls += [(west + width, z, 1) for z in range(near, near + depth)]
        # The walls are used up one by one; the middle of the room stays free for the start.
        self.walls = draws.shuffled(walls)
        self.start = _spot_id(0, 0, draws.between(0, 3), 30)
        self.taken: set[str] = set()

    def stand(self, groups: Sequence[Sequence[Unit]]) -> None:
        """Put each group of receptacles against a wall."""
        for group in groups:
            x, z, heading = self.walls.pop()
            heights = [self.draws.pick(data()["heights"].get(kind, [0])) for kind, _ in group]
            horizon = -30 if heights[0] >= 140 else 45 if heights[0] >= 50 else 60
            spot = _spot_id(x, z, heading, horizon)
            dx, dz = _HEADINGS[heading]
            for (kind, opens), height in zip(group, heights, strict=True):
                around = (x * 25 + dx * 60, height, z * 25 + dz * 60)
                position, name = self._place(kind, around, 12)
                self.receptacles.append(Receptacle(kind, name, spot, opens, position))

    def furnish(self, goal: HomeGoal) -> None:
        """Place the objects, the lamps and the fixtures so that the goal is not yet reached."""
        for kind, (likelihood, limit) in self.template["objects"].items():
            count = self.draws.between(1, limit)
            if not self.draws.chance(likelihood):
                count = 0
            if kind == goal.object:
                count = max(count, 2 if goal.task_type == "pick_two_obj_and_place" else 1)
            for _ in range(count):
                self._lay(kind, goal)
        for kind, (likelihood, stands) in self.template["lamps"].items():
            if self.draws.chance(likelihood) or kind == goal.toggle:
                self._fix(kind, stands)
        for kind, (likelihood, stands) in self.template["fixtures"].items():
            if self.draws.chance(likelihood):
                self._fix(kind, stands)

    def _lay(self, kind: str, goal: HomeGoal) -> None:
        """Put one object where such things are usually found, and now and then elsewhere."""
        fits = [place for place in self.receptacles if kind in package.can_hold(place.kind)]
        if kind == goal.object and goal.parent and not goal.changed_by:
            fits = [place for place in fits if place.kind != goal.parent]
        used = [item.inside for item in self.items]
        roomy = [place for place in fits if place.kind not in data()["single"] or place not in used]
        if kind != goal.object or roomy:
            fits = roomy
        if not fits:
            return
        kinds = sorted({place.kind for place in fits})
        likely = {k: w for k, w in data()["places"][kind].items() if k in kinds}
        if likely and not self.draws.chance(data()["misplaced"]):
            chosen = self.draws.weighted(likely)
            fits = [place for place in fits if place.kind == chosen]
        self._add(kind, self.draws.pick(fits), portable=True)

    def _fix(self, kind: str, stands: Sequence[str]) -> None:
        """Add something that cannot be carried, on a piece of furniture or on the floor."""
        if stands:
            fits = [place for place in self.receptacles if place.kind in stands]
            if fits:
                self._add(kind, self.draws.pick(fits), portable=False)
            return
        x, z, heading = self.walls.pop()
        _, name = self._place(kind, (x * 25, 0, z * 25), 12)
        spot = _spot_id(x, z, heading, 30)
        # Now and then a fixture is next to a receptacle, where looking around shows it.
        if self.draws.chance(0.15):
            spot = self.draws.pick(self.receptacles).spot
        self.items.append(Item(kind, name, spot, None, portable=False))

    def _add(self, kind: str, inside: Receptacle, *, portable: bool) -> None:
        _, name = self._place(kind, inside.position, 20)
        self.items.append(Item(kind, name, inside.spot, inside, portable))

    def _place(self, kind: str, around: Position, spread: int) -> tuple[Position, str]:
        """A position near another, with an id that is still free."""
        while True:
            x = around[0] + self.draws.between(-spread, spread)
            z = around[2] + self.draws.between(-spread, spread)
            position = (x, around[1] + self.draws.between(0, 4), z)
            name = _thing_id(kind, position)
            if name not in self.taken:
                self.taken.add(name)
                return position, name


def _thing_id(kind: str, position: Position) -> str:
    """An id such as ``Mug|+00.38|+00.90|-01.20``, spelt the way PDDL files need it.

    The id of a basin begins with the name of the whole fitting, as in the official games.
    """
    parts = [
        f"{'_minus_' if value < 0 else '_plus_'}{abs(value) // 100:02}_dot_{abs(value) % 100:02}"
        for value in position
    ]
    if kind.endswith("Basin"):
        return "_bar_".join([kind.removesuffix("Basin"), *parts, kind])
    return "_bar_".join([kind, *parts])


def _spot_id(x: int, z: int, heading: int, horizon: int) -> str:
    parts = [f"_minus_{-value}" if value < 0 else str(value) for value in (x, z, heading, horizon)]
    return "_bar_".join(["loc", *parts])


def problem(home: Home, name: str) -> str:
    object_kinds = sorted({item.kind for item in home.items})
    receptacle_kinds = sorted({place.kind for place in home.receptacles})
    spots = {home.start, *(i.spot for i in home.items), *(r.spot for r in home.receptacles)}
    objects = [
        "agent1 - agent",
        *(f"{kind}Type - otype" for kind in sorted({*object_kinds, *_DOMAIN_OBJECTS})),
        *(f"{kind}Type - rtype" for kind in sorted({*receptacle_kinds, *_DOMAIN_RECEPTACLES})),
        *(f"{item.id} - object" for item in home.items),
        *(f"{place.id} - receptacle" for place in home.receptacles),
        *(f"{spot} - location" for spot in sorted(spots)),
    ]
    facts = []
    for place in home.receptacles:
        facts.append(f"receptacleType {place.id} {place.kind}Type")
        facts.append(f"receptacleAtLocation {place.id} {place.spot}")
        facts += [f"openable {place.id}"] if place.opens else []
    for item in home.items:
        facts.append(f"objectType {item.id} {item.kind}Type")
        facts.append(f"objectAtLocation {item.id} {item.spot}")
        facts += [f"inReceptacle {item.id} {item.inside.id}"] if item.inside else []
        facts += [f"pickupable {item.id}"] if item.portable else []
        facts += [f"isReceptacleObject {item.id}"] if item.kind in package.containers() else []
        traits = [trait for trait in _TRAITS if item.kind in package.with_trait(trait)]
        facts += [f"{trait.lower()} {item.id}" for trait in traits]
    facts += [
        f"canContain {place}Type {kind}Type"
        for place in receptacle_kinds
        for kind in object_kinds
        if kind in package.can_hold(place)
    ]
    facts.append(f"atLocation agent1 {home.start}")
    goal = package.goal_condition(
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


def walkthrough(home: Home, dialect: package.Dialect) -> list[str]:
    """The commands that reach the goal, derived from the home without a planner.

    They fetch the object, change it if the goal says so, and bring it to its place.
    """
    walk, goal = _Walk(home), home.goal
    things = [item for item in home.items if item.kind == goal.object]
    if goal.toggle:
        walk.take(things[0])
        lamp = next(item for item in home.items if item.kind == goal.toggle)
        walk.go(_holder(lamp))
        walk.commands.append(f"use {walk.names[lamp.id]}")
        return walk.commands
    places = {place.kind: place for place in reversed(home.receptacles)}  # the first of a kind
    target = places[goal.parent]
    for item in things[: 2 if goal.task_type == "pick_two_obj_and_place" else 1]:
        walk.take(item)
        thing = walk.names[item.id]
        if goal.changed_by:
            device = places[goal.changed_by]
            walk.go(device)
            verb = _CHANGES[goal.changed_by]
            walk.commands.append(f"{verb} {thing} with {walk.names[device.id]}")
        walk.go(target, unlock=True)
        put = "move {} to {}" if dialect == "move" else "put {} in/on {}"
        walk.commands.append(put.format(thing, walk.names[target.id]))
    return walk.commands


class _Walk:
    """Collects the commands of a plan and tracks where the agent is and what is open."""

    def __init__(self, home: Home) -> None:
        ids = [*(item.id for item in home.items), *(place.id for place in home.receptacles)]
        names = display_names(ids)
        self.names = {thing: names[thing.lower()] for thing in ids}
        self.spot = home.start
        self.open: list[Receptacle] = []
        self.commands: list[str] = []

    def take(self, item: Item) -> None:
        holder = _holder(item)
        self.go(holder, unlock=True)
        self.commands.append(f"take {self.names[item.id]} from {self.names[holder.id]}")

    def go(self, place: Receptacle, unlock: bool = False) -> None:
        # Everything within reach of the same spot can be used without moving.
        if place.spot != self.spot:
            self.spot = place.spot
            self.commands.append(f"go to {self.names[place.id]}")
        if unlock and place.opens and place not in self.open:
            self.open.append(place)
            self.commands.append(f"open {self.names[place.id]}")


def _holder(item: Item) -> Receptacle:
    if item.inside is None:
        raise ValueError(f"{item.id} is on the floor, so no command can reach it")
    return item.inside
