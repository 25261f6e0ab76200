"""Conditions of the procedure: when an action pattern of the domain tier applies.

A predicate of Tier 3 can be undecided; a condition cannot: what is unknown does not hold. ``WORDS``
are the conditions that a predicate cannot express, because they look at the goal, at the sub-goal,
at the last action or at more than one thing. A world adds its own notions as data: affordances
(`heater(place)`), categories, and `terms`, which name a choice of conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rpms.rules.manual import Manual
from rpms.rules.predicates import ARGUMENT, Predicate, around, evaluate, parse_predicate
from rpms.rules.schema import Locality
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.goal import GoalSpec, SubGoal, Target
from rpms.vocabulary.naming import is_a, refers_to, same_thing

# In a condition: the goal's own object, and where it belongs.
OBJECT, DESTINATION = "$object", "$destination"


class DecisionPoint(NamedTuple):
    """All that judging an action may look at.

    ``no_effect`` holds the actions played since the belief last changed: they changed nothing, and
    nothing has changed for them since; those of them that the world refused are ``refused``.
    ``repeated_here`` holds those played in this very belief before: whatever they changed, the way
    from there led back here. With ``check_answers`` an irreversible answer is judged too, by the
    procedure's own choice; without it only feasibility is.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    no_effect: Sequence[str] = ()
    repeated_here: Collection[str] = ()
    refused: Collection[str] = ()
    check_answers: bool = False


def sought_kind(point: DecisionPoint, about: str) -> str:
    """What is looked for: a field of the goal, the sub-goal's target, or a category itself."""
    target = point.sub_goal.get("about", Target()).get("object", "") or point.sub_goal["target"]
    goal = {"object": point.goal["object"], "destination": point.goal["destination"]}
    return {**goal, "target": target}.get(about, about)


def localities_of(point: DecisionPoint, sought: str) -> list[Locality]:
    """The lines of this goal's manual that say where a thing is."""
    manual = point.manual
    return [line for _, line in manual.localities(point.goal) if manual.holds_kind(line, sought)]


def rank(name: str, places: Sequence[str]) -> int:
    """How early a list of places has the kind of this one: a `large cupboard` is a cupboard."""
    kinds = (frozenset({place}) for place in places)
    return next((n for n, kind in enumerate(kinds) if is_a(name, kind)), len(places))


def holds(point: DecisionPoint, predicate: Predicate, names: Mapping[str, str]) -> bool:
    """Whether a condition is known to hold; what is unknown does not."""
    bound = {OBJECT: point.goal["object"], DESTINATION: point.goal["destination"], **names}
    # A parameter or `$object` becomes a name; `$object` may also stand within an argument.
    arguments = [bound.get(a, a.replace(OBJECT, bound[OBJECT])) for a in predicate.arguments]
    if predicate.name in point.manual.domain.terms:
        inner = {ARGUMENT: arguments[0]} if arguments else {}
        choices = point.manual.domain.terms[predicate.name]
        met = any(
            all(holds(point, parse_predicate(t), inner) for t in choice) for choice in choices
        )
        return met == predicate.positive
    if predicate.name in WORDS:
        return WORDS[predicate.name][1](point, *arguments) == predicate.positive
    return evaluate(predicate, point.belief, point.manual.facts, bound) is True


def _targeted(point: DecisionPoint, name: str) -> bool:
    """The sub-goal names it, or the kind of thing it is."""
    about = point.sub_goal.get("about") or Target(object=point.sub_goal["target"])
    named = [about.get("object", ""), about.get("place", ""), about.get("which", "")]
    named += about.get("limits", {})
    return any(_within(word, text) for word in {name, kind_of(name)} for text in named)


def _within(name: str, text: str) -> bool:
    """Whether a text has all words of a name in a row; `mug 1` is not the kind `mug`."""
    run, words = name.lower().split(), [*text.lower().split(), ""]
    return any(
        words[at : at + len(run)] == run and not words[at + len(run)].isdigit()
        for at in range(len(words) - len(run))
    )


def _is_object(point: DecisionPoint, name: str) -> bool:
    """The goal's object, whatever state it is in: `liquid tin`, or `ice` where it is water.

    A goal may name it by a state that it had: `solid unknown substance B` melts.
    """
    thing = point.goal["object"]
    first, _, lasting = thing.partition(" ")
    if lasting and first in point.manual.facts.wording.anything and refers_to(name, lasting):
        return True
    return refers_to(name, thing) or _has_category(point, name, thing)


def mentioned(point: DecisionPoint, words: str) -> bool:
    """The task's own sentence says it."""
    return f" {words} " in re.sub(r"[.,'()]", " ", f" {point.goal['sentence']} ")


