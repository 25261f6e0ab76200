"""Heating and cooling: change a state of matter, or watch for the point where it changes."""

from __future__ import annotations

from rpms.models.sim.science_listing import Node, every
from rpms.models.sim.science_mind import Ideas, Mind, plain
from rpms.models.sim.science_search import focus_once, instrument, right_box

HEATERS = [("stove", "kitchen"), ("blast furnace", "foundry")]
COOLERS = [("freezer", "kitchen"), ("ultra low temperature freezer", "workshop")]
# How often to wait at a device before the next stronger one is worth the way.
_PATIENCE = 6
_DRINKS = ("juice", "milk", "mercury", "water", "soap")
_POT = "metal pot"


def transform(mind: Mind) -> Ideas:
    """Find the substance, focus on it, and heat or cool it until it has changed."""
    node = substance(mind)
    if node is None:
        yield from fetch(mind)
        return
    yield from focus_once(mind, node)
    yield from into_pot(mind, node)
    heat = wants_heat(mind.task.verb, phase(node.name))
    yield from run(mind, node, HEATERS if heat else COOLERS)


def melting_point(mind: Mind) -> Ideas:
    """Heat what is solid, cool what is liquid, and read the thermometer until the name turns."""
    yield from instrument(mind)
    started = phase(mind.task.target)
    known = mind.known(mind.task.target)
    readings = [number for _, number in mind.scene.readings]
    devices = HEATERS if started == "solid" else COOLERS
    changed = known is not None and phase(known.name) != started
    # What has not changed has at least endured, and that tells the side of the limit as well.
    endured = all(_waits(mind, device) >= _PATIENCE for device, _ in devices)
    if readings and (changed or endured or mind.hasty):
        box = right_box(mind, readings[-1])
        yield from mind.go(mind.remembered(box) or mind.task.box_room)
        yield from mind.look()
        yield f"It changes at about {readings[-1]} degrees.", f"focus on {box}"
        return
    node = substance(mind)
    if node is None:
        yield from fetch(mind)
        return
    yield from focus_once(mind, node)
    if not readings or phase(node.name) != started:
        yield "How warm is it?", f"use thermometer in inventory on {node.name}"
    yield from into_pot(mind, node)
    last = mind.view.turns[-1][0]
    if device := _device_of(mind, node):
        if last.startswith("look at"):
            place = mind.path(node)[-1]
            yield "How warm is it now?", f"use thermometer in inventory on {node.name} in {place}"
            yield "How warm is it now?", f"use thermometer in inventory on {node.name}"
        if last.startswith("wait"):
            yield "Has it changed?", f"look at {device}"
    yield from run(mind, node, devices)


def substance(mind: Mind) -> Node | None:
    """The target in view. Water in a basin is no use: it has to be in something to carry."""
    node = mind.seen(mind.task.target)
    if node is None or plain(mind.task.target) != "water":
        return node
    fit = [n for n in mind.scene.view if plain(n.name) == "water" and mind.holder(n) is not None]
    return fit[0] if fit else None


def fetch(mind: Mind) -> Ideas:
    """Search for the target; water runs from a tap into a pot."""
    if plain(mind.task.target) == "water" and mind.knows("F3-WATER-001"):
        yield from fill(mind, _POT)
        return
    if room := mind.remembered(mind.task.target):
        yield from mind.go(room)
    yield from mind.search(mind.task.target, [mind.task.room, *mind.places(mind.task.target)])


def fill(mind: Mind, vessel: str) -> Ideas:
    """Put a vessel under a tap and let the water run; dip it in where no tap works."""
    pot = mind.seen(vessel)
    if pot is None:
        yield from mind.search(vessel, ["kitchen"])
        return
    yield from mind.look()
    sink = mind.scene.find("sink")
    if sink is not None and not mind.scene.broken("sink"):
        if "sink" not in mind.path(pot):
            yield "Under the tap with it.", f"move {pot.name} to sink"
        if sink.note != "activated":
            yield "Let the water run.", "activate sink"
        yield "What is in it now?", "look at sink"
        return
    if any(plain(node.name) == "water" for node in every(mind.scene.here)):
        yield "Dip it in.", f"dunk {pot.name} into water"
        yield "What is in it now?", f"look at {pot.name}"
    if not mind.carries(pot):
        yield "The pot comes along.", f"pick up {pot.name}"
    for room in (*mind.places("water"), "kitchen", "bathroom", "foundry", "greenhouse"):
        if room != mind.scene.room and not mind.scene.refused[room, "activate sink"]:
            yield from mind.go(room)


