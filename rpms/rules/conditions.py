"""The words in which `serves` says when an action serves: they speak of the goal and the belief.

A predicate of Tier 3 can be undecided; a condition is not: what is unknown does not hold. The words
here are those that a predicate cannot express, because they look at the goal, at the sub-goal, at
what was just played or at more than one thing. Worlds bring their own notions as data: affordances
(`heater(place)`), categories, and `terms`, which name a choice of conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from rpms.rules.manual import Manual
from rpms.rules.predicates import ARGUMENT, Predicate, evaluate, parse_predicate
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.naming import is_a, refers_to

Bindings = Mapping[str, str]

# In a condition: the goal's own object, and where it belongs.
OBJECT, DESTINATION = "$object", "$destination"


class Situation(NamedTuple):
    """All that judging an action may look at.

    ``vain`` holds the actions played since the belief last changed: they changed nothing, and
    nothing has changed for them since. ``circled`` holds those played in this very belief before:
    whatever they changed, the way from there led back here.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    vain: Sequence[str] = ()
    circled: Collection[str] = ()


def holds(now: Situation, predicate: Predicate, names: Bindings) -> bool:
    """Whether a condition is known to hold; what is unknown does not."""
    bound = {OBJECT: now.goal["object"], DESTINATION: now.goal["destination"], **names}
    arguments = [_fill_in(argument, bound) for argument in predicate.arguments]
    if predicate.name in now.manual.domain.terms:
        inner = {ARGUMENT: arguments[0]} if arguments else {}
        choices = now.manual.domain.terms[predicate.name]
        met = any(all(holds(now, parse_predicate(t), inner) for t in choice) for choice in choices)
        return met == predicate.positive
    if predicate.name in WORDS:
        return WORDS[predicate.name][1](now, *arguments) == predicate.positive
    return evaluate(predicate, now.belief, now.manual.world, bound) is True


def _fill_in(argument: str, names: Bindings) -> str:
    """A parameter or `$object` becomes a name; `$object` may also stand within an argument."""
    if argument in names:
        return names[argument]
    return argument.replace(OBJECT, names[OBJECT])


def _targeted(now: Situation, name: str) -> bool:
    """The sub-goal names it, or the kind of thing it is."""
    text = f" {now.sub_goal['target'].lower()} "
    return any(
        re.search(rf"(?<![\w-]){re.escape(word.lower())}(?! \d|[\w-])", text)
        for word in {name, kind_of(name)}
    )


def _is_object(now: Situation, name: str) -> bool:
    """The goal's object, whatever state it is in: `liquid tin`, or `ice` where it is water."""
    return refers_to(name, now.goal["object"]) or _has_category(now, name, now.goal["object"])


def mentioned(now: Situation, words: str) -> bool:
    """The task's own sentence says it."""
    return f" {words} " in re.sub(r"[.,'()]", " ", f" {now.goal['sentence']} ")


def _around(belief: Belief, name: str) -> Iterator[str]:
    """What a thing is in, and what that is in, from the inside out."""
    passed = {name}
    here = belief["last_seen"].get(name)
    while here is not None and here not in passed:
        passed.add(here)
        yield here
        here = belief["last_seen"].get(here)


def _shared_spot(now: Situation) -> bool:
    """Another place was found at this spot, and what else is here has not been looked at."""
    here = now.belief["location"]
    return bool(now.belief["reachable"]) and here not in now.belief["spots"]


def _has_category(now: Situation, name: str, category: str) -> bool:
    """One of the kinds listed under this name: a category, or a property of Tier 3."""
    listed = now.manual.domain.categories.get(category, ())
    kinds = now.manual.world.affordances.get(category) or frozenset(listed)
    return is_a(name, kinds) is True


def _is(now: Situation, name: str, condition: str) -> bool:
    """Whether a condition of one argument holds of a thing."""
    return holds(now, Predicate(True, condition, (ARGUMENT,)), {ARGUMENT: name})


def _some(now: Situation, condition: str) -> bool:
    """Some thing that is carried or was seen is so."""
    known = {*now.belief["holding"], *now.belief["visible"], *now.belief["last_seen"]}
    return any(_is(now, name, condition) for name in known)


def _inside(now: Situation, name: str, condition: str) -> bool:
    """What it is in or on is so: `inside(thing, heater)`."""
    return any(_is(now, place, condition) for place in _around(now.belief, name))


