"""Furnishing a home: which receptacles a room has, where they stand and what lies in them.

Every draw comes from one seed, so a home is the same on every machine. The templates and the
likelihoods are data (``homes.yaml``); nothing here copies the layout of an existing game.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from rpms.envs.alfworld import wheel
from rpms.envs.alfworld.home_model import Draws, Goal, Home, Item, Position, Receptacle, data

# Unit steps of the four headings, in the order in which location ids number them.
_HEADINGS = ((0, 1), (1, 0), (0, -1), (-1, 0))


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
        receptacles=tuple(sorted(builder.receptacles, key=lambda one: one.id)),
        items=tuple(sorted(builder.items, key=lambda one: one.id)),
        start=builder.start,
        goal=goal,
        layout=layout,
    )


Unit = tuple[str, bool]
"""A receptacle before it has a position: its kind, and whether it opens."""


def _draw_groups(draws: Draws, template: Mapping[str, Any]) -> list[list[Unit]]:
    """Choose the receptacles of a room and which of them are reached from the same spot."""
    fewest, most = template["size"]
    kinds: list[str] = []
    while not fewest <= len(kinds) <= most:
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
            one = next((unit for unit in free if unit[0] == first), None)
            rest = list(free)
            if one is not None:
                rest.remove(one)
            other = next((unit for unit in rest if unit[0] == second), None)
            if one is not None and other is not None:
                rest.remove(other)
                free = rest
                groups.append([one, other])
    return draws.shuffled(groups + [[unit] for unit in free])


def _fingerprint(groups: Sequence[Sequence[Unit]]) -> str:
    """A layout without its coordinates: what there is, what opens and what stands together."""
    names = ["+".join(sorted(k + ("*" if opens else "") for k, opens in g)) for g in groups]
    return " ".join(sorted(names))


def _draw_goal(
    draws: Draws,
    template: Mapping[str, Any],
    receptacles: Sequence[Receptacle],
    task_type: str,
    wording: int,
) -> Goal:
    """Choose something that can be done in this room and is not done yet."""
    task = data()["tasks"][task_type]
    present = sorted({one.kind for one in receptacles})
    usable = {kind: likelihood for kind, (likelihood, _) in template["objects"].items()}
    if task_type == "look_at_obj_in_light":
        lamps = [
            lamp
            for lamp, (_, stands) in template["lamps"].items()
            if any(stand in present for stand in stands)
        ]
        usable = {k: w for k, w in usable.items() if _holders(k, present)}
        return Goal(task_type, wording, draws.weighted(usable), toggle=draws.pick(lamps))
    changed_by: str = task.get("changed_by", "")
    if changed_by:
        usable = {k: w for k, w in usable.items() if k in wheel.with_trait(task["needs"])}
    avoided = [changed_by, *(data()["single"] if task_type == "pick_two_obj_and_place" else [])]
    targets: dict[str, dict[str, float]] = {}
    for kind in usable:
        holders = _holders(kind, present)
        wanted = {one: data()["targets"].get(one, 1.0) for one in holders if one not in avoided}
        # Two kinds of place at least: one to find the object in, another to bring it to.
        if wanted and len(holders) > 1:
            targets[kind] = wanted
    obj = draws.weighted({kind: usable[kind] for kind in targets})
    parent = draws.weighted(targets[obj])
    return Goal(task_type, wording, obj, parent=parent, changed_by=changed_by)


def _holders(obj: str, receptacle_kinds: Sequence[str]) -> list[str]:
    return [kind for kind in receptacle_kinds if obj in wheel.can_hold(kind)]


class _Builder:
    """Gives everything a position and an id of its own, in the form the official games use."""

    def __init__(self, draws: Draws, template: Mapping[str, Any]) -> None:
        self.draws = draws
        self.template = template
        self.receptacles: list[Receptacle] = []
        self.items: list[Item] = []
        width, depth = draws.between(10, 15), draws.between(10, 15)
        left, near = -(width // 2), -(depth // 2)
        walls = [(x, near, 2) for x in range(left, left + width)]
        walls += [(x, near + depth, 0) for x in range(left, left + width)]
        walls += [(left, z, 3) for z in range(near, near + depth)]
        walls += [(left + width, z, 1) for z in range(near, near + depth)]
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

    def furnish(self, goal: Goal) -> None:
        """Lay out the objects, the lamps and the fixtures, leaving the goal still to be done."""
        for kind, (likelihood, most) in self.template["objects"].items():
            count = self.draws.between(1, most)
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

    def _lay(self, kind: str, goal: Goal) -> None:
        """Put one object where such a thing is found, or now and then where it is not."""
        fits = [one for one in self.receptacles if kind in wheel.can_hold(one.kind)]
        if kind == goal.object and goal.parent and not goal.changed_by:
            fits = [one for one in fits if one.kind != goal.parent]
        used = [item.inside for item in self.items]
        roomy = [one for one in fits if one.kind not in data()["single"] or one not in used]
        if kind != goal.object or roomy:
            fits = roomy
        if not fits:
            return
        kinds = sorted({one.kind for one in fits})
        likely = {k: w for k, w in data()["places"][kind].items() if k in kinds}
        if likely and not self.draws.chance(data()["misplaced"]):
            chosen = self.draws.weighted(likely)
            fits = [one for one in fits if one.kind == chosen]
        self._add(kind, self.draws.pick(fits), portable=True)

    def _fix(self, kind: str, stands: Sequence[str]) -> None:
        """Add something that cannot be carried, on a piece of furniture or on the floor."""
        if stands:
            fits = [one for one in self.receptacles if one.kind in stands]
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
        """A position near another whose id is not taken yet."""
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

    Basins carry the name of the whole fitting, which is how the game tells one from the other.
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
