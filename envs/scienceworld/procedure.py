"""Procedures: steps with a test on the belief each, and where among them a belief stands.

Everything a test needs is in the belief, so the pointer does not depend on how the agent got
there, and an episode that is replayed shows the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rpms.envs.scienceworld.flags import FOCUS, WAS, events, states_of, temperature_of
from rpms.envs.scienceworld.naming import find, same_thing, same_words, split_phase
from rpms.vocabulary.belief import Belief

Test = Callable[[Belief], bool]

_STAGES = ("baby", "juvenile", "adult", "hatchling", "newborn")
_YOUNG = ("egg", "tadpole", "caterpillar", "larva", "pupa", "chrysalis", "bee")


class Step(NamedTuple):
    """One sub-goal; a ``demanded`` one has to happen itself, whatever comes later."""

    name: str
    target: str
    done: Test
    demanded: bool = False


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


def names_known(belief: Belief) -> Iterator[str]:
    """Everything the agent carries, sees or has seen."""
    yield from belief["holding"]
    yield from belief["visible"]
    yield from belief["last_seen"]


def names_of(belief: Belief, target: str) -> list[str]:
    """The names under which a target is known."""
    return [name for name in names_known(belief) if same_thing(name, target)]


def chain(belief: Belief, name: str) -> Iterator[str]:
    """What a thing is in, and what that is in, from the inside out."""
    passed = {name}
    here = belief["last_seen"].get(find(belief["last_seen"], name) or "")
    while here is not None and here not in passed:
        passed.add(here)
        yield here
        here = belief["last_seen"].get(here)


def is_kind(name: str, kind: str) -> bool:
    """Living things show in how they are described; all else that can be named is not alive."""
    words = name.split()
    plant = words[-1] in ("tree", "plant")
    animal = words[0] in _STAGES or any(word in _YOUNG for word in words)
    alive = plant or animal
    truth = {"plant": plant, "animal": animal, "living thing": alive}
    return truth.get(kind, not alive and name != "air")


# Tests, to be put together in plans.


def knows(target: str) -> Test:
    """It has been seen somewhere."""
    return lambda belief: bool(names_of(belief, target))


def carries(target: str) -> Test:
    """It is in the inventory, or in something that is."""

    def test(belief: Belief) -> bool:
        names = names_of(belief, target)
        around = [*names, *(place for name in names for place in chain(belief, name))]
        return any(same_words(one, held) for one in around for held in belief["holding"])

    return test


def within(target: str, places: Sequence[str]) -> Test:
    """It, or what it is in, stands in or on one of the places."""
    return lambda belief: bool(containers_of(belief, target) & set(places))


def containers_of(belief: Belief, target: str) -> set[str]:
    """All that is known to be around a target."""
    return {place for name in names_of(belief, target) for place in chain(belief, name)}


def focused(target: str) -> Test:
    """It has been focused on."""
    return lambda belief: any(same_thing(name, target) for name in events(belief, FOCUS))


def focused_times(times: int) -> Test:
    """So many things have been focused on."""
    return lambda belief: len(events(belief, FOCUS)) >= times


def focused_on_one_of(names: Sequence[str]) -> Test:
    """One of these has been focused on."""
    return lambda belief: bool(set(events(belief, FOCUS)) & set(names))


def measured(target: str) -> Test:
    """Its temperature has been read."""
    return lambda belief: temperature_of(belief, target) is not None


def changed_phase(target: str) -> Test:
    """Its name has changed since it was first seen, so it has changed its phase."""
    return lambda belief: f"{split_phase(target)[0]}{WAS}" in map(str.lower, belief["flags"])


def made(target: str) -> Test:
    """Mixing has produced it. What is then listed as green-blue is announced as "blue green"."""
    words = _colours(target)
    return lambda belief: any(
        _colours(name) == words and "made" in states_of(belief, name) for name in belief["flags"]
    )


def _colours(name: str) -> set[str]:
    return set(name.lower().replace("-", " ").split())