def into_pot(mind: Mind, node: Node) -> Ideas:
    """What stands free needs something to be carried in; a cup may burn or melt."""
    holder = mind.holder(node)
    if holder is not None and not holder.name.startswith(("wood", "paper", "plastic")):
        return
    pot = mind.seen(_POT)
    if pot is None:
        if "kitchen" not in mind.looked or mind.scene.room == "kitchen":
            if holder is not None and mind.scene.room != "kitchen" and not mind.carries(node):
                yield f"Take the {holder.name}.", f"pick up {holder.name}"
            if holder is None and not mind.carries(node):
                yield f"Take the {node.name}.", f"pick up {node.name}"
            yield from mind.go("kitchen")
            yield from mind.look()
            yield from mind.open_all()
        return
    if holder is not None:
        yield "Over into the metal pot.", f"pour {holder.name} into {_POT}"
    yield "Into the metal pot.", f"move {node.name} to {_POT}"


def run(mind: Mind, node: Node, devices: list[tuple[str, str]]) -> Ideas:
    """Bring it to the device, switch that on and wait; to the next one where this is too weak."""
    taught = any(mind.knows(rule) for rule in ("F3-HEAT-001", "F3-COOL-001", "F2-MEAS-002"))
    for device, room in devices if taught else devices[:1]:
        broken = mind.scene.refused[room, f"activate {device}"]
        if broken or _waits(mind, device) >= _PATIENCE:
            continue
        yield from at_device(mind, node, device, room)
        return
    yield "Some more time.", "wait"


def at_device(mind: Mind, node: Node, device: str, room: str) -> Ideas:
    """One round at a device."""
    load = mind.holder(node) or node
    if device not in mind.path(node):
        path = mind.path(load)
        if path and not mind.carries(node):
            yield f"Take the {load.name}.", f"pick up {load.name} in {path[-1]}"
        if not mind.carries(node) and mind.scene.room != room:
            yield f"Take the {load.name}.", f"pick up {load.name}"
        yield from mind.go(room)
        yield from mind.look()
        found = mind.scene.find(device)
        if found is not None and found.door == "closed":
            yield f"The {device} is closed.", f"open {device}"
        where = " in inventory" if mind.carries(node) else ""
        yield f"To the {device} with it.", f"move {load.name}{where} to {device}"
        yield f"To the {device} with it.", f"move {load.name} to {device}"
    found = mind.scene.find(device)
    running = found is not None and ("turned on" in found.note or found.note == "activated")
    if not running and "freezer" not in device:
        yield f"Switch the {device} on.", f"activate {device}"
    if mind.view.turns[-1][0] == "wait":
        yield "Has it changed?", f"look at {device}"
    yield "It takes time.", "wait"


def wants_heat(verb: str, now: str) -> bool:
    """Freezing needs a liquid and melting a solid, so either may have to be made first."""
    if verb == "freeze":
        return now == "solid"
    return not (verb == "melt" and now == "liquid")


def phase(name: str) -> str:
    """Solid, liquid or gas by the name; a plain name is what the thing usually is."""
    name = name.lower().partition(" in ")[0]
    if name == "steam" or name.startswith("gaseous"):
        return "gas"
    if name == "ice" or name.startswith(("solid", "frozen")):
        return "solid"
    return "liquid" if name.startswith("liquid") or name.endswith(_DRINKS) else "solid"


def _device_of(mind: Mind, node: Node) -> str:
    names = [device for device, _ in (*HEATERS, *COOLERS)]
    return next((name for name in mind.path(node) if name in names), "")


def _waits(mind: Mind, device: str) -> int:
    """How often it has waited since something was put to a device."""
    count = 0
    for action in mind.scene.done:
        if action.endswith(f"to {device}"):
            count = 1
        elif action.startswith("move "):
            count = 0 if count < _PATIENCE else count
        elif action == "wait" and 0 < count < _PATIENCE:
            count += 1
    return count
