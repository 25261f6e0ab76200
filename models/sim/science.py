"""How the planner plays the science house: by the manual where there is one, else by habit."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain

from rpms.models.sim.science_growing import grow
from rpms.models.sim.science_habits import habits, stroll
from rpms.models.sim.science_life import life_span, life_stages
from rpms.models.sim.science_matter import melting_point, transform
from rpms.models.sim.science_mind import Ideas, Mind
from rpms.models.sim.science_mix import mix_paint, mix_recipe
from rpms.models.sim.science_planes import compare_planes
from rpms.models.sim.science_reading import ScienceView
from rpms.models.sim.science_search import find_thing, measure

PROCEDURES: dict[str, tuple[str, Callable[[Mind], Ideas]]] = {
    "find": ("F1-PROC-001", find_thing),
    "measure": ("F2-PROC-001", measure),
    "melting": ("F2-PROC-001", melting_point),
    "boil": ("F3-PROC-001", transform),
    "melt": ("F3-PROC-001", transform),
    "freeze": ("F3-PROC-001", transform),
    "change": ("F3-PROC-001", transform),
    "mix": ("F3-PROC-001", mix_recipe),
    "paint": ("F3-MIX-001", mix_paint),
    "grow": ("F4-GROW-001", grow),
    "fruit": ("F4-GROW-001", grow),
    "genetics": ("F4-GROW-001", grow),
    "lifespan": ("F4-LIFE-002", life_span),
    "stages": ("F4-LIFE-001", life_stages),
    "planes": ("F4-PLANE-001", compare_planes),
}
"""Which rule teaches what to do for a task, and how it is done."""


def decide_science(view: ScienceView) -> tuple[str, str]:
    """A thought and an action."""
    if view.menu:
        return _choose(view)
    mind = Mind(view)
    if _rushing(mind):
        return "I run about without looking.", "look around"
    for thought, action in chain(_ideas(mind), _when_stuck(mind)):
        if mind.allowed(action):
            return thought, action
    return "Nothing more to do.", "wait1"


def _rushing(mind: Mind) -> bool:
    """Through two rooms in a row without a look into either."""
    last = [action for action, _ in mind.view.turns[-2:]]
    moves = [action for action in last if action.startswith(("go to ", "teleport to "))]
    return len(moves) == 2 and mind.scene.arrived


def _ideas(mind: Mind) -> Ideas:
    rule, procedure = PROCEDURES.get(mind.task.verb, ("", habits))
    yield from procedure(mind) if mind.knows(rule) else habits(mind)


def _when_stuck(mind: Mind) -> Ideas:
    """By the manual the work is done then, or needs time; a beginner walks on."""
    if mind.knows("U-FAIL-001"):
        yield "Let time pass.", "wait"
    yield from stroll(mind)


def _choose(view: ScienceView) -> tuple[str, str]:
    """A number of the list: the first line that names the target, else the first line."""
    words = set(re.findall(r"\w+", view.task.lower()))
    for number, line in view.menu:
        if line.startswith(("move", "pour")) and "in inventory" in line.partition(" to ")[0]:
            return "The one in my hand.", number
    for number, line in view.menu:
        first = line.lower().partition("(")[0].split()
        if first and first[-1] in words:
            return "That is the one I meant.", number
    return "Any of them will do.", view.menu[0][0]