def _contains(now: Situation, name: str, condition: str) -> bool:
    """Something that was seen in it, or in something in it, is so."""
    inner = (thing for thing in now.belief["last_seen"] if name in _around(now.belief, thing))
    return any(_is(now, thing, condition) for thing in inner)


def _shows(now: Situation, place: str, condition: str) -> bool:
    """Something that was seen at this place is so."""
    return any(_is(now, thing, condition) for thing in now.belief["spots"].get(place, []))


def _foremost(now: Situation, name: str, category: str) -> bool:
    """Of the kinds in view that a category lists in order, the first: the oldest, the smallest."""
    kinds = now.manual.domain.categories.get(category, [])
    ranks = {
        seen: next((n for n, kind in enumerate(kinds) if refers_to(seen, kind)), len(kinds))
        for seen in now.belief["visible"]
    }
    return ranks.get(name, len(kinds)) < len(kinds) and ranks[name] == min(ranks.values())


def _record(now: Situation, name: str) -> str:
    """What the belief has on record of a thing; empty if there is nothing."""
    flags = now.belief["flags"]
    if name in flags:
        return flags[name]
    return next((flags[key] for key in flags if refers_to(name, key)), "")


def _noted(now: Situation, name: str, what: str) -> bool:
    """The belief has this state of a thing on record.

    The end of an entry is enough (`bottom of the plane`), and `*` asks for any.
    """
    text = _record(now, name)
    return bool(text) if what == "*" else any(_ends(one, what) for one in text.split(", "))


def _ends(text: str, what: str) -> bool:
    return f" {text}".endswith(f" {what}")


def _event(now: Situation, kind: str, what: str) -> bool:
    """It happened: the thing was chosen, the ingredient was named."""
    return any(e["kind"] == kind and _ends(e["thing"], what) for e in now.belief["events"])


def _called_for(now: Situation, name: str) -> bool:
    """Of the choices that the sub-goal gives a limit each, what was read calls for this one.

    `red box (above 50.0 degrees celsius)`: the unit says which number on record of the goal's
    object is to be compared.
    """
    choice = re.search(
        rf"(?<![\w-]){re.escape(name.lower())} \((above|below) (-?[\d.]+) ([^()]+)\)",
        now.sub_goal["target"].lower(),
    )
    if choice is None:
        return False
    read = re.search(rf"(-?[\d.]+) {re.escape(choice[3])}", _record(now, now.goal["object"]))
    return read is not None and (float(read[1]) > float(choice[2])) == (choice[1] == "above")


def _reads(now: Situation, name: str, pick: Callable[[list[int]], int]) -> bool:
    """Of two or more things like the goal's object that a number is on record of, it is the one."""
    found = {
        key: int(number[0])
        for key, text in now.belief["flags"].items()
        if refers_to(key, now.goal["object"]) and (number := re.search(r"\d+", text))
    }
    numbers = list(found.values())
    return name in found and len(set(numbers)) == len(numbers) > 1 and found[name] == pick(numbers)


def _single(now: Situation, name: str) -> bool:
    """No other thing at hand goes by the same name, so the name can be used."""
    return [*now.belief["visible"], *now.belief["holding"]].count(name) < 2


# The words whose last argument is another condition.
ABOUT_CONDITIONS = {"some", "inside", "contains", "shows"}

# name -> (number of arguments, evaluation).
WORDS: dict[str, tuple[int, Callable[..., bool]]] = {
    "targeted": (1, _targeted),
    "goal_object": (1, _is_object),
    "mentioned": (1, mentioned),
    "unsearched": (1, lambda now, name: name not in now.belief["searched"]),
    "in_view": (1, lambda now, name: name in now.belief["visible"]),
    "shared_spot": (0, _shared_spot),
    "single": (1, _single),
    "called": (2, lambda now, name, word: word in name.lower().split()),
    "empty": (1, lambda now, name: name not in now.belief["last_seen"].values()),
    "noted": (2, _noted),
    "event": (2, _event),
    "called_for": (1, _called_for),
    "reads_lowest": (1, lambda now, name: _reads(now, name, min)),
    "reads_highest": (1, lambda now, name: _reads(now, name, max)),
    "of_category": (2, _has_category),
    "foremost": (2, _foremost),
    # What was just played changed nothing: time to do the other of two things.
    "after": (1, lambda now, verb: bool(now.vain) and now.vain[-1].startswith(verb)),
    # These ask whether another condition holds of some thing.
    "some": (1, _some),
    "inside": (2, _inside),
    "contains": (2, _contains),
    "shows": (2, _shows),
}
