"""Where a belief stands in the procedure of its task.

The manual lists the steps of every kind of task (``steps`` in rules/scienceworld/domain.yaml). Each
names tests on the belief, the functions below; it is done once one of them holds. Everything a test
needs is in the belief, so the pointer does not depend on how the agent got there, and an episode
that is replayed shows the same one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rpms.envs.scienceworld.flags import (
    FOCUS,
    RECIPE,
    WAS,
    events,
    phase_of,
    same_thing,
    split_phase,
    states_of,
    temperature_of,
)
from rpms.envs.scienceworld.manual import kinds, steps_of
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.naming import find, is_a, same_words

Boxes = Sequence[tuple[str, str]]


class Task(NamedTuple):
    """What the tests may know of a task; ``boxes`` are names with the condition for each."""

    object: str
    boxes: Boxes


class Step(NamedTuple):
    """One sub-goal; a ``demanded`` one has to happen itself, whatever comes later."""

    name: str
    target: str
    done: Callable[[Belief], bool]
    demanded: bool


def plan_of(
    verb: str, target: str, focus: Sequence[str], boxes: Boxes, room: str
) -> tuple[Step, ...]:
    """The manual's steps, filled in for one task."""
    task = Task(target, boxes)
    blanks = {
        "object": target,
        # The orange plant grows as orange seed and orange tree: only the kind is in all the names.
        "kind": target.removesuffix(" plant"),
        "verb": verb,
        "room": room,
        "box": boxes[0][0] if boxes else "",
        "boxes": " or ".join(f"{name} ({when})" for name, when in boxes),
    }
    repeats = {"focus": focus, "between": focus[:-1]}
    plan = []
    for row in steps_of(verb):
        for number, what in enumerate(repeats[row["each"]] if "each" in row else [""], start=1):
            filled = {**blanks, "what": what, "number": number}
            tests = [text.format(**filled) for text in row["done"]]
            aim = row.get("target", "{object}").format(**filled).strip()
            plan.append(Step(row["name"], aim, _any(task, tests), row.get("demanded", False)))
    return tuple(plan)


def _any(task: Task, texts: Sequence[str]) -> Callable[[Belief], bool]:
    """Whether one of some tests holds; one without an argument is about the task's own object."""
    read = [re.fullmatch(r"(\w+)(?:\((.+)\))?", text) for text in texts]
    tests = [(TESTS[found[1]], found[2] or task.object) for found in read if found]
    return lambda belief: any(test(belief, task, what) for test, what in tests)


def current_step(steps: Sequence[Step], belief: Belief) -> tuple[Step, int]:
    """The first step still to do, and how many come before it; the last one when all are done.

    Some steps can be left out: a pot that stands on the stove was obviously taken there. So a step
    also counts as done once one after it is, up to the next that is demanded.
    """
    done = [step.done(belief) for step in steps]
    for number, step in enumerate(steps):
        end = number
        while end < len(steps) - 1 and not steps[end].demanded:
            end += 1
        if not any(done[number : end + 1]):
            return step, number
    return steps[-1], len(steps)


def _names_known(belief: Belief) -> Iterator[str]:
    """Everything the agent carries, sees or has seen."""
    yield from belief["holding"]
    yield from belief["visible"]
    yield from belief["last_seen"]


def _names_of(belief: Belief, target: str) -> list[str]:
    """The names under which a target is known."""
    return [name for name in _names_known(belief) if same_thing(name, target)]


def _chain(belief: Belief, name: str) -> Iterator[str]:
    """What a thing is in, and what that is in, from the inside out."""
    passed = {name}
    here = belief["last_seen"].get(find(belief["last_seen"], name) or "")
    while here is not None and here not in passed:
        passed.add(here)
        yield here
        here = belief["last_seen"].get(here)


def _around(belief: Belief, target: str) -> set[str]:
    """All that is known to be around a target."""
    return {place for name in _names_of(belief, target) for place in _chain(belief, name)}


def is_kind(name: str, kind: str) -> bool:
    """Living things show in how they are described; all else that can be named is not alive."""
    words = name.split()
    plant = is_a(words[-1], kinds("plants")) is True
    animal = words[0] in kinds("stages") or bool(kinds("young") & set(words))
    alive = plant or animal
    truth = {"plant": plant, "animal": animal, "living thing": alive}
    return truth.get(kind, not alive and name != "air")


def _of_kind(belief: Belief, _: Task, kind: str) -> bool:
    return any(is_kind(name, kind) for name in _names_known(belief))


def _known(belief: Belief, _: Task, what: str) -> bool:
    return bool(_names_of(belief, what))


def _called(belief: Belief, _: Task, word: str) -> bool:
    return any(word in name.lower() for name in _names_known(belief))


def _ending(belief: Belief, _: Task, word: str) -> bool:
    return any(name.endswith(word) for name in _names_known(belief))


def _carried(belief: Belief, _: Task, what: str) -> bool:
    """It is in the inventory, or in something that is."""
    around = [*_names_of(belief, what), *_around(belief, what)]
    return any(same_words(one, held) for one in around for held in belief["holding"])


def _focused(belief: Belief, _: Task, what: str) -> bool:
    return any(same_thing(name, what) for name in events(belief, FOCUS))


def _focused_times(belief: Belief, _: Task, times: str) -> bool:
    return len(events(belief, FOCUS)) >= int(times)


def _chosen(belief: Belief) -> list[str]:
    """What was chosen by focusing on it, and all it is in; a plant travels in its pot."""
    first = events(belief, FOCUS)[:1]
    return [*first, *(place for thing in first for place in _chain(belief, thing))]


