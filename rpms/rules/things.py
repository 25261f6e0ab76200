"""The conditions over a belief: when each holds, how it reads, and what holds instead of it.

They read the belief's fields and know no particular world: a world's names for things are data in
its Tier 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rpms.rules.predicates import Condition, Predicate, StaticFacts, affords, declare
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.naming import Truth, bare_name, find_name, is_a, same_thing, words_of
from rpms.vocabulary.output import with_article


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
    return DOORS in facts.affordances and affords(facts, DOORS, place) is False


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


def _can_contain(_: Belief, facts: StaticFacts, place: str, thing: str) -> Truth:
    """A pair that neither table lists is undecided if both tables exist."""
    if kind_of(thing) in facts.contains.get(kind_of(place), frozenset()):
        return True
    denied = kind_of(thing) in facts.cannot_contain.get(kind_of(place), frozenset())
    return None if facts.cannot_contain and not denied else False


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
    Condition("place", 1, lambda b, _, place: place in b["places"], "{0} is a place here"),
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
    Condition("activated", 1, _activated, "{0} is on", "{0} is off",
              lambda need, *_: f"{need.arguments[0]} is {'off' if need.positive else 'on'}"),
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
