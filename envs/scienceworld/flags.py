"""The belief's flags in ScienceWorld: what was observed of a thing, under its lasting name.

A substance is renamed as it changes (``tin``, ``liquid tin``, ``gaseous tin``; ``ice``, ``water``,
``steam``), so its phase is kept under the one name that stays. A few keys do not name things: they
hold what happened, because the pointer into the procedure has to follow from the belief alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rpms.envs.scienceworld.naming import split_phase
from rpms.vocabulary.belief import Belief

# What happened, as opposed to what state a thing is in.
TASK = "task"  # the description, from the opening text
FOCUS = "focus"  # everything focused on, in order
RECIPE = "recipe says"  # the ingredients it named
MENU = "menu"  # the choices of an ambiguous request that waits for a number
CARRYING = "inventory"  # UNSURE while no text can have told what is carried
EVENTS = (TASK, FOCUS, RECIPE, MENU, CARRYING)
UNSURE = "unsure"
# Added to a substance: what it was called before its phase changed.
WAS = " was"

_PHASES = ("solid", "liquid", "gas")
_SPLIT = "; "


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
    told = [state for state in new if not _is_reading(state)]
    if not told:
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
    found = next((state for state in states_of(belief, name) if _is_reading(state)), None)
    return float(found.split()[0]) if found else None


def _is_reading(state: str) -> bool:
    return state.endswith(" degrees celsius")


def add_event(belief: Belief, key: str, what: str) -> None:
    """Append to the list that an event key holds."""
    belief["flags"][key] = _SPLIT.join([*events(belief, key), what])


def events(belief: Belief, key: str) -> list[str]:
    """The list that an event key holds."""
    text = belief["flags"].get(key, "")
    return text.split(_SPLIT) if text else []
