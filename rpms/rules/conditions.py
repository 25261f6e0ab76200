"""Conditions of the procedure: when an action pattern of the domain tier applies.

A predicate of Tier 3 can be undecided; a condition cannot: the unknown does not hold. Declared here
are the conditions that a predicate cannot express, because they read the goal, the sub-goal, the
last action or more than one thing. A world adds its own as data: affordances (`heater(place)`),
categories, and `terms`, which name a choice of conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rpms.rules.manual import Manual
from rpms.rules.predicates import (
    ARGUMENT,
    CONDITIONS,
    Condition,
    Predicate,
    declare,
    evaluate,
    parse_predicate,
)
from rpms.rules.schema import Locality
from rpms.rules.things import places_around
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.goal import GoalSpec, SubGoal, Target
from rpms.vocabulary.naming import is_a, refers_to, same_thing

# In a condition: the goal's object and destination.
OBJECT, DESTINATION = "$object", "$destination"


class DecisionPoint(NamedTuple):
    """Everything that the judgement of an action may read.

    ``no_effect`` holds the actions since the belief last changed: they had no effect. Those of them
    that the environment rejected are ``rejected``. ``repeated_here`` holds the actions taken in
    this same belief before: the path after them led back here. With ``check_answers`` an
    irreversible answer is compared with the procedure's choice; without it only feasibility is
    judged.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    no_effect: Sequence[str] = ()
    repeated_here: Collection[str] = ()
    rejected: Collection[str] = ()
    check_answers: bool = False


def sought_kind(point: DecisionPoint, reference: str) -> str:
    """The kind of thing to look for: a field of the goal, the sub-goal's target, or a category."""
    target = point.sub_goal.get("about", Target()).get("object", "") or point.sub_goal["target"]
    goal = {"object": point.goal["object"], "destination": point.goal["destination"]}
    return {**goal, "target": target}.get(reference, reference)


def localities_of(point: DecisionPoint, sought: str) -> list[Locality]:
    """The manual's lines for this goal that say where a thing is."""
    manual = point.manual
    return [line for _, line in manual.localities(point.goal) if manual.holds_kind(line, sought)]


def rank(name: str, places: Sequence[str]) -> int:
    """The index of this place's kind in a list of places: a `large cupboard` is a cupboard."""
    kinds = (frozenset({place}) for place in places)
    return next((n for n, kind in enumerate(kinds) if is_a(name, kind)), len(places))


def holds(point: DecisionPoint, predicate: Predicate, names: Mapping[str, str]) -> bool:
    """Return whether a condition is known to hold."""
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
    condition = CONDITIONS.get(predicate.name)
    if condition is not None and condition.reads == "decision":
        return bool(condition.evaluate(point, *arguments)) == predicate.positive
    return evaluate(predicate, point.belief, point.manual.facts, bound) is True


def _targeted(point: DecisionPoint, name: str) -> bool:
    """The sub-goal names the thing or its kind."""
    target = point.sub_goal.get("about") or Target(object=point.sub_goal["target"])
    texts = [target.get("object", ""), target.get("place", ""), target.get("which", "")]
    texts += target.get("limits", {})
    return any(_within(word, text) for word in {name, kind_of(name)} for text in texts)


def _within(name: str, text: str) -> bool:
    """A text has all words of a name in a row; `mug 1` is not the kind `mug`."""
    target, words = name.lower().split(), [*text.lower().split(), ""]
    return any(
        words[start : start + len(target)] == target and not words[start + len(target)].isdigit()
        for start in range(len(words) - len(target))
    )


def _is_object(point: DecisionPoint, name: str) -> bool:
    """It is the goal's object in any state: `liquid tin`, or `ice` if the object is water.

    A goal may name an earlier state: `solid unknown substance B` melts.
    """
    thing = point.goal["object"]
    first, _, rest = thing.partition(" ")
    if rest and first in point.manual.facts.wording.anything and refers_to(name, rest):
        return True
    return refers_to(name, thing) or _has_category(point, name, thing)


def mentioned(point: DecisionPoint, words: str) -> bool:
    """The task sentence contains these words."""
    return f" {words} " in re.sub(r"[.,'()]", " ", f" {point.goal['sentence']} ")


def _stands_for(point: DecisionPoint, name: str, finding: str) -> bool:
    """The task names it as the answer for this finding."""
    phrase = point.manual.domain.stands_for.format(name=name, finding=finding)
    return bool(phrase) and f" {phrase}" in point.goal["sentence"]


