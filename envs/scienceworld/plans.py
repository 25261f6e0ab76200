"""The canonical procedure of every verb, filled in for one task.

The names of the sub-goals are those of the manual's procedures (rules/scienceworld/domain.yaml).
"""

from __future__ import annotations

from collections.abc import Sequence

from rpms.envs.scienceworld.flags import FOCUS, RECIPE, events, phase_of, states_of, temperature_of
from rpms.envs.scienceworld.naming import find
from rpms.envs.scienceworld.procedure import (
    Step,
    carries,
    chain,
    changed_phase,
    containers_of,
    focused,
    focused_on_one_of,
    focused_times,
    is_kind,
    knows,
    made,
    measured,
    names_known,
    names_of,
    within,
)
from rpms.vocabulary.belief import Belief

HEATERS = ("stove", "oven", "blast furnace", "hot plate", "fire pit")
COOLERS = ("freezer", "fridge", "ultra low temperature freezer")
_PHASE_WANTED = {"boil": "gas", "melt": "liquid", "freeze": "solid"}
_PLANE = "inclined plane"
_POT = "flower pot"

Boxes = Sequence[tuple[str, str]]


def plan_of(
    verb: str, target: str, focus: Sequence[str], boxes: Boxes, room: str
) -> tuple[Step, ...]:
    """The steps of one task. ``boxes`` are names with the condition for each."""
    if verb == "find":
        steps = _find(target, boxes[0][0])
    elif verb.startswith("measure-"):
        steps = _measure(verb, target, boxes)
    elif verb == "mix":
        steps = _mix(target)
    elif verb == "mix-paint":
        steps = _mix_paint(target, focus)
    elif verb in ("grow", "grow-fruit", "genetics"):
        steps = _grow(verb, target, boxes)
    elif verb.startswith("inclined-plane"):
        steps = _incline(focus[0])
    elif verb.startswith("lifespan") or verb == "life-stages":
        steps = _observe_life(target, focus, room)
    else:
        steps = _transform(verb, target)
    return tuple(steps)


def _find(kind: str, box: str) -> list[Step]:
    def seen(belief: Belief) -> bool:
        return any(is_kind(name, kind) for name in names_known(belief))

    def around(belief: Belief) -> list[str]:
        """What was chosen by focusing on it, and all it is in; a plant travels in its pot."""
        return [place for thing in events(belief, FOCUS)[:1] for place in chain(belief, thing)]

    def taken(belief: Belief) -> bool:
        chosen = [*events(belief, FOCUS)[:1], *around(belief)]
        return any(find(belief["holding"], name) is not None for name in chosen)

    return [
        Step("find_object", kind, seen),
        Step("focus_object", kind, focused_times(1), demanded=True),
        Step("take_object", kind, taken),
        Step("place_object", f"{kind} to {box}", lambda belief: box in around(belief)),
    ]


def _measure(verb: str, target: str, boxes: Boxes) -> list[Step]:
    tool = "thermometer"
    names = [name for name, _ in boxes]
    steps = [
        Step("find_instrument", tool, knows(tool)),
        Step("take_instrument", tool, carries(tool)),
        Step("focus_instrument", tool, focused(tool), demanded=True),
        Step("find_object", target, knows(target)),
        Step("focus_object", target, focused(target), demanded=True),
    ]
    if verb == "measure-temperature":
        return [
            *steps,
            Step("measure_object", target, measured(target)),
            Step("place_answer", f"{target} to {_choice(boxes)}", within(target, names)),
        ]

    def decided(belief: Belief) -> bool:
        """Liquid below the limit: it melts below it. Solid above the limit: it melts above it."""
        reading, phase = temperature_of(belief, target), phase_of(belief, target)
        limits = [float(when.split()[1]) for _, when in boxes]
        if reading is None or not limits:
            return False
        return phase == ("liquid" if reading <= min(limits) else "solid")

    def settled(belief: Belief) -> bool:
        """What has boiled has told nothing about its melting."""
        melted = changed_phase(target)(belief) and phase_of(belief, target) != "gas"
        return melted or decided(belief)

    return [
        *steps,
        Step("measure_object", target, settled),
        Step("answer_box", _choice(boxes), focused_on_one_of(names), demanded=True),
    ]


def _choice(boxes: Boxes) -> str:
    return " or ".join(f"{name} ({when})" for name, when in boxes)


