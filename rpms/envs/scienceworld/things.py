"""Things in ScienceWorld: the simulator's words for them, and the states observed of them.

``vocabulary.yaml`` beside this file holds the words needed to read the simulator's texts: which
names mean a phase, which things are pots, heaters or plants. The rule manual has separate tables,
which a user may change or leave out. The belief reads none of those, so it is the same with and
without rules. A test checks that both have the same entries.

The simulator renames a substance as it changes (``tin``, ``liquid tin``, ``gaseous tin``; ``ice``,
``water``, ``steam``), so the belief's flags keep its phase under one lasting name. Events are kept
beside the flags, because the pointer into the procedure must follow from the belief alone.

The belief holds the last phase and switch seen of a thing. A temperature belongs to the phase it
was measured in: when the substance is seen in another phase, the reading is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml

from rpms.vocabulary.belief import Belief, Event
from rpms.vocabulary.files import YAML_LOADER
from rpms.vocabulary.naming import is_a, same_words

VOCABULARY = Path(__file__).with_name("vocabulary.yaml")

UNKNOWN_COMMAND = "No known action matches that input."
INVENTORY = "inventory"
# Two flags that name no thing.
TASK = "task"  # the description, from the opening text
CARRYING = INVENTORY  # UNSURE while no text has told what is carried
UNSURE = "unsure"
UNLISTED = "truncated"  # the things carried from the start were never listed
# Suffix of the flag that holds a substance's name before its phase changed.
WAS = " was"
# Kinds of events: the things focused on, in order; the ingredients of the recipe; the pots that
# seeds were put into, in order; the rooms where temperatures were read; each reading of a thing, as
# a solid or as a liquid.
FOCUS, RECIPE, SOWN, READ, MEASURED = "focus", "recipe", "sown", "read", "measured"

BROKEN = "broken"
# The state of a thing that something was poured into.
POURED = "poured into"

_PHASES = ("solid", "liquid", "gas")
_READING = re.compile(r"-?[\d.]+ degrees celsius")
_PHASE = re.compile(r"(solid|liquid|gaseous) (.+)")


@cache
def _vocabulary() -> dict[str, Any]:
    data: dict[str, Any] = yaml.load(VOCABULARY.read_text(encoding="utf-8"), Loader=YAML_LOADER)
    return data


@cache
def kinds(*names: str) -> frozenset[str]:
    """The kinds of things that these words of the vocabulary stand for."""
    return frozenset().union(*(tables()[name] for name in names))


def kinds_if_any(name: str) -> frozenset[str]:
    """The kinds that a word stands for; none if the vocabulary does not have it."""
    return tables().get(name, frozenset())


@cache
def tables() -> dict[str, frozenset[str]]:
    """Every word of the vocabulary with the kinds it stands for."""
    return {name: frozenset(members) for name, members in _vocabulary()["kinds"].items()}


@cache
def renamed() -> dict[str, str]:
    """Printed name of a substance -> its systematic name: ``ice`` -> ``solid water``."""
    return dict(_vocabulary()["renamed"])


@lru_cache(maxsize=4096)
def split_phase(name: str) -> tuple[str, str]:
    """The lasting name of a substance and its phase: ``liquid tin`` -> (``tin``, ``liquid``)."""
    if match := _PHASE.fullmatch(renamed().get(name, name)):
        return match[2], "gas" if match[1] == "gaseous" else match[1]
    return name, ""


def same_thing(name: str, target: str) -> bool:
    """True if a seen name can be the target of a task, in any phase."""
    return same_words(split_phase(name.lower())[0], split_phase(target.lower())[0])


def note(belief: Belief, name: str, states: Iterable[str], view: Collection[str] = ()) -> None:
    """Record the states that were just seen of a thing.

    A temperature stays until the next reading, or until the substance is seen in another phase.
    ``view`` has the names seen together with it: ice beside the water is another portion.
    """
    lasting, phase = split_phase(name)
    old_states = states_of(belief, lasting)
    if before := [old for old in names_before(belief, name) if old not in view]:
        belief["flags"][f"{lasting}{WAS}"] = before[-1]
    new = [phase] if phase else []
    new += [state for state in states if state not in new]
    plain = [state for state in new if not _is_reading(state)]
    if not plain:
        new[:0] = [state for state in old_states if not _is_reading(state) and state not in _PHASES]
    two_portions = any(each != name and split_phase(each)[0] == lasting for each in view)
    # A look calls a broken device "turned off"; nothing is ever repaired.
    new += [state for state in old_states if state == BROKEN and state not in new]
    if not any(map(_is_reading, new)) and (phase == _phase_in(old_states) or two_portions):
        new += filter(_is_reading, old_states)
    if new:
        belief["flags"][lasting] = ", ".join(new)
    else:
        belief["flags"].pop(lasting, None)


def note_reading(belief: Belief, name: str, reading: str) -> None:
    """Record a measured temperature; the other states of the thing stay.

    A command may spell the name in lower case, and it may tell a new phase.
    """
    lasting, phase = split_phase(name)
    states = [state for state in states_of(belief, lasting) if not _is_reading(state)]
    if phase:
        states = [phase, *(state for state in states if state not in _PHASES)]
    belief["flags"][_spelled(belief, lasting)] = ", ".join([*states, reading])
    measured = f"{lasting.lower()} as {phase_or_usual(belief, name)}: {reading}"
    if measured not in events(belief, MEASURED):
        add_event(belief, MEASURED, measured)


def measured_as(belief: Belief, name: str, phase: str) -> list[float]:
    """The temperatures that were read of a thing while it was solid, or liquid."""
    start = f"{split_phase(name)[0].lower()} as {phase}: "
    readings = (text for text in events(belief, MEASURED) if text.startswith(start))
    last = temperature_of(belief, name) if phase_or_usual(belief, name) == phase else None
    earlier = [float(text.removeprefix(start).split()[0]) for text in readings]
    return earlier if last is None else [*earlier, last]


def phase_or_usual(belief: Belief, name: str) -> str:
    """The phase of a thing; under its plain name it is solid, unless listed as a liquid."""
    usual = "liquid" if is_a(name, kinds("liquid")) else "solid"
    return phase_of(belief, name) or usual


def names_before(belief: Belief, name: str) -> list[str]:
    """Other names under which the same substance has been seen: its other phases."""
    lasting = split_phase(name)[0]
    return [old for old in belief["last_seen"] if split_phase(old)[0] == lasting and old != name]


def states_of(belief: Belief, name: str) -> list[str]:
    """All states of a thing, its phase or switch first, a temperature last."""
    text = belief["flags"].get(_spelled(belief, split_phase(name)[0]), "")
    return text.split(", ") if text else []


def _spelled(belief: Belief, lasting: str) -> str:
    """A name as the flags spell it: goals are in lower case, "unknown substance B" is not."""
    spelled = (key for key in belief["flags"] if key.lower() == lasting)
    return lasting if lasting in belief["flags"] else next(spelled, lasting)


def phase_of(belief: Belief, name: str) -> str:
    """The phase in which a substance was last seen; empty under its plain name."""
    return _phase_in(states_of(belief, name))


def _phase_in(states: Iterable[str]) -> str:
    return next((state for state in states if state in _PHASES), "")


def temperature_of(belief: Belief, name: str) -> float | None:
    """The last reading for a thing, in degrees celsius."""
    reading = next((state for state in states_of(belief, name) if _is_reading(state)), None)
    return float(reading.split()[0]) if reading else None


def _is_reading(state: str) -> bool:
    return _READING.fullmatch(state) is not None


def print_states(states: Iterable[str]) -> str:
    """``liquid, 210 degrees celsius when last measured``."""
    return ", ".join(f"{s} when last measured" if _is_reading(s) else s for s in states)


def add_event(belief: Belief, kind: str, thing: str) -> None:
    belief["events"].append(Event(kind=kind, thing=thing))


def events(belief: Belief, kind: str) -> list[str]:
    """The things of all events of one kind, in order."""
    return [event["thing"] for event in belief["events"] if event["kind"] == kind]
