"""Goals of ALFWorld: parses the six task types and follows the sub-goals of each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rpms.vocabulary.belief import Belief, in_order, kind_of
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import GoalSpec, SubGoal, Target
from rpms.vocabulary.turn import Turn

LOOK = "look_at_obj_in_light"
PLACE = "pick_and_place_simple"
TWO = "pick_two_obj_and_place"

# State adjective -> (goal type, verb that causes the state, kind of place where that happens).
TRANSFORMS = {
    "clean": ("pick_clean_then_place_in_recep", "clean", "sinkbasin"),
    "hot": ("pick_heat_then_place_in_recep", "heat", "microwave"),
    "cool": ("pick_cool_then_place_in_recep", "cool", "fridge"),
}
GOAL_TYPES = [PLACE, LOOK, *(kind for kind, *_ in TRANSFORMS.values()), TWO]
# Words of a task sentence -> state.
_STATES = {verb: state for state, (_, verb, _) in TRANSFORMS.items()}
_STATES |= {"hot": "hot", "cold": "cool"}

_IN = r"(?:in/on|in|on|into|onto|to)"
_ARTICLE = r"(?:(?:a|an|some|the|one) )?"
_OBJECT, _PLACE = rf"{_ARTICLE}(?P<o>\w+)", rf"{_IN} {_ARTICLE}(?P<d>\w+)"
_TEMPLATES: list[tuple[str, re.Pattern[str]]] = [
    (kind, re.compile(f"^{pattern}$"))
    for kind, pattern in (
        (LOOK, rf"(?:look at|examine) {_OBJECT} (?:under|with|using|by) the (?P<d>\w+)"),
        (TWO, rf"(?:find|get|take) two (?P<o>\w+) and put them {_PLACE}"),
        (TWO, rf"put two (?P<o>\w+) {_PLACE}"),
        ("", rf"(?P<s>clean|heat|cool) {_OBJECT} and put it {_PLACE}"),
        ("", rf"put {_ARTICLE}(?P<s>clean|hot|cool|cold) (?P<o>\w+) {_PLACE}"),
        (PLACE, rf"put {_OBJECT} {_PLACE}"),
    )
]


def parse_goal(sentence: str) -> GoalSpec:
    """Parse the task sentence by templates; raise an error when none matches."""
    text = " ".join(sentence.lower().split()).rstrip(" .")
    text = text.removeprefix("your task is to: ")
    for kind, pattern in _TEMPLATES:
        if match := pattern.match(text):
            thing, place = match["o"], match["d"]
            state = None if kind else _STATES[match["s"]]
            kind = TRANSFORMS[state][0] if state else kind
            return GoalSpec(
                sentence=sentence.strip(),
                type=kind,
                object=thing,
                state=state,
                count=2 if kind == TWO else 1,
                destination=place,
                signature=f"{kind}:{thing}:{state or 'none'}:{place}",
            )
    raise RpmsError(
        f"cannot read the goal '{sentence.strip()}': it follows none of the ALFWorld task "
        "templates (put/clean/heat/cool/find two/look at ...)"
    )


def sub_goal(goal: GoalSpec, belief: Belief, history: Sequence[Turn]) -> SubGoal:
    """The current sub-goal and the progress, from the belief."""
    ready = _ready(goal, belief)
    placed = _placed(goal, belief, ready)
    stages = _stages(goal)
    done = min(len(placed), goal["count"]) * stages
    name, words, target, reached = _pointer(goal, belief, ready, placed)
    progress = min(100, 100 * (done + reached) // (stages * goal["count"]))
    return SubGoal(name=name, target=words.format(**target), progress=progress, about=target)


def solved(goal: GoalSpec, belief: Belief) -> bool:
    """Return whether the belief meets the goal: the objects in place, or the lamp on beside one."""
    if goal["type"] != LOOK:
        ready = _ready(goal, belief)
        return len(_placed(goal, belief, ready)) >= goal["count"]
    held = any(kind_of(thing) == goal["object"] for thing in belief["holding"])
    return held and any(
        "on" in belief["flags"].get(thing, "").split(", ")
        for thing, where in belief["last_seen"].items()
        if kind_of(thing) == goal["destination"] and where in _reach(belief)
    )


def _ready(goal: GoalSpec, belief: Belief) -> set[str]:
    """The things in the state that the goal asks for."""
    return {thing for thing, states in belief["flags"].items()
            if goal["state"] in states.split(", ")}  # fmt: skip


def _stages(goal: GoalSpec) -> int:
    """The number of steps per object: find, take, (transform or use the lamp), place."""
    return 3 if goal["type"] in (PLACE, TWO, LOOK) else 4


def _placed(goal: GoalSpec, belief: Belief, ready: set[str]) -> list[str]:
    """The objects already in place. Two of them count only if they are in the same place."""
    by_place: dict[str, list[str]] = {}
    for thing, where in belief["last_seen"].items():
        if (
            kind_of(thing) == goal["object"]
            and kind_of(where) == goal["destination"]
            and (goal["state"] is None or thing in ready)
            and goal["type"] != LOOK
        ):
            by_place.setdefault(where, []).append(thing)
    return max(by_place.values(), key=len, default=[])


def _place_of(kind: str, belief: Belief) -> str:
    """Name a place of a kind: one within reach, else the one with the lowest number."""
    names = [*_reach(belief), *sorted(belief["places"], key=in_order)]
    return next((name for name in names if kind_of(name) == kind), kind)


def _reach(belief: Belief) -> list[str]:
    """The places that can be used without moving."""
    return [belief["location"] or "", *belief["reachable"]]


def _pointer(
    goal: GoalSpec, belief: Belief, ready: set[str], placed: list[str]
) -> tuple[str, str, Target, int]:
    """The sub-goal's name, its sentence, its target, and the number of steps already done."""
    held = belief["holding"][0] if belief["holding"] else None
    if held and kind_of(held) == goal["object"]:
        if goal["type"] == LOOK:
            lamps = [t for t in belief["last_seen"] if kind_of(t) == goal["destination"]]
            if lamps:
                lamp = min(lamps, key=lambda name: belief["last_seen"][name] not in _reach(belief))
                target = Target(object=lamp, place=belief["last_seen"][lamp])
                return "use_lamp", "{object} at {place}", target, 2
            return "find_lamp", "{object}", Target(object=goal["destination"]), 2
        if goal["state"] and held not in ready:
            _, verb, tool = TRANSFORMS[goal["state"]]
            target = Target(object=held, place=_place_of(tool, belief))
            return f"{verb}_object", "{object}", target, 2
        where = belief["last_seen"][placed[0]] if placed else _place_of(goal["destination"], belief)
        target = Target(object=held, place=where)
        return "place_object", "{object} in/on {place}", target, _stages(goal) - 1
    if held:
        return "free_hand", "put down {object}", Target(object=held), 0
    for thing, where in belief["last_seen"].items():
        if kind_of(thing) == goal["object"] and thing not in placed:
            return "take_object", "{object} from {place}", Target(object=thing, place=where), 1
    return "find_object", "{object}", Target(object=goal["object"]), 0
