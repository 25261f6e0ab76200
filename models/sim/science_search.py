"""Finding, measuring and answering: the tasks that end with a box."""

from __future__ import annotations

import re

from rpms.models.sim.science_listing import Node, every
from rpms.models.sim.science_mind import Ideas, Mind, plain

_STAGES = ("baby", "hatchling", "juvenile", "adult", "newborn")
_TOOL = "thermometer"
CARRIABLE = ("cup", "lighter", "stopwatch", "thermometer", "shovel", "jug", "axe", "bowl", "pot",
             "battery", "wire", "bulb", "pillow", "book")  # fmt: skip


def find_thing(mind: Mind) -> Ideas:
    """A thing of a kind: focus on it, take it, bring it to the box."""
    if not mind.scene.focused:
        yield from mind.look()
        for node in of_kind(mind, mind.task.target):
            yield f"{node.name} is one.", f"focus on {node.name}"
        yield from mind.search(mind.task.target, _rooms_of_kind(mind))
        return
    chosen = mind.seen(mind.scene.focused[0])
    if chosen is None:
        yield from mind.look()
        yield from mind.go(mind.remembered(mind.scene.focused[0]))
        yield "It must be somewhere here.", "look around"
        return
    yield from deliver(mind, chosen, mind.task.boxes[0][0] if mind.task.boxes else "")


def deliver(mind: Mind, node: Node, box: str) -> Ideas:
    """Carry a thing, in its pot or cup if it is in one, to a box and put it in."""
    if not box or box in mind.path(node):
        return
    load = mind.holder(node) or node
    if not mind.carries(node):
        yield f"Take the {load.name}.", f"pick up {load.name}"
    yield from mind.go(mind.remembered(box) or mind.task.box_room)
    yield from mind.look()
    yield f"It belongs in the {box}.", f"move {load.name} in inventory to {box}"
    yield f"It belongs in the {box}.", f"move {load.name} to {box}"


def of_kind(mind: Mind, kind: str) -> list[Node]:
    """What is in view of a kind: plants and animals show in their names."""
    found = []
    for node in every(mind.scene.here):
        words = node.name.lower().split()
        plant = words[-1] in ("tree", "plant")
        animal = words[0] in _STAGES or words[-1] == "egg"
        dead = words[0] == "dead"
        fits = {"plant": plant, "animal": animal, "living thing": plant or animal}
        carriable = words[-1] in CARRIABLE and words[0] != "flower" and not dead
        if fits.get(kind, carriable) and not dead:
            found.append(node)
    if kind == "living thing":
        found.sort(key=lambda node: node.name.endswith(("tree", "plant")))
    return found


def _rooms_of_kind(mind: Mind) -> list[str]:
    if mind.task.target == "plant":
        return ["greenhouse", "outside"]
    if mind.task.target in ("animal", "living thing"):
        return ["outside", "greenhouse"]
    return [mind.task.box_room]


def measure(mind: Mind) -> Ideas:
    """The instrument first, then the target, then the box that the reading calls for."""
    yield from instrument(mind)
    node = mind.seen(mind.task.target)
    if node is None:
        yield from mind.search(mind.task.target, [mind.task.room])
        return
    yield from focus_once(mind, node)
    reading = next((n for what, n in reversed(mind.scene.readings) if _same(what, node)), None)
    if reading is None:
        yield "Measure it.", f"use {_TOOL} in inventory on {node.name}"
        yield "Measure it.", f"use {_TOOL} on {node.name}"
        return
    yield from deliver(mind, node, right_box(mind, reading))


def instrument(mind: Mind) -> Ideas:
    """Fetch the thermometer and focus on it."""
    tool = mind.seen(_TOOL)
    if tool is None:
        yield from mind.search(_TOOL, ["kitchen", "workshop"])
        return
    if not mind.carries(tool):
        yield "Take the instrument along.", f"pick up {_TOOL}"
    if _TOOL not in mind.scene.focused:
        yield "First the instrument, as the task says.", f"focus on {_TOOL} in inventory"
        yield "First the instrument, as the task says.", f"focus on {_TOOL}"


def focus_once(mind: Mind, node: Node) -> Ideas:
    """Focus on a thing that has not been focused on yet, whatever its phase was then."""
    if not any(plain(name) == plain(node.name) for name in mind.scene.focused):
        place = mind.path(node)
        careful = any("-FOCUS-" in rule for rule in mind.view.rules)
        if place and not careful and mind.coin(2):
            yield "This is what the task is about.", f"focus on {place[-1]}"
        if place:
            yield "This is what the task is about.", f"focus on {node.name} in {place[-1]}"
        yield "This is what the task is about.", f"focus on {node.name}"


def right_box(mind: Mind, reading: float) -> str:
    """The box whose condition holds for a reading; without the rule it does not stop to compare."""
    if mind.task.boxes and not mind.knows("F2-BOX-001"):
        return mind.task.boxes[mind.coin(len(mind.task.boxes))][0]
    for box, when in mind.task.boxes:
        if found := re.match(r"(above|below) (-?[\d.]+)", when):
            limit = float(found[2].rstrip(".") or 0)
            if (reading > limit) == (found[1] == "above"):
                return box
    return ""


def _same(phrase: str, node: Node) -> bool:
    return plain(phrase.partition(" in ")[0]) == plain(node.name)