def _chosen_taken(belief: Belief, _: Task, __: str) -> bool:
    return any(find(belief["holding"], name) is not None for name in _chosen(belief))


def _answered(belief: Belief, task: Task, _: str) -> bool:
    return bool(set(events(belief, FOCUS)) & {name for name, _ in task.boxes})


def _boxed(belief: Belief, task: Task, what: str) -> bool:
    return bool(_around(belief, what) & {name for name, _ in task.boxes})


def _measured(belief: Belief, _: Task, what: str) -> bool:
    return temperature_of(belief, what) is not None


def _changed(belief: Belief, _: Task, what: str) -> bool:
    """Its name has changed since it was first seen, so it has changed its phase."""
    return f"{split_phase(what)[0]}{WAS}" in map(str.lower, belief["flags"])


def _became(belief: Belief, task: Task, phase: str) -> bool:
    return phase_of(belief, task.object) == phase and _changed(belief, task, task.object)


def _melted(belief: Belief, task: Task, what: str) -> bool:
    """What has boiled has told nothing about its melting."""
    return _changed(belief, task, what) and phase_of(belief, what) != "gas"


def _decided(belief: Belief, task: Task, what: str) -> bool:
    """Liquid below the limit: it melts below it. Solid above the limit: it melts above it."""
    reading, phase = temperature_of(belief, what), phase_of(belief, what)
    limits = [float(when.split()[1]) for _, when in task.boxes]
    if reading is None or not limits:
        return False
    return phase == ("liquid" if reading <= min(limits) else "solid")


def _in_device(belief: Belief, _: Task, what: str) -> bool:
    devices = kinds("heater", "hearth", "cooler", "chiller")
    return any(is_a(place, devices) for place in _around(belief, what))


def _running(belief: Belief, _: Task, what: str) -> bool:
    """It is in a device that works; coolers do, unless they were switched off."""
    around = _around(belief, what)
    fire = any("on fire" in states_of(belief, name) for name in (*around, "wood"))
    for place in around:
        states = states_of(belief, place)
        if is_a(place, kinds("heater")) and "activated" in states:
            return True
        if is_a(place, kinds("hearth")) and fire:
            return True
        if is_a(place, kinds("cooler", "chiller")) and "deactivated" not in states:
            return True
    return False


def _recipe_read(belief: Belief, _: Task, __: str) -> bool:
    return bool(events(belief, RECIPE))


def _together(belief: Belief, _: Task, __: str) -> bool:
    """All ingredients the recipe named are in one and the same container."""
    places = [
        {belief["last_seen"].get(name) for name in _names_of(belief, wanted)}
        for wanted in events(belief, RECIPE)
    ]
    return len(places) > 1 and bool(set.intersection(*places) - {None, belief["location"]})


def _made(belief: Belief, _: Task, what: str) -> bool:
    """Mixing has produced it. What is then listed as green-blue is announced as "blue green"."""
    return any(_colours(name) == _colours(what) for name in _products(belief))


def _made_ending(belief: Belief, _: Task, word: str) -> bool:
    return any(name.endswith(word) for name in _products(belief))


def _products(belief: Belief) -> list[str]:
    return [name for name in belief["flags"] if "made" in states_of(belief, name)]


def _colours(name: str) -> set[str]:
    return set(name.lower().replace("-", " ").split())


def _is_pot(name: str) -> bool:
    return is_a(name, kinds("flower_pot")) is True


def _planted(belief: Belief, _: Task, kind: str) -> bool:
    return any(kind in name.lower() and _is_pot(at) for name, at in belief["last_seen"].items())


def _watered(belief: Belief, _: Task, __: str) -> bool:
    poured = any(_is_pot(name) and "poured into" in s for name, s in belief["flags"].items())
    return poured or _is_pot(belief["last_seen"].get("water", ""))


def _grown(belief: Belief, _: Task, kind: str) -> bool:
    return any(kind in name.lower() and "reproducing" in s for name, s in belief["flags"].items())


def _loaded(belief: Belief, task: Task, _: str) -> bool:
    return any(task.object in place for place in belief["last_seen"].values())


def _watched(belief: Belief, task: Task, times: str) -> bool:
    """A block has been watched on so many planes."""
    flags = belief["flags"].items()
    return sum(task.object in name and " the plane" in s for name, s in flags) >= int(times)


def _timed(belief: Belief, task: Task, tool: str) -> bool:
    return tool in belief["flags"] and _watched(belief, task, "1")


# The words of the manual's ``done``: a test of the belief, with the task and what it is about.
TESTS: dict[str, Callable[[Belief, Task, str], bool]] = {
    "of_kind": _of_kind,
    "known": _known,
    "called": _called,
    "ending": _ending,
    "carried": _carried,
    "focused": _focused,
    "focused_times": _focused_times,
    "chosen_taken": _chosen_taken,
    "chosen_in": lambda belief, _, place: place in _chosen(belief)[1:],
    "answered": _answered,
    "boxed": _boxed,
    "measured": _measured,
    "changed": _changed,
    "became": _became,
    "melted": _melted,
    "decided": _decided,
    "in_device": _in_device,
    "running": _running,
    "recipe_read": _recipe_read,
    "together": _together,
    "made": _made,
    "made_ending": _made_ending,
    "planted": _planted,
    "watered": _watered,
    "grown": _grown,
    "loaded": _loaded,
    "watched": _watched,
    "timed": _timed,
}
