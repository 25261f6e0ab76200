"""Things in ScienceWorld: the simulator's words for them, and what was observed.

``vocabulary.yaml`` beside this file holds the words that reading the simulator's texts needs: which
names mean a phase, which things are pots, heaters or plants. The rule manual has tables of its own,
which a user may change or leave out; the belief reads none of them, so it is the same with rules
and without. A test holds the tables that both have equal.

A substance is renamed as it changes (``tin``, ``liquid tin``, ``gaseous tin``; ``ice``, ``water``,
``steam``), so its phase is kept in the belief's flags under the one name that stays. What happened
is kept beside it as events, because the pointer into the procedure has to follow from the belief
alone.

What the belief claims of a thing is what was last seen of it: its phase and its switch. A
temperature is a claim about the moment of its measurement, and it belongs to the phase that it was
taken in: when the substance is seen in another phase, the reading is dropped.
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
from rpms.vocabulary.naming import same_words

VOCABULARY = Path(__file__).with_name("vocabulary.yaml")

UNKNOWN_COMMAND = "No known action matches that input."
INVENTORY = "inventory"
# Two flags that name no thing.
TASK = "task"  # the description, from the opening text
CARRYING = INVENTORY  # UNSURE while no text can have told what is carried
UNSURE = "unsure"
UNLISTED = "truncated"  # what was carried from the start was never listed, the rest is known
# Added to a substance: what it was called before its phase changed.
WAS = " was"
# Kinds of events: what was focused on, in order, the ingredients that the recipe named, the pots
# that seeds were put into, in order, and the rooms that temperatures were read in.
FOCUS, RECIPE, SOWN, READ = "focus", "recipe", "sown", "read"

BROKEN = "broken"
# What is noted of something that a liquid, or whatever else, was poured into.
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
    """The kinds of things under some words of the vocabulary."""
    return frozenset().union(*(tables()[name] for name in names))


def kinds_if_any(name: str) -> frozenset[str]:
    """The same for a word that need not be one of them."""
    return tables().get(name, frozenset())


@cache
def tables() -> dict[str, frozenset[str]]:
    """Every word of the vocabulary with the kinds it stands for."""
    return {name: frozenset(members) for name, members in _vocabulary()["kinds"].items()}


@cache
def renamed() -> dict[str, str]:
    """What a substance is called by nature, by the name it goes by: ``ice``, ``solid water``."""
    return dict(_vocabulary()["renamed"])


@lru_cache(maxsize=4096)
def split_phase(name: str) -> tuple[str, str]:
    """The lasting name of a substance and its phase: ``liquid tin`` -> (``tin``, ``liquid``)."""
    if match := _PHASE.fullmatch(renamed().get(name, name)):
        return match[2], "gas" if match[1] == "gaseous" else match[1]
    return name, ""


def same_thing(name: str, target: str) -> bool:
    """Whether a seen name can be the target of a task, whatever its phase."""
    return same_words(split_phase(name.lower())[0], split_phase(target.lower())[0])


def note(belief: Belief, name: str, states: Iterable[str], others: Collection[str] = ()) -> None:
    """Write down what is seen of a thing now.

    A temperature stays until the next reading, or until the substance is seen in another phase.
    ``others`` are names in the same view: ice beside the water is not what the water was.
    """
    lasting, phase = split_phase(name)
    known = states_of(belief, lasting)
    if before := [old for old in names_before(belief, name) if old not in others]:
        belief["flags"][f"{lasting}{WAS}"] = before[-1]
    new = [phase] if phase else []
    new += [state for state in states if state not in new]
    plain = [state for state in new if not _is_reading(state)]
    if not plain:
        new[:0] = [state for state in known if not _is_reading(state) and state not in _PHASES]
    two_portions = any(other != name and split_phase(other)[0] == lasting for other in others)
    # A look says "turned off" of what is broken, too; nothing in this world is repaired.
    new += [state for state in known if state == BROKEN and state not in new]
    if not any(map(_is_reading, new)) and (phase == _phase_in(known) or two_portions):
        new += filter(_is_reading, known)
    if new:
        belief["flags"][lasting] = ", ".join(new)
    else:
        belief["flags"].pop(lasting, None)


def note_reading(belief: Belief, name: str, reading: str) -> None:
    """Write down a measured temperature; the thermometer says nothing else of the thing."""
    lasting = split_phase(name)[0]
    known = [state for state in states_of(belief, lasting) if not _is_reading(state)]
    belief["flags"][lasting] = ", ".join([*known, reading])


def names_before(belief: Belief, name: str) -> list[str]:
    """Other names under which the same substance has been seen: its other phases."""
    lasting = split_phase(name)[0]
    return [old for old in belief["last_seen"] if split_phase(old)[0] == lasting and old != name]


def states_of(belief: Belief, name: str) -> list[str]:
    """Everything flagged of a thing, its phase or switch first, a temperature last."""
    lasting = split_phase(name)[0]
    text = belief["flags"].get(lasting)
    if text is None:
        # Goals are spelled in lower case, "unknown substance B" is not.
        spelled = (key for key in belief["flags"] if key.lower() == lasting)
        text = belief["flags"].get(next(spelled, ""), "")
    return text.split(", ") if text else []


def phase_of(belief: Belief, name: str) -> str:
    """The phase a substance was last seen in; empty while it goes by its plain name."""
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
    """Write down that something happened."""
    belief["events"].append(Event(kind=kind, thing=thing))


def events(belief: Belief, kind: str) -> list[str]:
    """What one kind of event was about, in order."""
    return [event["thing"] for event in belief["events"] if event["kind"] == kind]