def _shared_spot(point: DecisionPoint) -> bool:
    """Another place shares this spot, and the agent has not looked around here."""
    location = point.belief["location"]
    return bool(point.belief["reachable"]) and location not in point.belief["spots"]


def _has_category(point: DecisionPoint, name: str, category: str) -> bool:
    """It is of a kind listed under this category or Tier-3 affordance."""
    listed = point.manual.domain.categories.get(category, ())
    kinds = point.manual.facts.affordances.get(category) or frozenset(listed)
    return is_a(name, kinds) is True


def _is(point: DecisionPoint, name: str, condition: str) -> bool:
    """A condition of one argument holds of a thing."""
    return holds(point, Predicate(True, condition, (ARGUMENT,)), {ARGUMENT: name})


def _some(point: DecisionPoint, condition: str) -> bool:
    """The condition holds of something that is carried or was seen."""
    things = {*point.belief["holding"], *point.belief["visible"], *point.belief["last_seen"]}
    return any(_is(point, name, condition) for name in things)


def _contains(point: DecisionPoint, name: str, condition: str) -> bool:
    """The condition holds of something inside it, at any depth."""
    inner = (
        thing for thing in point.belief["last_seen"] if name in places_around(point.belief, thing)
    )
    return any(_is(point, thing, condition) for thing in inner)


def _foremost(point: DecisionPoint, name: str, category: str) -> bool:
    """It comes first, among the things in view, in the category's order: oldest, smallest."""
    kinds = point.manual.domain.categories.get(category, [])
    ranks = {
        seen: next((n for n, kind in enumerate(kinds) if refers_to(seen, kind)), len(kinds))
        for seen in point.belief["visible"]
    }
    return ranks.get(name, len(kinds)) < len(kinds) and ranks[name] == min(ranks.values())


def _record(point: DecisionPoint, name: str) -> str:
    """The states of a thing in the belief; empty if there are none.

    A plane with a water surface is not water: the end of a name says what a thing is.
    """
    flags = point.belief["flags"]
    if name in flags:
        return flags[name]
    return next((flags[k] for k in flags if same_thing(k, name) or same_thing(name, k)), "")


def _noted(point: DecisionPoint, name: str, what: str) -> bool:
    """The belief records this state of a thing.

    The end of an entry is enough (`bottom of the plane`), and `*` matches any state.
    """
    text = _record(point, name)
    return bool(text) if what == "*" else any(_ends(state, what) for state in text.split(", "))


def _ends(text: str, what: str) -> bool:
    return f" {text}".endswith(f" {what}")


def _event_of_kind(point: DecisionPoint, kind: str, name: str) -> bool:
    """An event is recorded for this kind of thing: the recipe says apple, this is a red apple."""
    things = frozenset(e["thing"] for e in point.belief["events"] if e["kind"] == kind)
    return is_a(name, things) is True


def _called_for(point: DecisionPoint, name: str) -> bool:
    """The reading selects this choice, of the choices that the sub-goal gives a limit each.

    The unit says which recorded number of the goal's object to compare.
    """
    limit = point.sub_goal.get("about", Target()).get("limits", {}).get(name.lower())
    if limit is None:
        return False
    side, number, unit = limit
    read = _reading(point, unit)
    return read is not None and _side(read, number) == side


def _side(read: float, number: float) -> str:
    """The side of the limit that a reading is on; neither at the limit itself."""
    return "above" if read > number else "below" if read < number else "exactly"


def _at_target_place(point: DecisionPoint) -> bool:
    """The agent is at the place that the sub-goal names, or the sub-goal names none."""
    place = point.sub_goal.get("about", Target()).get("place", "")
    return place in ("", point.belief["location"])


def _undecided(point: DecisionPoint) -> bool:
    """The sub-goal's choices have limits, and no recorded reading selects one of them."""
    limits = point.sub_goal.get("about", Target()).get("limits", {})
    return bool(limits) and not any(_called_for(point, name) for name in limits)


def _reading(point: DecisionPoint, unit: str) -> float | None:
    """The recorded number of the goal's object in this unit."""
    read = re.search(rf"(-?[\d.]+) {re.escape(unit)}", _record(point, point.goal["object"]))
    return float(read[1]) if read else None


def compared(point: DecisionPoint) -> str:
    """Word the numbers behind a choice: a reading and its limit, or several readings."""
    for _, number, unit in point.sub_goal.get("about", Target()).get("limits", {}).values():
        if (read := _reading(point, unit)) is not None:
            return f"{read:g} is {_side(read, number)} {number:g} {unit}"
    return ", ".join(f"{number} on {name}" for name, number in readings_of(point).items())


