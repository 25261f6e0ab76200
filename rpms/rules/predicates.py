"""Belief predicates: preconditions and effects are written in them, and evaluated here.

Evaluation is three-valued. ``None`` means that the belief does not decide: arbitration treats that
as a possible conflict (soft), never as a violation (hard).

The functions read the belief's fields and know no particular world. A world's names for things, and
the predicates that it composes, are data in its Tier 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from rpms.rules.registry import CONDITIONS, Condition, declare, reads_values
from rpms.rules.scalars import INVALID, UNKNOWN, Special, as_number
from rpms.rules.terms import parse_term, split_arguments
from rpms.rules.values import EXACT, Scope, Texts, Tools, conjunction_of, value_of
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.naming import Truth, bare_name, find_name, is_a, same_thing, words_of
from rpms.vocabulary.output import with_article
from rpms.vocabulary.spelling import Strict

# The name of the argument in the choices of a composed predicate.
ARGUMENT = "thing"


class Predicate(NamedTuple):
    """A parsed predicate: ``not at(place)`` -> (False, "at", ("place",))."""

    positive: bool
    name: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        """The form in the YAML."""
        arguments = f"({', '.join(self.arguments)})" if self.arguments else ""
        return f"{'' if self.positive else 'not '}{self.name}{arguments}"

    def bind(self, names: Mapping[str, str]) -> Predicate:
        """Replace parameters by the names that they stand for."""
        return self._replace(arguments=tuple(names.get(a, a) for a in self.arguments))


class Wording(Strict, BaseModel):
    """A world's names and phrases that the predicates need.

    ``anything`` lists words that may stand for anything. ``truncated`` lists things that may be
    carried from the start although no text mentions them. ``also_called`` has other names that the
    environment accepts for a kind of thing. ``passages`` open and close but hold nothing;
    ``passages_to`` are the names of the passage to a place (``{0}``). ``phrases`` has the world's
    own statements for predicates, each with "is" or "are" ("{0} is next door"), from which the need
    ("{0} to be next door") is made. ``facts`` has such a statement for each state that is no
    adjective: ``sim missing`` -> ``the SIM card is missing``, with ``{0}`` for the thing; the key
    of its negation begins with "not".
    """

    anything: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    also_called: dict[str, list[str]] = {}
    passages: frozenset[str] = frozenset()
    passages_to: list[str] = []
    phrases: dict[str, str] = {}
    facts: dict[str, str] = {}


class StaticFacts(NamedTuple):
    """Static knowledge of a world that predicates use besides the belief."""

    affordances: Mapping[str, frozenset[str]]
    contains: Mapping[str, frozenset[str]]
    built_together: Sequence[frozenset[str]] = ()
    connected: Mapping[str, frozenset[str]] = {}
    predicates: Mapping[str, Sequence[Sequence[str]]] = {}
    wording: Wording = Wording()
    ruled_out: Mapping[str, frozenset[str]] = {}
    cannot_contain: Mapping[str, frozenset[str]] = {}
    alternatives: Sequence[frozenset[str]] = ()
    unmoved: bool = False
    tools: Tools = Tools({})


_FORM = re.compile(r"^(not )?(\w+)(?:\((.*)\))?$", re.DOTALL)


@cache
def parse_predicate(text: str) -> Predicate:
    """Read a predicate; raises ValueError when the text is not one."""
    form = _FORM.match(text.strip())
    try:
        arguments = split_arguments(form[3] or "") if form else []
        terms = [*map(parse_term, arguments)]
    except ValueError:
        form = None
    if not form or not all(term.head for term in terms):
        raise ValueError(
            f"'{text}' is not a predicate such as 'at(place)' or 'not holding(object)'"
        )
    return Predicate(form[1] is None, form[2], tuple(arguments))


def is_predicate(text: str) -> bool:
    """Return whether a text has the form of a predicate; people may also write plain words."""
    return _FORM.match(text.strip()) is not None


def unify(effect: Predicate, fact: Predicate, parameters: Collection[str]) -> dict[str, str] | None:
    """The parameter values under which an action's effect is the fact; None if there are none.

    Plans are regressed by this step: from a need to an action that achieves it.
    """
    if (effect.positive, effect.name) != (fact.positive, fact.name):
        return None
    names: dict[str, str] = {}
    for argument, value in zip(effect.arguments, fact.arguments, strict=True):
        if argument not in parameters:
            if argument != value:
                return None
        elif names.setdefault(argument, value) != value:
            return None
    return names


def places_around(belief: Belief, thing: str) -> Iterator[str]:
    """The places that a thing was last seen in, from the inside out."""
    visited = {thing}
    while (place := belief["last_seen"].get(thing)) is not None and place not in visited:
        visited.add(place)
        yield place
        thing = place


DOORS = "openable"
"""The affordance of the kinds of places that may have a door."""


def _at(belief: Belief, facts: StaticFacts, place: str) -> Truth:
    """Another existing place may share this spot; only a look around rules that out."""
    location = belief["location"]
    if place == location or place in belief["reachable"]:
        return True
    if location is None or location in belief["spots"] or place not in belief["places"]:
        return False
    kinds = {kind_of(location), kind_of(place)}
    return None if any(kinds <= unit for unit in facts.built_together) else False


def _door(belief: Belief, facts: StaticFacts, place: str, door: str) -> Truth:
    """A place whose contents were seen without mention of a door has none.

    Except a see-through one: a glass jar shows its contents with the lid on.
    """
    if place in belief["containers"]:
        return belief["containers"][place] == door
    if is_a(place, facts.affordances.get("see_through", frozenset())):
        return None
    return False if place in belief["searched"] or _is_doorless(facts, place) else None


def _is_doorless(facts: StaticFacts, place: str) -> bool:
    """Return True for a kind of place that never has a door, if the manual lists those that may."""
    return DOORS in facts.affordances and _affords(facts, DOORS, place) is False


def _accessible(belief: Belief, facts: StaticFacts, place: str) -> Truth:
    if place in belief["containers"]:
        return belief["containers"][place] == "open"
    return True if place in belief["searched"] or _is_doorless(facts, place) else None


def _in(belief: Belief, facts: StaticFacts, thing: str, place: str) -> Truth:
    if belief["last_seen"].get(thing) == place or place in belief["also_at"].get(thing, []):
        return True
    if facts.unmoved and thing in belief["last_seen"]:
        return False
    return False if place in belief["searched"] or thing in belief["holding"] else None


def _delivered(belief: Belief, _: StaticFacts, thing: str, place: str) -> Truth:
    """It lies there, and no other place of that kind holds a thing of the same kind."""
    alike = {
        where
        for other, where in belief["last_seen"].items()
        if kind_of(other) == kind_of(thing) and kind_of(where) == kind_of(place)
    }
    return belief["last_seen"].get(thing) == place and alike == {place}


def _is_here(belief: Belief, facts: StaticFacts, thing: str) -> Truth:
    """In view at this spot. A thing that was never seen may be in what was not searched yet."""
    place, location = belief["last_seen"].get(thing), belief["location"]
    if any(_at(belief, facts, other) for other in belief["also_at"].get(thing, ())):
        return True
    if place is not None:
        return _at(belief, facts, place)
    if thing in belief["holding"] or location is None:
        return False
    return False if {location, *belief["reachable"]} <= {*belief["searched"]} else None


def _place(belief: Belief, _: StaticFacts, place: str) -> Truth:
    return place in belief["places"]


def _can_contain(_: Belief, facts: StaticFacts, place: str, thing: str) -> Truth:
    """A pair that neither table lists is undecided if both tables exist."""
    if kind_of(thing) in facts.contains.get(kind_of(place), frozenset()):
        return True
    denied = kind_of(thing) in facts.cannot_contain.get(kind_of(place), frozenset())
    return None if facts.cannot_contain and not denied else False


def _affords(facts: StaticFacts, name: str, thing: str) -> Truth:
    """Return whether a thing is of a kind with this property; undecided like containment."""
    truth = is_a(thing, facts.affordances[name])
    if truth is False and name in facts.ruled_out:
        return None if is_a(thing, facts.ruled_out[name]) is False else False
    return truth


def _state(belief: Belief, facts: StaticFacts, thing: str, state: str) -> Truth:
    """A fact on record rules out its alternatives, or all other facts if none are listed."""
    recorded = {*belief["flags"].get(thing, "").split(", ")} - {""}
    if state in recorded:
        return True
    if not facts.alternatives:
        return False if recorded else None
    return (
        False
        if any(state in family and family & recorded for family in facts.alternatives)
        else None
    )


def _visible(belief: Belief, facts: StaticFacts, thing: str) -> Truth:
    """In view or carried. False only if the view is known and nothing in it resembles the name.

    A thing in a closed container is not visible. The contents of an open one are unknown until the
    agent has looked into it.
    """
    seen = [*belief["visible"], *belief["holding"]]
    aliases = facts.wording.also_called
    seen += [other for name in seen for other in aliases.get(kind_of(name), ())]
    if any(same_thing(thing, name) for name in seen):
        return True
    location = belief["location"]
    if location is not None and bare_name(thing) == location:
        return True
    for place in places_around(belief, bare_name(thing)):
        if place == location:
            return True
        if belief["containers"].get(place) == "closed":
            return False
    if location is None or not belief["visible"] or bare_name(thing) in facts.wording.truncated:
        return None
    words = words_of([thing])
    if words & facts.wording.anything or words & words_of([*seen, *belief["containers"]]):
        return None
    unseen = any(
        door == "open" and name not in belief["searched"] and not is_a(name, facts.wording.passages)
        for name, door in belief["containers"].items()
    )
    return None if unseen else False


def _adjacent(belief: Belief, facts: StaticFacts, place: str) -> Truth:
    """Next to this place on the map, by a passage that is not known to be closed."""
    location = belief["location"]
    if location is None or not {location, place} <= facts.connected.keys():
        return None
    passages = (belief["containers"].get(form.format(place)) for form in facts.wording.passages_to)
    return place in facts.connected[location] and "closed" not in passages


def _unclosed(belief: Belief, facts: StaticFacts, place: str) -> Truth:
    """Most things have no door: a thing that was seen without a closed one counts as open."""
    name = find_name(place, belief["containers"])
    if name is not None:
        return belief["containers"][name] == "open"
    if is_a(place, facts.affordances.get("see_through", frozenset())):
        return None
    return True if _visible(belief, facts, place) else None


def _activated(belief: Belief, _: StaticFacts, device: str) -> Truth:
    name = find_name(device, belief["flags"])
    states = belief["flags"][name].split(", ") if name is not None else []
    return next((_SWITCHED[state] for state in states if state in _SWITCHED), None)


_SWITCHED = {
    "activated": True, "on": True, "turned on": True,
    "deactivated": False, "off": False, "turned off": False,
}  # fmt: skip


def _combined(belief: Belief, _: StaticFacts, place: str) -> Truth:
    """Two things in it can be mixed; it is unknown whether they are all that is needed."""
    return True if list(belief["last_seen"].values()).count(bare_name(place)) > 1 else None


UNSHOWN = "no answer has shown that yet"
"""Printed for an unmet need of evidence when nothing is known."""
Instead = str | Sequence[Predicate]
"""What holds instead of an unmet need, in words or as predicates."""


def _hand(_: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    holding = ", ".join(belief["holding"])
    return f"you hold {holding}" if holding else "you hold nothing"


def _place_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    if need.positive and belief["location"] is None:
        return "you are at none of the places yet"
    if need.positive:
        return f"you are at {belief['location']}"
    return f"you are at {need.arguments[0]} already"


def _door_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    name = need.arguments[0]
    door = belief["containers"].get(find_name(name, belief["containers"]) or "", "")
    return f"{name} is {door}" if door else f"{name} has no door"


def _here_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    if belief["location"] is None:
        return "you are at none of the places yet"
    last_place = belief["last_seen"].get(need.arguments[0])
    if last_place:
        return f"{need.arguments[0]} was last seen at {last_place}"
    return _hand(need, belief, facts)


def _in_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    thing, place = need.arguments
    if thing in belief["holding"]:
        return f"you hold {thing}"
    last_place = belief["last_seen"].get(thing)
    if last_place and facts.unmoved:
        return [Predicate(True, "in", (thing, last_place))]
    if last_place:
        return f"{thing} was last seen at {last_place}"
    return f"it was not there when {place} was searched"


def _can_contain_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    place, thing = (with_article(kind_of(name)) for name in need.arguments)
    return f"{place} does not take {thing}"


def _adjacent_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    location, place = belief["location"], need.arguments[0]
    if location is None:
        return ""
    if place in facts.connected.get(location, ()):
        return f"the way from {location} to {place} is closed"
    return f"no way leads from {location} to {place}"


def _switched_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    return f"{need.arguments[0]} is {'off' if need.positive else 'on'}"


def _visible_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    closed = (place for place in places_around(belief, bare_name(need.arguments[0]))
              if belief["containers"].get(place) == "closed")  # fmt: skip
    return next((f"it is in {place}, which is closed" for place in closed), "")


def _fact_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    """The facts on record that exclude a state of a thing, or the state itself."""
    thing, state = need.arguments
    record = belief["flags"].get(thing, "")
    recorded = record.split(", ") if record else []
    rivals = {fact for family in facts.alternatives if state in family for fact in family}
    relevant = [
        fact for fact in recorded if fact == state or fact in rivals or not facts.alternatives
    ]
    return [Predicate(True, "state", (thing, fact)) for fact in relevant]


def _seen_instead(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
    return _fact_instead(need, belief, facts) or (UNSHOWN if need.positive else "")


def _unless_worded(instead: Callable[..., Instead]) -> Callable[..., Instead]:
    """Nothing of a predicate that the world words itself: "you hold a lock" might not fit."""

    def words(need: Predicate, belief: Belief, facts: StaticFacts) -> Instead:
        worded = {need.name, f"not {need.name}"} & facts.wording.phrases.keys()
        return "" if worded else instead(need, belief, facts)

    return words


def _needed(instead: Callable[..., Instead]) -> Callable[..., Instead]:
    """Only of a need that is not negated."""
    return lambda need, belief, facts: instead(need, belief, facts) if need.positive else ""


# Over a belief. Every affordance is a predicate as well. A need is worded by the same statement.
declare(
    Condition("at", 1, _at, "you are at {0}", "you are somewhere else than {0}",
              _unless_worded(_place_instead)),
    Condition("place", 1, _place, "{0} is a place here"),
    Condition("holding", 1, lambda b, _, thing: thing in b["holding"], "you hold {0}",
              "you do not hold {0}", _needed(_unless_worded(_hand))),
    Condition("hand_empty", 0, lambda b, _: not b["holding"], "your hand is empty",
              "your hand is full", _needed(_unless_worded(_hand))),
    Condition("open", 1, lambda b, w, place: _door(b, w, place, "open"), "{0} is open",
              instead=_needed(_door_instead)),
    Condition("closed", 1, lambda b, w, place: _door(b, w, place, "closed"), "{0} is closed",
              instead=_needed(_door_instead)),
    Condition("accessible", 1, _accessible, "{0} is open (if it has a door)", "{0} is closed",
              _needed(_door_instead)),
    Condition("in", 2, _in, "{0} is in/on {1}", instead=_needed(_in_instead)),
    Condition("here", 1, _is_here, "{0} is where you are", instead=_needed(_here_instead)),
    Condition("kind", 2, lambda b, _, thing, kind: kind_of(thing) == kind, "{0} is {1}"),
    Condition("can_contain", 2, _can_contain, "{0} is able to hold {1}",
              instead=_needed(_can_contain_instead)),
    Condition("state", 2, _state, "{0} is {1}", instead=_fact_instead),
    # For actions that need evidence: a state that was not seen counts as false.
    Condition("seen", 2, lambda b, w, thing, state: _state(b, w, thing, state) is True,
              "{0} is known to be {1}", instead=_seen_instead),
    Condition("delivered", 2, _delivered, "{0} is in its final place, {1}"),
    Condition("visible", 1, _visible, "{0} is in view", instead=_needed(_visible_instead)),
    Condition("adjacent", 1, _adjacent, "{0} is next to here and not closed",
              instead=_needed(_adjacent_instead)),
    Condition("unclosed", 1, _unclosed, "{0} is not closed", "{0} is closed",
              _needed(_door_instead)),
    Condition("activated", 1, _activated, "{0} is on", "{0} is off", _switched_instead),
    Condition("combined", 1, _combined, "all parts are in {0}"),
    # The next look shows how the thing changed.
    Condition("changed", 1, lambda b, _, thing: None, "{0} is changed", effect="thing"),
    Condition("looked_around", 0, lambda b, _: bool(b["visible"]),
              "you are informed about what is here"),
    Condition("here_closed", 0, lambda b, _: b["containers"].get(b["location"] or "") == "closed",
              "the place where you are is closed"),
    # A field of a thing's record has a new value; of `begins` the first that it is given stays.
    Condition("becomes", 2, lambda b, _, field, value: None, "{0} is {1} now", effect="field"),
    Condition("begins", 2, lambda b, _, field, value: None, "{0} is {1} from now on",
              effect="field"),
)  # fmt: skip

# Conditions that only `situations` may use, with their arity; the manual supplies their truth.
SITUATIONAL = {"last_failed": 0}


def evaluate(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> Truth:
    """Evaluate a predicate; an argument that is no parameter stands for itself.

    A value that names nothing, such as a missing argument, and a list, of which it does not say
    which items count, meet no need, not even a negated one.
    """
    texts = Texts()
    truth = _evaluate(predicate, belief, facts, bindings, texts)
    if truth is True and texts.matter:  # of two readings the one counts that allows less
        truth = _evaluate(predicate, belief, facts, bindings, Texts(loose=True))
    return False if truth is INVALID else truth  # type: ignore[return-value]


def may_hold(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> bool:
    """Return whether nothing rules it out; a value of the wrong type rules out nothing."""
    texts = Texts()
    truth = _evaluate(predicate, belief, facts, bindings, texts)
    if truth is False and texts.matter:
        truth = _evaluate(predicate, belief, facts, bindings, Texts(loose=True))
    return truth is not False


def scope_of(
    belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any], texts: Texts = EXACT
) -> Scope:
    """The scope of the terms in a condition."""
    return Scope(belief, facts.tools, bindings, partial(_holds, belief, facts, texts), texts)


def _holds(
    belief: Belief, facts: StaticFacts, texts: Texts, text: str, bindings: Mapping[str, Any]
) -> Truth | Special:
    return _evaluate(parse_predicate(text), belief, facts, bindings, texts)


def _evaluate(
    predicate: Predicate,
    belief: Belief,
    facts: StaticFacts,
    bindings: Mapping[str, Any],
    texts: Texts = EXACT,
) -> Truth | Special:
    if reads_values(predicate.name):
        scope = scope_of(belief, facts, bindings, texts)
        truth = CONDITIONS[predicate.name].evaluate(predicate.arguments, scope)
        return truth if predicate.positive or not isinstance(truth, bool) else not truth
    if predicate.name in facts.predicates:
        return _composed(predicate, belief, facts, bindings, texts)
    arguments = [bindings.get(name, name) for name in predicate.arguments]
    if all(isinstance(argument, str) for argument in arguments):
        return _of_names(predicate, belief, facts, arguments)
    names = [argument_names(argument) for argument in arguments]
    if any(isinstance(argument, list | tuple) for argument in arguments) or not all(names):
        return INVALID
    return _of_names(predicate, belief, facts, [name for each in names for name in each])


def is_undecided(
    predicate: Predicate, belief: Belief, facts: StaticFacts, bindings: Mapping[str, Any]
) -> bool:
    """Return whether nothing known decides the predicate, so that an answer may still show it."""
    if predicate.name == "seen":
        state = predicate._replace(name="state")
        return predicate.positive and evaluate(state, belief, facts, bindings) is None
    if predicate.name in facts.predicates:
        inner = inner_bindings(predicate, belief, facts, bindings)
        if isinstance(inner, Special):
            return inner is UNKNOWN
        if not predicate.positive:
            return evaluate(predicate, belief, facts, bindings) is None
        return _may_be_shown(predicate, belief, facts, inner)
    return evaluate(predicate, belief, facts, bindings) is None


def _may_be_shown(
    predicate: Predicate, belief: Belief, facts: StaticFacts, inner: Mapping[str, Any]
) -> bool:
    """Return whether one choice of a composed predicate holds, or answers may complete it."""
    return any(
        all(
            evaluate(part, belief, facts, inner) or is_undecided(part, belief, facts, inner)
            for part in choice
        )
        for choice in choices_of(predicate, facts)
    )


def argument_names(value: Any) -> list[str]:
    """The names in an argument's value; none if the value cannot be a name."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int | float):
        return [str(value)] if as_number(value) is not None else []
    if isinstance(value, list | tuple):
        names = [argument_names(item) for item in value]
        return [name for each in names for name in each] if all(names) else []
    return []


