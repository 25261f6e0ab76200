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

_DEVICES = ("heater", "hearth", "cooler", "chiller")


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


def _carried(belief: Belief, what: str) -> bool:
    """It is in the inventory, or in something that is."""
    around = [*_names_of(belief, what), *_around(belief, what)]
    return any(same_words(one, held) for one in around for held in belief["holding"])


def _chosen(belief: Belief) -> list[str]:
    """What was chosen by focusing on it, and all it is in; a plant travels in its pot."""
    first = events(belief, FOCUS)[:1]
    return [*first, *(place for thing in first for place in _chain(belief, thing))]


def _changed(belief: Belief, what: str) -> bool:
    """Its name has changed since it was first seen, so it has changed its phase."""
    return f"{split_phase(what)[0]}{WAS}" in map(str.lower, belief["flags"])


def _decided(belief: Belief, what: str, boxes: Boxes) -> bool:
    """Liquid below the limit: it melts below it. Solid above the limit: it melts above it."""
    reading, phase = temperature_of(belief, what), phase_of(belief, what)
    limits = [float(when.split()[1]) for _, when in boxes]
    if reading is None or not limits:
        return False
    return phase == ("liquid" if reading <= min(limits) else "solid")


def _running(belief: Belief, what: str) -> bool:
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


def _together(belief: Belief) -> bool:
    """All ingredients the recipe named are in one and the same container."""
    places = [
        {belief["last_seen"].get(name) for name in _names_of(belief, wanted)}
        for wanted in events(belief, RECIPE)
    ]
    return len(places) > 1 and bool(set.intersection(*places) - {None, belief["location"]})


def _products(belief: Belief) -> list[str]:
    return [name for name in belief["flags"] if "made" in states_of(belief, name)]


def _colours(name: str) -> set[str]:
    """What is then listed as green-blue is announced as "blue green"."""
    return set(name.lower().replace("-", " ").split())


def _watered(belief: Belief) -> bool:
    pots = [name for name, states in belief["flags"].items() if "poured into" in states]
    pots.append(belief["last_seen"].get("water", ""))
    return any(is_a(name, kinds("flower_pot")) for name in pots)


def _watched(belief: Belief, plane: str) -> int:
    """On how many planes a block has been watched."""
    return sum(plane in name and " the plane" in s for name, s in belief["flags"].items())


# The words of the manual's ``done``: the belief, the task, and what the word is about.
TESTS: dict[str, Callable[[Belief, Task, str], bool]] = {
    "of_kind": lambda b, _, kind: any(is_kind(name, kind) for name in _names_known(b)),
    "known": lambda b, _, what: bool(_names_of(b, what)),
    "called": lambda b, _, word: any(word in name.lower() for name in _names_known(b)),
    "ending": lambda b, _, word: any(name.endswith(word) for name in _names_known(b)),
    "carried": lambda b, _, what: _carried(b, what),
    "focused": lambda b, _, what: any(same_thing(name, what) for name in events(b, FOCUS)),
    "focused_times": lambda b, _, times: len(events(b, FOCUS)) >= int(times),
    "chosen_taken": lambda b, *_: any(find(b["holding"], name) for name in _chosen(b)),
    "chosen_in": lambda b, _, place: place in _chosen(b)[1:],
    "answered": lambda b, task, _: bool(set(events(b, FOCUS)) & {name for name, _ in task.boxes}),
    "boxed": lambda b, task, what: bool(_around(b, what) & {name for name, _ in task.boxes}),
    "measured": lambda b, _, what: temperature_of(b, what) is not None,
    "changed": lambda b, _, what: _changed(b, what),
    "became": lambda b, t, phase: phase_of(b, t.object) == phase and _changed(b, t.object),
    # What has boiled has told nothing about its melting.
    "melted": lambda b, _, what: _changed(b, what) and phase_of(b, what) != "gas",
    "decided": lambda b, task, what: _decided(b, what, task.boxes),
    "in_device": lambda b, _, what: any(is_a(at, kinds(*_DEVICES)) for at in _around(b, what)),
    "running": lambda b, _, what: _running(b, what),
    "recipe_read": lambda b, *_: bool(events(b, RECIPE)),
    "together": lambda b, *_: _together(b),
    "made": lambda b, _, what: _colours(what) in map(_colours, _products(b)),
    "made_ending": lambda b, _, word: any(name.endswith(word) for name in _products(b)),
    "planted": lambda b, _, kind: any(
        kind in name.lower() and is_a(at, kinds("flower_pot"))
        for name, at in b["last_seen"].items()
    ),
    "watered": lambda b, *_: _watered(b),
    "grown": lambda b, _, kind: any(
        kind in name.lower() and "reproducing" in states for name, states in b["flags"].items()
    ),
    "loaded": lambda b, task, _: any(task.object in place for place in b["last_seen"].values()),
    "watched": lambda b, task, times: _watched(b, task.object) >= int(times),
    "timed": lambda b, task, tool: tool in b["flags"] and _watched(b, task.object) > 0,
}