def _transform(verb: str, target: str) -> list[Step]:
    devices = [*HEATERS, *COOLERS]

    def running(belief: Belief) -> bool:
        """It is in a device that works; coolers do, unless they were switched off."""
        around = containers_of(belief, target)
        fire = any("on fire" in states_of(belief, name) for name in (*around, "wood"))
        for device in around & set(devices):
            states = states_of(belief, device)
            if "activated" in states or (device == "fire pit" and fire):
                return True
            if device in COOLERS and "deactivated" not in states:
                return True
        return False

    def verified(belief: Belief) -> bool:
        wanted = _PHASE_WANTED.get(verb)
        reached = wanted is None or phase_of(belief, target) == wanted
        return reached and changed_phase(target)(belief)

    return [
        Step("find_object", target, knows(target)),
        Step("focus_object", target, focused(target), demanded=True),
        Step("take_object", target, carries(target)),
        Step("prepare_object", f"{target} in a heater or cooler", within(target, devices)),
        Step("transform_object", f"{verb} {target}", running),
        Step("verify_object", target, verified, demanded=True),
    ]


def _mix(target: str) -> list[Step]:
    def together(belief: Belief) -> bool:
        """All ingredients the recipe named are in one and the same container."""
        wanted = belief["flags"].get(RECIPE, "").split(", ")
        places = [
            {belief["last_seen"].get(name) for name in names_of(belief, want)} for want in wanted
        ]
        return len(wanted) > 1 and bool(set.intersection(*places) - {None, belief["location"]})

    return [
        Step("read_recipe", f"recipe for {target}", lambda b: RECIPE in b["flags"], demanded=True),
        Step("prepare_object", f"ingredients of {target} in one container", together),
        Step("mix_substances", target, made(target)),
        Step("focus_object", target, focused(target), demanded=True),
    ]


def _mix_paint(target: str, focus: Sequence[str]) -> list[Step]:
    def some_paint(belief: Belief) -> bool:
        return any(name.endswith("paint") for name in names_known(belief))

    def some_made(belief: Belief) -> bool:
        return any(
            name.endswith("paint") and "made" in states_of(belief, name) for name in belief["flags"]
        )

    steps = [Step("find_object", "paint", some_paint)]
    for between in focus[:-1]:
        steps.append(Step("mix_substances", between, some_made))
        steps.append(Step("focus_object", between, focused_times(1), demanded=True))
    return [
        *steps,
        Step("mix_substances", target, made(target)),
        Step("focus_object", target, focused(target), demanded=True),
    ]


def _grow(verb: str, target: str, boxes: Boxes) -> list[Step]:
    # The orange plant grows as orange seed and orange tree: only the kind is in all the names.
    kind = target.removesuffix(" plant")

    def planted(belief: Belief) -> bool:
        return any(
            kind in name.lower() and _POT in place for name, place in belief["last_seen"].items()
        )

    def watered(belief: Belief) -> bool:
        poured = any(_POT in name and "poured into" in s for name, s in belief["flags"].items())
        return poured or _POT in belief["last_seen"].get("water", "")

    def grown(belief: Belief) -> bool:
        return any(kind in n.lower() and "reproducing" in s for n, s in belief["flags"].items())

    steps = [
        Step("find_object", f"{kind} seed", knows("seed")),
        Step("take_object", "seed jar", lambda b: carries("seed")(b) or carries("seed jar")(b)),
    ]
    if verb == "grow":
        steps.append(Step("focus_object", f"{kind} seed", focused_times(1), demanded=True))
    steps += [
        Step("plant_seed", f"{kind} seed to flower pot with soil", planted, demanded=True),
        Step("water_plant", "flower pot", watered),
        Step("observe_result", f"{target} in the reproducing stage", grown),
    ]
    if verb == "grow-fruit":
        steps.append(Step("focus_object", f"grown {target}", focused_times(1), demanded=True))
    if verb == "genetics":
        steps.append(Step("answer_box", _choice(boxes), focused_times(1), demanded=True))
    return steps


def _observe_life(target: str, focus: Sequence[str], room: str) -> list[Step]:
    kind = target.removesuffix(" plant")

    def seen(belief: Belief) -> bool:
        names = names_known(belief)
        if kind == "animal":
            return any(is_kind(name, kind) for name in names)
        return any(kind in name.lower() for name in names)

    return [
        Step("find_object", f"{target} {room}".strip(), seen),
        *(
            Step("focus_object", what, focused_times(number), demanded=True)
            for number, what in enumerate(focus, start=1)
        ),
    ]


def _incline(answer: str) -> list[Step]:
    def tried(belief: Belief) -> int:
        """On how many planes a block has been watched."""
        return sum(
            _PLANE in name and " the plane" in state for name, state in belief["flags"].items()
        )

    return [
        Step("find_object", "inclined planes", lambda b: any(_PLANE in n for n in names_known(b))),
        Step(
            "prepare_object",
            "block to an inclined plane",
            lambda b: any(_PLANE in place for place in b["last_seen"].values()),
        ),
        Step("run_experiment", "stopwatch", lambda b: "stopwatch" in b["flags"] and tried(b) > 0),
        Step("observe_result", "both planes, one after the other", lambda b: tried(b) > 1),
        Step("focus_object", answer, focused_times(1), demanded=True),
    ]
