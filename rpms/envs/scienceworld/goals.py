"""Goals of ScienceWorld: family, verb and target of all 26 tasks, read from their descriptions.

The sentence alone decides the family, because it is all the agent is given. What a goal of this
world has beyond a GoalSpec (instrument, boxes and when they apply, the order of focus) is read
from the same sentence by ``read_details``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from typing_extensions import TypedDict

from rpms.envs.scienceworld.flags import temperature_of
from rpms.envs.scienceworld.procedure import Step, current_step, plan_of
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.turn import Turn

FAMILIES = ["F1", "F2", "F3", "F4"]


class GoalDetails(TypedDict):
    """What the description says beyond the GoalSpec; empty where it says nothing.

    Attributes:
        instrument: the tool the task demands to focus on.
        room: where the target, the seeds, the recipe or the animals are.
        boxes: the boxes, each with its condition.
        focus: what has to be focused on, in this order.
    """

    instrument: str
    room: str
    boxes: list[tuple[str, str]]
    focus: list[str]


_TEMPLATES: list[tuple[str, str, re.Pattern[str]]] = [
    (family, verb, re.compile(pattern))
    for family, verb, pattern in (
        ("F1", "find", r"find a\(n\) (?P<o>[\w -]+?)\. first, focus on the thing\. "
         r"then, move it to the (?P<d>\w+ box) in the [\w ]+\."),
        ("F2", "measure-temperature", r"measure the temperature of (?P<o>[\w ]+?), which is "),
        ("F2", "measure-melting-point", r"measure the melting point of (?P<o>[\w ]+?), which is "),
        ("F3", "boil", r"boil (?P<o>[\w ]+)\."),
        ("F3", "melt", r"melt (?P<o>[\w ]+)\."),
        ("F3", "freeze", r"freeze (?P<o>[\w ]+)\."),
        ("F3", "change-state", r"change the state of matter of (?P<o>[\w ]+)\."),
        ("F3", "mix", r"use chemistry to create the substance '(?P<o>[^']+)'\."),
        ("F3", "mix-paint", r"use chemistry to create (?P<o>[\w-]+ paint)\."),
        ("F4", "grow", r"grow an? (?P<o>[\w ]+ plant) from seed\."),
        ("F4", "grow-fruit", r"grow an? (?P<o>[\w ]+)\. this will require growing"),
        ("F4", "lifespan-longest-shortest",
         r"find the (?P<o>animal) with the longest life span, then the shortest life span\."),
        ("F4", "lifespan-longest", r"find the (?P<o>animal) with the longest life span\."),
        ("F4", "lifespan-shortest", r"find the (?P<o>animal) with the shortest life span\."),
        ("F4", "life-stages", r"focus on the (?P<n>\d+ )?life stages of the (?P<o>[\w ]+), "),
        ("F4", "inclined-plane-angle", r"determine which of the two (?P<o>inclined plane)s "
         r"\([^()]+\) has the (?P<q>\w+ angle)\."),
        ("F4", "inclined-plane-friction", r"determine which of the two (?P<o>inclined plane)s "
         r"\([^()]+\) has the (?P<q>\w+ friction)\."),
        ("F4", "genetics", r"determine whether [\w ]+ is a dominant or recessive trait in "
         r"the (?P<o>[\w ]+ plant)\."),
    )
]  # fmt: skip

_ROOM = re.compile(
    r"(?:which is located around the|can be found in the|might be found near the|located|"
    r"animals are in the) '?(?P<r>[\w ]+?)'?(?: location)?\."
)
_BOX = re.compile(
    r"if [^.]*?((?:above|below) -?\d+\.\d+ degrees celsius|dominant|recessive), "
    r"(?:focus on|place it in) the (\w+ box)"
)
_INSTRUMENT = re.compile(r"first, focus on the (thermometer)\.")


def parse_goal(sentence: str) -> GoalSpec:
    """Template parsing of the task description; one of no known shape is an error."""
    family, verb, found = _match(sentence)
    target = found["o"]
    return GoalSpec(
        sentence=sentence.strip(),
        type=family,
        object=target,
        state=verb,
        count=1,
        destination=found.groupdict().get("d") or "",
        signature=f"{family}:{verb}:{target}",
    )


def read_details(sentence: str) -> GoalDetails:
    """The parts of the description that the GoalSpec has no field for."""
    _, verb, found = _match(sentence)
    parts = found.groupdict()
    text = _plain(sentence)
    boxes = [(name, when) for when, name in _BOX.findall(text)]
    instrument = _INSTRUMENT.search(text)
    room = _ROOM.search(text)
    return GoalDetails(
        instrument=instrument[1] if instrument else "",
        room=room["r"] if room else "",
        boxes=[(parts["d"], "always")] if parts.get("d") else boxes,
        focus=_focus_order(verb, parts, text),
    )


def _focus_order(verb: str, parts: dict[str, str], text: str) -> list[str]:
    """What the description wants focused on. Its last sentence misnames a mixed paint's goal.

    For a tertiary colour it says "focus on the green paint" although the green-blue paint counts:
    the intermediate colour comes first and the paint that was asked for second.
    """
    target = parts["o"]
    if verb in ("measure-temperature", "measure-melting-point"):
        return ["thermometer", target]
    if verb == "mix-paint" and "intermediate" in text:
        return ["intermediate paint", target]
    if verb == "grow":
        return ["seed"]
    if verb.startswith("lifespan"):
        return [f"{target} with the {which} life span" for which in verb.split("-")[1:]]
    if verb == "life-stages":
        # Plants go through four stages; for animals the description gives the number.
        return [f"{target} in life stage {n}" for n in range(1, int(parts["n"] or 4) + 1)]
    if verb.startswith("inclined-plane"):
        return [f"{target} with the {parts['q']}"]
    return [] if verb == "genetics" else [target]


@lru_cache(maxsize=1024)
def _match(sentence: str) -> tuple[str, str, re.Match[str]]:
    text = _plain(sentence)
    for family, verb, pattern in _TEMPLATES:
        if found := pattern.match(text):
            return family, verb, found
    raise RpmsError(
        f"cannot read the goal '{sentence.strip()}': it follows none of the ScienceWorld task "
        "descriptions (boil/melt/measure/find/grow/use chemistry/determine ...)"
    )


def _plain(sentence: str) -> str:
    text = " ".join(sentence.lower().split())
    text = text.removeprefix("task description: ").removeprefix("your task is to ")
    return text if text.endswith(".") else f"{text}."


@lru_cache(maxsize=256)
def plan_for(sentence: str) -> tuple[Step, ...]:
    """The canonical procedure of the family, filled in for this task."""
    goal, told = parse_goal(sentence), read_details(sentence)
    return plan_of(goal["state"] or "", goal["object"], told["focus"], told["boxes"], told["room"])


def sub_goal(goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
    """The current step of the canonical procedure, and how far it has come in percent.

    What the history tells (focus, readings, the recipe) has been folded into the belief as it
    happened, so that the pointer in the belief and this one cannot differ. Where a reading decides
    between boxes, it is said beside their conditions: to compare them is the agent's part.
    """
    plan = plan_for(goal["sentence"])
    step, done = current_step(plan, belief)
    target = step.target
    if step.name in ("place_answer", "answer_box"):
        reading = temperature_of(belief, goal["object"])
        target += f"; last reading: {reading:g} degrees celsius" if reading is not None else ""
    return SubGoal(name=step.name, target=target, progress=100 * done // len(plan))
