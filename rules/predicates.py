"""Belief predicates: the words in which preconditions and effects are written.

Evaluation is three-valued. ``None`` means that the belief does not tell: arbitration treats
that as a possible conflict (soft), never as a violation (hard).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from vocabulary.belief import Belief, kind_of

Truth = bool | None


class Predicate(NamedTuple):
    """A parsed predicate: ``not at(place)`` -> (False, "at", ("place",))."""

    positive: bool
    name: str
    arguments: tuple[str, ...]


class World(NamedTuple):
    """Static knowledge that predicates may use besides the belief."""

    affordances: Mapping[str, frozenset[str]]
    contains: Mapping[str, frozenset[str]]
    built_together: Sequence[frozenset[str]] = ()


_FORM = re.compile(r"^(not )?(\w+)(?:\(([^()]*)\))?$")


@cache
def parse_predicate(text: str) -> Predicate:
    """Read a predicate; raises ValueError when the text is not one."""
    found = _FORM.match(text.strip())
    if not found:
        raise ValueError(
            f"'{text}' is not a predicate such as 'at(place)' or 'not holding(object)'"
        )
    arguments = tuple(part.strip() for part in (found[3] or "").split(",") if part.strip())
    return Predicate(found[1] is None, found[2], arguments)


def _at(belief: Belief, world: World, place: str) -> Truth:
    """Another place may stand at this very spot; only a look around rules that out."""
    here = belief["location"]
    if place == here or place in belief["reachable"]:
        return True
    if here is None or here in belief["spots"]:
        return False
    together = {kind_of(here), kind_of(place)}
    return None if any(together <= unit for unit in world.built_together) else False


def _door(belief: Belief, place: str, door: str) -> Truth:
    """Once its contents were seen without a door being mentioned, a place has none."""
    if place in belief["containers"]:
        return belief["containers"][place] == door
    return False if place in belief["searched"] else None


def _accessible(belief: Belief, _: World, place: str) -> Truth:
    if place in belief["containers"]:
        return belief["containers"][place] == "open"
    return True if place in belief["searched"] else None


def _in(belief: Belief, _: World, thing: str, place: str) -> Truth:
    if belief["last_seen"].get(thing) == place:
        return True
    return False if place in belief["searched"] or thing in belief["holding"] else None


def _here(belief: Belief, world: World, thing: str) -> Truth:
    """In view at this spot. A thing never seen may still be somewhere around here."""
    place = belief["last_seen"].get(thing)
    if place is not None:
        return _at(belief, world, place)
    return False if thing in belief["holding"] or belief["location"] is None else None


def _place(belief: Belief, _: World, place: str) -> Truth:
    return place in belief["places"]


def _can_contain(_: Belief, world: World, place: str, thing: str) -> Truth:
    return kind_of(thing) in world.contains.get(kind_of(place), frozenset())


def _state(belief: Belief, _: World, thing: str, state: str) -> Truth:
    return belief["flags"][thing] == state if thing in belief["flags"] else None


# name -> (number of arguments, evaluation). Affordances are predicates of their own name.
PREDICATES: dict[str, tuple[int, Callable[..., Truth]]] = {
    "at": (1, _at),
    "place": (1, _place),
    "holding": (1, lambda b, _, thing: thing in b["holding"]),
    "in_inventory": (1, lambda b, _, thing: thing in b["holding"]),
    "hand_empty": (0, lambda b, _: not b["holding"]),
    "open": (1, lambda b, _, place: _door(b, place, "open")),
    "closed": (1, lambda b, _, place: _door(b, place, "closed")),
    "accessible": (1, _accessible),
    "in": (2, _in),
    "here": (1, _here),
    "at_hand": (1, lambda b, w, thing: thing in b["holding"] or _at(b, w, thing)),
    "kind": (2, lambda b, _, thing, kind: kind_of(thing) == kind),
    "can_contain": (2, _can_contain),
    "state": (2, _state),
    "here_closed": (0, lambda b, _: b["containers"].get(b["location"] or "") == "closed"),
}  # fmt: skip

# Conditions that only `situations` may use; the manual supplies their truth.
SITUATIONAL = {"last_failed"}


def evaluate(
    predicate: Predicate, belief: Belief, world: World, bindings: Mapping[str, str]
) -> Truth:
    """Truth of a predicate; arguments that are no parameter stand for themselves."""
    arguments = [bindings.get(name, name) for name in predicate.arguments]
    if predicate.name in world.affordances:
        truth: Truth = kind_of(arguments[0]) in world.affordances[predicate.name]
    else:
        truth = PREDICATES[predicate.name][1](belief, world, *arguments)
    return truth if truth is None or predicate.positive else not truth


# How a precondition reads in a prompt, a diagnosis or a corrective rule.
PHRASES: dict[str, str] = {
    "at": "be at {0}",
    "not at": "not be at {0} already",
    "place": "{0} exists in this room",
    "holding": "hold {0}",
    "in_inventory": "have {0} in the inventory",
    "hand_empty": "hands empty",
    "open": "{0} is open",
    "closed": "{0} is closed",
    "accessible": "{0} is open if it can be closed",
    "in": "{0} is in/on {1}",
    "here": "{0} is in view here",
    "at_hand": "{0} is here or in hand",
    "kind": "{0} is a {1}",
    "can_contain": "{0} takes such an object",
    "state": "{0} is {1}",
}


def phrase(predicate: Predicate, bindings: Mapping[str, str]) -> str:
    """A precondition in words, with names filled in where they are known."""
    names = [bindings.get(name, name) for name in predicate.arguments]
    key = predicate.name if predicate.positive else f"not {predicate.name}"
    if key in PHRASES:
        return PHRASES[key].format(*names)
    words = PHRASES.get(predicate.name, f"{{0}} is {predicate.name}").format(*names)
    return words if predicate.positive else f"not: {words}"
