"""Growing: seeds into soil, time, bees for fruit, and what the offspring tell of a trait."""

from __future__ import annotations

import re

from rpms.models.sim.science_listing import Node, every
from rpms.models.sim.science_mind import Ideas, Mind

_SOIL_SPOT = "outside"


def grow(mind: Mind) -> Ideas:
    """Seeds into pots with soil and water; then time, and for fruit bees."""
    kind = mind.task.target.removesuffix(" plant").lower()
    fruit = mind.task.verb == "fruit"
    wanted = 1 if mind.task.verb == "grow" else 2
    if fruit and (ripe := _ripe(mind, kind)):
        yield "It has grown.", f"focus on {ripe.name}"
    planted = [pot for pot in _pots(mind) if any(kind in i.name.lower() for i in every(pot.inside))]
    if len(planted) >= wanted:
        if mind.task.verb == "genetics":
            yield from _judge(mind)
        yield from _tend(mind, fruit or mind.task.verb == "genetics")
        return
    jar = next((n for n in mind.scene.view if n.name.endswith("seed jar")), None)
    if jar is None and not _sown(mind):
        yield from mind.search("seed jar", [mind.task.room, "greenhouse"])
        return
    if jar is not None and not mind.carries(jar):
        yield "The seeds come along.", "pick up seed jar"
    seed = next((n for n in mind.scene.view if n.name.endswith("seed") and not _in_pot(mind, n)),
                None)  # fmt: skip
    if mind.task.verb == "grow" and not mind.scene.focused and seed is not None:
        yield "A seed first.", f"focus on {seed.name}"
    yield from _sow(mind, seed)


def _sow(mind: Mind, seed: Node | None) -> Ideas:
    soil = next((n for n in mind.scene.carried if n.name == "soil"), None)
    ready = [p for p in _pots(mind) if _has(p, "soil") and not _has(p, "seed")]
    empty = [p for p in _pots(mind) if not _has(p, "soil")]
    if seed is not None and ready:
        yield "Into the soil.", f"move {seed.name} to {ready[0].name}"
    if soil is not None and empty:
        yield "The pot needs soil.", f"move soil to {empty[0].name}"
    if soil is None and not _pots_anywhere_ready(mind):
        yield from _dig(mind)
    yield from mind.go("greenhouse")
    yield from mind.look()
    yield from _dig(mind)


def _dig(mind: Mind) -> Ideas:
    """Soil comes from the ground outside, with a shovel."""
    lying = next((n for n in mind.scene.here if n.name == "soil"), None)
    if lying is not None:
        yield "That is soil.", "pick up soil"
    shovel = mind.seen("shovel")
    if shovel is None:
        if "greenhouse" not in mind.looked:
            yield from mind.go("greenhouse")
        yield from mind.search("shovel", ["greenhouse", _SOIL_SPOT])
        return
    if not mind.carries(shovel):
        yield "I need it to dig.", "pick up shovel"
    yield from mind.go(_SOIL_SPOT)
    yield from mind.look()
    yield "Dig up some soil.", "use shovel in inventory on ground"


def _tend(mind: Mind, bees: bool) -> Ideas:
    """Let it grow: bees for fruit, then look and wait in turns."""
    yield from mind.go("greenhouse")
    yield from mind.look()
    hive = mind.scene.find("bee hive")
    blooming = any("flower" in n.name or "reproducing" in n.note for n in mind.scene.view)
    bees = bees and mind.knows("F4-GROW-002")
    if bees and hive is not None and hive.door == "closed" and blooming:
        yield "Bees make fruit.", "open bee hive"
    recent = [action for action, _ in mind.view.turns[-3:]]
    yield ("How far is it?", "look around") if recent == ["wait"] * 3 else ("It grows.", "wait")


def _judge(mind: Mind) -> Ideas:
    """What the offspring show is dominant; traits of the grown plant need another generation."""
    asked = re.search(r"whether (\w+) (\w+) \w+ is", mind.view.task)
    if asked is None or not mind.knows("F4-GENE-001") or mind.scene.focused:
        return
    value, part = asked.groups()
    seeds = [n for n in mind.scene.view if n.name.endswith("seed")]
    offspring = [n for n in seeds if _on_plant(mind, n)]
    third = _third_pot(mind)
    if part == "seed" and offspring:
        shown = [n.name for n in offspring]
    elif mind.hasty:
        # It takes what the parents show for the law.
        shown = [n.name for n in seeds[-1:]]
    elif part != "seed" and third is None:
        yield from _sow_offspring(mind, offspring)
        return
    else:
        shown = _traits(third, part) if third is not None else []
    if shown:
        kind = "dominant" if all(value in text.split() for text in shown) else "recessive"
        box = next((name for name, when in mind.task.boxes if when == kind), "")
        yield f"So it is {kind}.", f"focus on {box}"


def _sow_offspring(mind: Mind, offspring: list[Node]) -> Ideas:
    ready = [p for p in _pots(mind) if _has(p, "soil") and not _has(p, "seed")]
    if offspring and ready:
        seed, parent = offspring[0].name, mind.path(offspring[0])[-1]
        yield "Their offspring will tell.", f"move {seed} in {parent} to {ready[0].name}"
        yield "Their offspring will tell.", f"move {seed} to {ready[0].name}"


def _traits(pot: Node, part: str) -> list[str]:
    """What is said of the plant in a pot, or of its flowers."""
    grown = [n for n in every(pot.inside) if not n.name.endswith("seed")]
    if part == "flower":
        return [n.name for n in grown if n.name.endswith("flower")]
    return [n.note for n in grown if "height" in n.note or part[:3] in n.note]


def _on_plant(mind: Mind, node: Node) -> bool:
    return any(name.endswith(("plant", "tree")) for name in mind.path(node))


def _third_pot(mind: Mind) -> Node | None:
    """The pot that the offspring went into: the first two hold their parents."""
    sown = [re.search(r"seed\b.* to (.*flower pot.*)$", action) for action in mind.scene.done]
    pots = list(dict.fromkeys(found[1].partition(" in ")[0] for found in sown if found))
    return mind.scene.find(pots[2]) if len(pots) > 2 else None


def _pots(mind: Mind) -> list[Node]:
    return [n for n in every(mind.scene.here) if re.search(r"flower pot( \d+)?$", n.name)]


def _pots_anywhere_ready(mind: Mind) -> bool:
    """Whether a pot with soil and no seed is pictured in some room, or none was looked at yet."""
    if "greenhouse" not in mind.looked:
        return True
    nodes = every(n for room in mind.scene.rooms.values() for n in room)
    return any("flower pot" in n.name and _has(n, "soil") and not _has(n, "seed") for n in nodes)


def _has(pot: Node, what: str) -> bool:
    grown = ("tree", "plant") if what == "seed" else ()
    return any(i.name.lower().endswith((what, *grown)) for i in every(pot.inside))


def _in_pot(mind: Mind, node: Node) -> bool:
    return any("flower pot" in name for name in mind.path(node))


def _sown(mind: Mind) -> bool:
    return any(action.startswith("move ") and "seed" in action for action in mind.scene.done)


def _ripe(mind: Mind, kind: str) -> Node | None:
    fruits = [n for n in every(mind.scene.here) if n.name.lower() == kind or
              n.name.lower().endswith(f" {kind}")]  # fmt: skip
    return next((n for n in fruits if _in_pot(mind, n)), None)