def _stands_for(point: DecisionPoint, name: str, finding: str) -> bool:
    """The task names it as the answer in case of this finding."""
    phrase = point.manual.domain.stands_for.format(name=name, finding=finding)
    return bool(phrase) and f" {phrase}" in point.goal["sentence"]


def _shared_spot(point: DecisionPoint) -> bool:
    """Another place was found at this spot, and what else is here has not been looked at."""
    here = point.belief["location"]
    return bool(point.belief["reachable"]) and here not in point.belief["spots"]


def _has_category(point: DecisionPoint, name: str, category: str) -> bool:
    """One of the kinds listed under this name: a category, or a property of Tier 3."""
    listed = point.manual.domain.categories.get(category, ())
    kinds = point.manual.facts.affordances.get(category) or frozenset(listed)
    return is_a(name, kinds) is True


def _is(point: DecisionPoint, name: str, condition: str) -> bool:
    """Whether a condition of one argument holds of a thing."""
    return holds(point, Predicate(True, condition, (ARGUMENT,)), {ARGUMENT: name})


def _some(point: DecisionPoint, condition: str) -> bool:
    """Some thing that is carried or was seen is so."""
    known = {*point.belief["holding"], *point.belief["visible"], *point.belief["last_seen"]}
    return any(_is(point, name, condition) for name in known)


def _inside(point: DecisionPoint, name: str, condition: str) -> bool:
    """What it is in or on is so: `inside(thing, heater)`."""
    return any(_is(point, place, condition) for place in around(point.belief, name))


def _contains(point: DecisionPoint, name: str, condition: str) -> bool:
    """Something that was seen in it, or in something in it, is so."""
    inner = (thing for thing in point.belief["last_seen"] if name in around(point.belief, thing))
    return any(_is(point, thing, condition) for thing in inner)


def _shows(point: DecisionPoint, place: str, condition: str) -> bool:
    """Something that was seen at this place is so."""
    return any(_is(point, thing, condition) for thing in point.belief["spots"].get(place, []))


def _foremost(point: DecisionPoint, name: str, category: str) -> bool:
    """Of the kinds in view that a category lists in order, the first: the oldest, the smallest."""
    kinds = point.manual.domain.categories.get(category, [])
    ranks = {
        seen: next((n for n, kind in enumerate(kinds) if refers_to(seen, kind)), len(kinds))
        for seen in point.belief["visible"]
    }
    return ranks.get(name, len(kinds)) < len(kinds) and ranks[name] == min(ranks.values())


def _record(point: DecisionPoint, name: str) -> str:
    """What the belief has on record of a thing; empty if there is nothing.

    A plane with a water surface is no water: a name says at its end what a thing is.
    """
    flags = point.belief["flags"]
    if name in flags:
        return flags[name]
    return next((flags[k] for k in flags if same_thing(k, name) or same_thing(name, k)), "")


def _noted(point: DecisionPoint, name: str, what: str) -> bool:
    """The belief has this state of a thing on record.

    The end of an entry is enough (`bottom of the plane`), and `*` asks for any.
    """
    text = _record(point, name)
    return bool(text) if what == "*" else any(_ends(state, what) for state in text.split(", "))


def _ends(text: str, what: str) -> bool:
    return f" {text}".endswith(f" {what}")


def _event(point: DecisionPoint, kind: str, what: str) -> bool:
    """It happened: the thing was chosen, the ingredient was named."""
    return any(e["kind"] == kind and _ends(e["thing"], what) for e in point.belief["events"])


def _event_of_kind(point: DecisionPoint, kind: str, name: str) -> bool:
    """It happened to the kind of thing that this is: the recipe says apple, this is a red apple."""
    things = frozenset(e["thing"] for e in point.belief["events"] if e["kind"] == kind)
    return is_a(name, things) is True


def _called_for(point: DecisionPoint, name: str) -> bool:
    """Of the choices that the sub-goal gives a limit each, what was read calls for this one.

    The unit says which number on record of the goal's object is to be compared.
    """
    limit = point.sub_goal.get("about", Target()).get("limits", {}).get(name.lower())
    if limit is None:
        return False
    side, number, unit = limit
    read = _reading(point, unit)
    return read is not None and _side(read, number) == side


def _side(read: float, number: float) -> str:
    """On which side of a limit a reading is; at the limit itself on neither."""
    return "above" if read > number else "below" if read < number else "exactly"


def _at_named(point: DecisionPoint) -> bool:
    """The agent is at the place that the sub-goal names, or it names none."""
    named = point.sub_goal.get("about", Target()).get("place", "")
    return named in ("", point.belief["location"])


def _undecided(point: DecisionPoint) -> bool:
    """The sub-goal's choices have limits, and no reading on record is on either side of them."""
    limits = point.sub_goal.get("about", Target()).get("limits", {})
    return bool(limits) and not any(_called_for(point, name) for name in limits)