def readings_of(point: DecisionPoint) -> dict[str, int]:
    """The recorded numbers of things that the goal's object may refer to."""
    return {
        key: int(number[0])
        for key, text in point.belief["flags"].items()
        if refers_to(key, point.goal["object"]) and (number := re.search(r"\d+", text))
    }


def _reads(point: DecisionPoint, name: str, pick: Callable[[list[int]], int]) -> bool:
    """Its reading is the one picked from two or more different readings."""
    readings = readings_of(point)
    numbers = list(readings.values())
    unlike = len(set(numbers)) == len(numbers) > 1
    return unlike and name in readings and readings[name] == pick(numbers)


def _single(point: DecisionPoint, name: str) -> bool:
    """No other thing in view or held has the same name, so the name is unambiguous."""
    return [*point.belief["visible"], *point.belief["holding"]].count(name) < 2


def _may_hold(point: DecisionPoint, name: str) -> bool:
    """The container is worth opening for the thing that the step looks for.

    The manual lists it for such things, in a room where they are or that the step names. If the
    manual says nothing about the thing, any container may hold it.
    """
    location = point.belief["location"] or ""
    localities = localities_of(point, sought_kind(point, "target"))
    target_place = point.sub_goal.get("about", Target()).get("place", "")
    if localities and not any(rank(name, line.inside) < len(line.inside) for line in localities):
        return False
    rooms = [*(place for line in localities for place in line.places)]
    if target_place in point.manual.facts.connected:
        return location == target_place or location in rooms
    return location in rooms or not rooms


def _condition(name: str, arity: int, evaluate: Callable[..., bool], statement: str, **more: Any
               ) -> None:  # fmt: skip
    declare(Condition(name, arity, evaluate, statement, reads="decision", **more))


_condition("targeted", 1, _targeted, "the step is about {0}")
_condition("goal_object", 1, _is_object, "{0} is what the task is about")
_condition("mentioned", 1, mentioned, "the task says {0}")
_condition("stands_for", 2, _stands_for, "{0} is the answer in case of {1}")
_condition("unsearched", 1, lambda point, name: name not in point.belief["searched"],
           "{0} is unsearched")  # fmt: skip
_condition("in_view", 1, lambda point, name: name in point.belief["visible"], "{0} is in view")
_condition("shared_spot", 0, _shared_spot, "another place is at this spot")
_condition("single", 1, _single, "nothing else has the name of {0}")
_condition("called", 2, lambda point, name, word: word in name.lower().split(), "{0} is called {1}")
_condition("empty", 1, lambda point, name: name not in point.belief["last_seen"].values(),
           "{0} is empty")  # fmt: skip
_condition("noted", 2, _noted, "{0} is known as {1}")
_condition("event", 2, lambda point, kind, what: any(
    event["kind"] == kind and _ends(event["thing"], what) for event in point.belief["events"]
), "{1} is on record: {0}")  # fmt: skip
_condition("event_of_kind", 2, _event_of_kind, "such as {1} is on record: {0}")
_condition("called_for", 1, _called_for, "the reading calls for {0}")
_condition("at_named", 0, _at_target_place, "this is the place that the step names")
_condition("undecided", 0, _undecided, "no reading decides")
_condition("may_hold", 1, _may_hold, "{0} may hold what is looked for")
_condition("reads_lowest", 1, partial(_reads, pick=min), "{0} has the lowest number")
_condition("reads_highest", 1, partial(_reads, pick=max), "{0} has the highest number")
_condition("of_category", 2, _has_category, "{0} is one of the {1}")
_condition("foremost", 2, _foremost, "{0} is the first in view of the {1}")
# The last action had no effect: time to do the other of two things.
_condition("after", 1, lambda point, verb: "".join(point.no_effect[-1:]).startswith(verb),
           "the last action was {0}")  # fmt: skip
# These check another condition on some thing.
_condition("some", 1, _some, "there is something, and {0}", about_condition=True)
_condition("inside", 2, lambda point, name, condition: any(
    _is(point, place, condition) for place in places_around(point.belief, name)
), "{0} is in something, and {1}", about_condition=True)  # fmt: skip
_condition("contains", 2, _contains, "{0} holds something, and {1}", about_condition=True)
_condition("shows", 2, lambda point, place, condition: any(
    _is(point, thing, condition) for thing in point.belief["spots"].get(place, ())
), "something was seen in {0}, and {1}", about_condition=True)  # fmt: skip
