"""Living things: how long they live, their stages, and growing them."""

from __future__ import annotations

import re

from rpms.models.sim.science_listing import Node, every
from rpms.models.sim.science_mind import Ideas, Mind

_INSECTS = ("ant", "bee", "butterfly", "dragonfly", "moth", "fly", "beetle", "caterpillar")
_RODENTS = ("mouse", "rat", "hedgehog", "hamster")
# What common sense says of all others: the bigger, the longer.
_BY_SIZE = ("frog", "toad", "chameleon", "bird", "jay", "dove", "rabbit", "beaver", "wolf",
            "turtle", "crocodile", "bear", "elephant")  # fmt: skip
_STAGE_ORDER = ("seed", "egg", "baby", "newborn", "larva", "caterpillar", "tadpole", "seedling",
                "hatchling", "pupa", "chrysalis", "juvenile", "adult", "reproducing")  # fmt: skip
# Young that go by other names than their parents; from afar a moth is a butterfly.
_YOUNG = {"frog": ("tadpole",), "toad": ("tadpole",), "butterfly": ("caterpillar", "chrysalis"),
          "moth": ("butterfly", "caterpillar", "chrysalis", "pupa")}  # fmt: skip
_NEVER = ("dead", "agent")


def life_span(mind: Mind) -> Ideas:
    """Go where the animals are and pick by the rule, in the order the task wants."""
    yield from mind.go(mind.task.room or "outside")
    yield from mind.look()
    wanted = re.findall(r"longest|shortest", mind.task.target)
    if len(mind.scene.focused) >= len(wanted):
        return
    animals = sorted(_animals(mind), key=lambda node: _span(mind, node.name))
    if not animals:
        yield "They may come out yet.", "wait1"
        return
    which = wanted[len(mind.scene.focused)]
    animal = animals[-1] if which == "longest" else animals[0]
    yield f"This one lives {which}.", f"focus on {animal.name}"


def _animals(mind: Mind) -> list[Node]:
    found = []
    for node in every(mind.scene.here):
        words = node.name.lower().split()
        if words[0] in _STAGE_ORDER or words[-1] == "egg":
            found.append(node)
    return found


def _span(mind: Mind, name: str) -> int:
    """A rank: what the rule calls short-lived, then by size, then what it calls long-lived."""
    rule = "" if mind.hasty else mind.view.rules.get("F4-LIFE-002", "").lower()
    longest, _, shortest = rule.partition("live longest")
    words = [word for word in name.lower().split() if word not in _STAGE_ORDER]
    if any(f"{word}s" in longest or word in longest for word in words if len(word) > 3):
        return 100
    if "insect" in shortest and any(word in _INSECTS for word in words):
        return -2
    if "rodent" in shortest and any(word in _RODENTS for word in words):
        return -1
    return max((_BY_SIZE.index(word) for word in words if word in _BY_SIZE), default=6)


def life_stages(mind: Mind) -> Ideas:
    """Focus on each stage in its order; wait for one that is not there yet."""
    yield from mind.go("outside")
    yield from mind.look()
    kind = mind.task.target.removesuffix(" plant").lower()
    names = (kind, *_YOUNG.get(kind, ()))
    nodes = [n for n in every(mind.scene.here) if any(w in n.name.lower() for w in names)]
    done = len(mind.scene.focused)
    stages = sorted(
        {_stage(node): node for node in nodes if not node.name.startswith(_NEVER)}.items()
    )
    number = re.search(r"the (\d+) life stages", mind.view.task)
    if done >= (int(number[1]) if number else 4):
        return
    before = _rank(mind.scene.focused[-1]) if mind.scene.focused else -1
    whole = len(stages) >= (int(number[1]) if number else 4)
    later = [node for rank, node in stages if rank > before] if not whole else []
    chosen = stages[done][1] if whole and done < len(stages) else next(iter(later), None)
    if chosen is not None:
        yield f"Stage {done + 1}.", f"focus on {_call(chosen)}"
    last = mind.view.turns[-1][0]
    yield ("Let time pass.", "wait") if last == "look around" else ("Now?", "look around")


def _call(node: Node) -> str:
    """The name to say: a plant's stage is said before it."""
    stage = re.search(r"in the (\w+) stage", node.note)
    return f"{stage[1]} {node.name}" if stage and stage[1] not in node.name else node.name


def _stage(node: Node) -> int:
    return _rank(_call(node))


def _rank(name: str) -> int:
    words = name.lower().split()
    return max((i for i, stage in enumerate(_STAGE_ORDER) if stage in words), default=50)