def _reading(point: DecisionPoint, unit: str) -> float | None:
    """The number in this unit that is on record of the goal's object."""
    read = re.search(rf"(-?[\d.]+) {re.escape(unit)}", _record(point, point.goal["object"]))
    return float(read[1]) if read else None


def compared(point: DecisionPoint) -> str:
    """In words, what a choice by numbers rests on: a reading and its limit, or several readings."""
    for _, number, unit in point.sub_goal.get("about", Target()).get("limits", {}).values():
        if (read := _reading(point, unit)) is not None:
            return f"{read:g} is {_side(read, number)} {number:g} {unit}"
    return ", ".join(f"{number} on {name}" for name, number in readings_of(point).items())


def readings_of(point: DecisionPoint) -> dict[str, int]:
    """The numbers on record of things like the goal's object."""
    return {
        key: int(number[0])
        for key, text in point.belief["flags"].items()
        if refers_to(key, point.goal["object"]) and (number := re.search(r"\d+", text))
    }


def _reads(point: DecisionPoint, name: str, pick: Callable[[list[int]], int]) -> bool:
    """Of two or more readings, all unlike, its is the one."""
    readings = readings_of(point)
    numbers = list(readings.values())
    unlike = len(set(numbers)) == len(numbers) > 1
    return unlike and name in readings and readings[name] == pick(numbers)


def _unsearched(point: DecisionPoint, name: str) -> bool:
    return name not in point.belief["searched"]


def _empty(point: DecisionPoint, name: str) -> bool:
    return name not in point.belief["last_seen"].values()


def _single(point: DecisionPoint, name: str) -> bool:
    """No other thing at hand goes by the same name, so the name can be used."""
    return [*point.belief["visible"], *point.belief["holding"]].count(name) < 2


def _may_hold(point: DecisionPoint, name: str) -> bool:
    """A container is worth opening for what the step looks for.

    It is one of those that the manual lists for such things, in a room where they are or that the
    step names. Of what the manual says nothing about, any container may hold it.
    """
    here = point.belief["location"] or ""
    localities = localities_of(point, sought_kind(point, "target"))
    named = point.sub_goal.get("about", Target()).get("place", "")
    if localities and not any(rank(name, line.inside) < len(line.inside) for line in localities):
        return False
    rooms = [*(place for line in localities for place in line.places)]
    if named in point.manual.facts.connected:
        return here == named or here in rooms
    return here in rooms or not rooms


# The words whose last argument is another condition.
ABOUT_CONDITIONS = {"some", "inside", "contains", "shows"}

# name -> (number of arguments, evaluation, how it reads).
WORDS: dict[str, tuple[int, Callable[..., bool], str]] = {
    "targeted": (1, _targeted, "the step is about {0}"),
    "goal_object": (1, _is_object, "{0} is what the task is about"),
    "mentioned": (1, mentioned, "the task says {0}"),
    "stands_for": (2, _stands_for, "{0} is the answer in case of {1}"),
    "unsearched": (1, _unsearched, "{0} is unsearched"),
    "in_view": (1, lambda point, name: name in point.belief["visible"], "{0} is in view"),
    "shared_spot": (0, _shared_spot, "another place is at this spot"),
    "single": (1, _single, "nothing else has the name of {0}"),
    "called": (2, lambda point, name, word: word in name.lower().split(), "{0} is called {1}"),
    "empty": (1, _empty, "{0} is empty"),
    "noted": (2, _noted, "{0} is known as {1}"),
    "event": (2, _event, "{1} is on record: {0}"),
    "event_of_kind": (2, _event_of_kind, "such as {1} is on record: {0}"),
    "called_for": (1, _called_for, "the reading calls for {0}"),
    "at_named": (0, _at_named, "this is the place that the step names"),
    "undecided": (0, _undecided, "no reading decides"),
    "may_hold": (1, _may_hold, "{0} may hold what is looked for"),
    "reads_lowest": (1, partial(_reads, pick=min), "{0} has the lowest number"),
    "reads_highest": (1, partial(_reads, pick=max), "{0} has the highest number"),
    "of_category": (2, _has_category, "{0} is one of the {1}"),
    "foremost": (2, _foremost, "{0} is the first in view of the {1}"),
    # What was just played changed nothing: time to do the other of two things.
    "after": (
        1, lambda point, verb: bool(point.no_effect) and point.no_effect[-1].startswith(verb),
        "the last action was {0}",
    ),
    # These ask whether another condition holds of some thing.
    "some": (1, _some, "there is something, and {0}"),
    "inside": (2, _inside, "{0} is in something, and {1}"),
    "contains": (2, _contains, "{0} holds something, and {1}"),
    "shows": (2, _shows, "something was seen in {0}, and {1}"),
}  # fmt: skip