def _of_names(
    predicate: Predicate, belief: Belief, facts: StaticFacts, names: Sequence[str]
) -> Truth:
    if predicate.name in facts.affordances:
        truth = _affords(facts, predicate.name, names[0])
    else:
        truth = CONDITIONS[predicate.name].evaluate(belief, facts, *names)
    return truth if truth is None or predicate.positive else not truth


def is_evidence(predicate: Predicate, facts: StaticFacts) -> bool:
    """Return whether only an answer can show the predicate; without one it counts as false."""
    if predicate.name == "seen" or reads_values(predicate.name):
        return True
    choices = facts.predicates.get(predicate.name, ())
    parts = [parse_predicate(text) for choice in choices for text in choice]
    return bool(parts) and all(is_evidence(part, facts) for part in parts)


def choices_of(predicate: Predicate, facts: StaticFacts) -> list[list[Predicate]]:
    """The choices of a composed predicate; it holds if all parts of one of them do."""
    choices = facts.predicates[predicate.name]
    return [[parse_predicate(text) for text in choice] for choice in choices]


def inner_bindings(
    predicate: Predicate,
    belief: Belief,
    facts: StaticFacts,
    bindings: Mapping[str, Any],
    texts: Texts = EXACT,
) -> Mapping[str, Any] | Special:
    """What the choices of a composed predicate are evaluated with.

    They see the arguments of the call, and the thing under its own name.
    """
    if not predicate.arguments:
        return bindings
    value = value_of(parse_term(predicate.arguments[0]), scope_of(belief, facts, bindings, texts))
    if isinstance(value, Special):
        return value
    if isinstance(value, Mapping):
        return {**bindings, ARGUMENT: value}
    names = [] if isinstance(value, list | tuple) else argument_names(value)
    return {**bindings, ARGUMENT: names[0]} if names else INVALID


def _composed(
    predicate: Predicate,
    belief: Belief,
    facts: StaticFacts,
    bindings: Mapping[str, Any],
    texts: Texts,
) -> Truth | Special:
    """True if one choice holds; undecided if undecided parts could complete one.

    An invalid part makes its choice invalid, so that its negation is not met either.
    """
    inner = inner_bindings(predicate, belief, facts, bindings, texts)
    if isinstance(inner, Special):
        return None if inner is UNKNOWN else INVALID
    found = [
        conjunction_of([_evaluate(part, belief, facts, inner, texts) for part in choice])
        for choice in choices_of(predicate, facts)
    ]
    order: tuple[Truth | Special, ...] = (True, INVALID, None)
    truth = next((each for each in order if each in found), False)
    return truth if predicate.positive or not isinstance(truth, bool) else not truth
