"""Things in ScienceWorld: what the manual's tables say of them, and what was observed.

Heaters, coolers and procedures are written once, in the YAML of the rule manual. The rules reason
over it; the belief and the sub-goals need only a few of its tables, as plain data.

A substance is renamed as it changes (``tin``, ``liquid tin``, ``gaseous tin``; ``ice``, ``water``,
``steam``), so its phase is kept in the belief's flags under the one name that stays. What happened
is kept beside it as events, because the pointer into the procedure has to follow from the belief
alone.
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

FOLDER = Path(__file__).parents[2] / "rules" / "scienceworld"

UNKNOWN_COMMAND = "No known action matches that input."
INVENTORY = "inventory"
# Two flags that name no thing.
TASK = "task"  # the description, from the opening text
CARRYING = INVENTORY  # UNSURE while no text can have told what is carried
UNSURE = "unsure"
UNLISTED = "unlisted"  # what was carried from the start was never listed, the rest is known
# Added to a substance: what it was called before its phase changed.
WAS = " was"
# Kinds of events: what was focused on, in order, the ingredients that the recipe named, and the
# pots that seeds were put into, in order.
FOCUS, RECIPE, SOWN = "focus", "recipe", "sown"

# What is noted of something that a liquid, or whatever else, was poured into.
POURED = "poured into"

_PHASES = ("solid", "liquid", "gas")
_PHASE = re.compile(r"(solid|liquid|gaseous) (.+)")


@cache
def _tier(name: str) -> dict[str, Any]:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.load(text, Loader=YAML_LOADER)
    return data


@cache
def kinds(*names: str) -> frozenset[str]:
    """The kinds of things under some affordances or categories of the manual."""
    return frozenset().union(*(_listed()[name] for name in names))


def kinds_if_any(name: str) -> frozenset[str]:
    """The same for a word that need not be one of them."""
    return _listed().get(name, frozenset())


@cache
def _listed() -> dict[str, frozenset[str]]:
    tables = {**_tier("domain")["categories"], **_tier("environment")["affordances"]}
    return {name: frozenset(members) for name, members in tables.items()}


@cache
def renamed() -> dict[str, str]:
    """What a substance is called by nature, by the name it goes by: ``ice``, ``solid water``."""
    return dict(_tier("environment")["renamed"])


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
    """Write down what is said of a thing now; a temperature stays until the next reading.

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
    if not any(_is_reading(state) for state in new):
        new += [state for state in known if _is_reading(state)]
    if new:
        belief["flags"][lasting] = ", ".join(new)
    else:
        belief["flags"].pop(lasting, None)


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
    return next((state for state in states_of(belief, name) if state in _PHASES), "")


def temperature_of(belief: Belief, name: str) -> float | None:
    """The last reading for a thing, in degrees celsius."""
    reading = next((state for state in states_of(belief, name) if _is_reading(state)), None)
    return float(reading.split()[0]) if reading else None


def _is_reading(state: str) -> bool:
    return state.endswith(" degrees celsius")


def add_event(belief: Belief, kind: str, thing: str) -> None:
    """Write down that something happened."""
    belief["events"].append(Event(kind=kind, thing=thing))


def events(belief: Belief, kind: str) -> list[str]:
    """What one kind of event was about, in order."""
    return [event["thing"] for event in belief["events"] if event["kind"] == kind]
