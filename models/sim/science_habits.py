"""What the beginner does in the science house when no rules tell it better."""

from __future__ import annotations

import re

from rpms.models.sim.science_listing import Node, every
from rpms.models.sim.science_mind import CUPS, Ideas, Mind, plain
from rpms.models.sim.science_search import of_kind

_TOOLS = {"boil": "stove", "melt": "stove", "change": "stove", "melting": "stove",
          "freeze": "freezer"}  # fmt: skip
_ACTS = ("wait", "look", "inventory", "task", "examine")


def habits(mind: Mind) -> Ideas:
    """Experience first, then what catches the eye, then a stroll."""
    yield from _experience(mind)
    yield from mind.look()
    yield from _guided(mind)
    thing = _eye_catcher(mind)
    if thing is not None and not mind.scene.focused:
        yield from _impulse(mind, thing)
    if thing is not None:
        yield from _fiddle(mind, thing)
    yield from stroll(mind)


def _guided(mind: Mind) -> Ideas:
    """An objective keeps it from getting lost: it says what to do next, though not how."""
    verb, target = _split(mind.view.objective)
    node = mind.seen(target) if target else None
    if verb in ("find", "look at", "watch"):
        yield from stroll(mind)
    if verb == "focus on" and node is not None:
        yield "That is the objective.", f"focus on {node.name}"
    if verb == "pick up" and node is not None:
        load = mind.holder(node) or node
        yield "That is the objective.", f"pick up {load.name}"
    thing, _, box = target.partition(" to ")
    if verb == "move" and mind.seen(thing) is not None and mind.scene.find(box) is not None:
        yield "That is the objective.", f"move {thing} to {box}"
    if verb == "measure" and node is not None:
        yield "That is the objective.", f"use thermometer on {node.name}"
    if verb == "read" and mind.scene.find("recipe") is not None:
        yield "That is the objective.", "read recipe"


def _split(objective: str) -> tuple[str, str]:
    """``pick up tin`` -> the verb and what it is about."""
    for verb in ("find", "focus on", "pick up", "look at", "move", "measure", "read", "watch"):
        if objective.startswith(f"{verb} "):
            return verb, objective.removeprefix(f"{verb} ").strip()
    return "", ""


def _experience(mind: Mind) -> Ideas:
    """The first advised step that is not done yet and whose things are in view."""
    played = [action for action, _ in mind.view.turns]
    for snippet in mind.view.snippets:
        for action in snippet:
            if action in played or action.startswith(_ACTS):
                continue
            if _possible(mind, action):
                yield "That worked before.", action
            break


def _possible(mind: Mind, action: str) -> bool:
    if went := re.match(r"(?:go|teleport) to (.+)", action):
        return went[1] != mind.scene.room
    named = re.sub(r"^(?:pick up|focus on|look (?:at|in)|\w+) ", "", action)
    parts = re.split(r" (?:to|into|on) ", named)
    return all(mind.seen(part.partition(" in ")[0]) is not None for part in parts)


def _eye_catcher(mind: Mind) -> Node | None:
    """What in this view looks like the task's subject."""
    verb, target = mind.task.verb, mind.task.target
    if verb == "find":
        found = of_kind(mind, target)
    elif verb == "lifespan":
        found = of_kind(mind, "animal")
    elif verb in ("mix", "paint"):
        wanted = "paint" if verb == "paint" else target.split()[-1]
        found = [n for n in every(mind.scene.here) if n.name.endswith(wanted)]
    elif verb == "planes":
        found = [n for n in every(mind.scene.here) if n.name.startswith(target)]
    elif verb in ("grow", "fruit", "genetics", "stages"):
        kind = target.removesuffix(" plant").lower()
        found = [n for n in mind.scene.view if kind in n.name.lower()]
    else:
        found = [n for n in mind.scene.view if plain(n.name) == plain(target)]
    return found[mind.coin(len(found))] if found else None


def _impulse(mind: Mind, thing: Node) -> Ideas:
    """Focus at once; every now and then on what the thing is in, or before the task's order."""
    path = mind.path(thing)
    if path and mind.coin(3) == 0:
        yield "This must be it.", f"focus on {path[-1]}"
    elif mind.coin(4) != 1:
        yield "This must be it.", f"focus on {thing.name}"


def _fiddle(mind: Mind, thing: Node) -> Ideas:
    """Take it, and do with it whatever the room invites to."""
    load = mind.holder(thing) or thing
    if not mind.carries(thing) and mind.coin(3):
        yield "Better take it along.", f"pick up {load.name}"
    box = next((n for n in mind.scene.here if n.name.endswith(" box")), None)
    if mind.carries(thing) and box is not None:
        named = [name for name, _ in mind.task.boxes]
        goal = named[mind.coin(len(named))] if named else box.name
        yield "Into the box.", f"move {load.name} to {goal}"
    tool = _TOOLS.get(mind.task.verb, "")
    if tool and mind.scene.find(tool) is not None:
        if mind.carries(thing):
            yield f"Onto the {tool}.", f"move {load.name} to {tool}"
        elif tool in mind.path(thing) and mind.coin(2):
            yield "Let us see what happens.", f"activate {tool}"
    if mind.task.verb == "mix" and (cup := mind.scene.find(CUPS[1])) is not None:
        yield "Some chemistry.", f"move {thing.name} to {cup.name}"
    if mind.coin(3) == 0:
        yield "Maybe it takes time.", "wait"


def stroll(mind: Mind) -> Ideas:
    """Open something, or go through some door that it does not remember having come from."""
    closed = [n for n in every(mind.scene.here) if n.door == "closed"]
    if closed and mind.coin(3) == 0:
        yield "What is in there?", f"open {closed[mind.coin(len(closed))].name}"
    came = [action for action, _ in mind.view.turns[-6:]]
    exits = mind.scene.exits.get(mind.scene.room, [])
    fresh = [room for room in exits if f"go to {room}" not in came]
    for choice in (fresh, exits):
        if choice:
            room = choice[mind.coin(len(choice))]
            yield f"Maybe in the {room}.", f"go to {room}"
    yield "Where am I?", "look around"
