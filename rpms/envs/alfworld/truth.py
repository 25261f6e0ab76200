"""The true state of a game, and the preconditions of its commands.

For tests, metrics and audits only. Nothing the agent reads may come from this module.

Our predicates correspond to the PDDL's as follows:

=========================  ==================================================================
ours                       PDDL
=========================  ==================================================================
at(x)                      atlocation(agent, l) and receptacleatlocation(x, l)
place(x)                   x is a receptacle
holding(x), hand_empty     holds(agent, x), not holdsany(agent)
open(x), closed(x)         openable(x), and opened(x) or not
accessible(x)              not openable(x) or opened(x)
in(x, y), here(x)          inreceptacle(x, y); in some y that is at the agent's spot
kind(x, k)                 objecttype or receptacletype(x, kType)
can_contain(x, y)          cancontain of their types
state(x, s)                ishot, iscool, isclean, issliced, istoggled (hot, cool, ..., on)
affordances                pickupable, heatable, ..., or the types an action names
=========================  ==================================================================

``true_belief`` builds a complete belief from the facts. The predicates evaluate on it as on any
other belief, and an agent's belief is compared with it (belief error, P2). ``preconditions`` splits
the precondition of an action into parts: the ground truth that a manual is audited against.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rpms.envs.alfworld.engine import Fact
from rpms.envs.alfworld.game_file import GameFile, Release
from rpms.vocabulary.belief import Belief, empty_belief

_STATES = {"ishot": "hot", "iscool": "cool", "isclean": "clean", "issliced": "sliced",
           "istoggled": "on"}  # fmt: skip

Rows = Mapping[str, set[tuple[str, ...]]]


def _by_predicate(facts: Iterable[Fact]) -> Rows:
    rows: dict[str, set[tuple[str, ...]]] = {}
    for predicate, arguments in facts:
        rows.setdefault(predicate, set()).add(arguments)
    return rows


def true_belief(facts: Iterable[Fact], places: Collection[str] = ()) -> Belief:
    """The complete belief about these facts.

    Official games keep the first place of a thing as a fact, so a thing may be in several places
    at once. A belief has it in one of them: one of ``places``, else one within reach.
    """
    return _complete_belief(_by_predicate(facts), places)


def _complete_belief(rows: Rows, preferred: Collection[str] = ()) -> Belief:
    belief = empty_belief()
    spots = {row[0]: row[1] for row in sorted(rows.get("receptacleatlocation", ()))}
    agent_spots = {spot for _, spot in rows.get("atlocation", ())}
    reachable = [place for place, spot in spots.items() if spot in agent_spots]
    belief["places"] = belief["searched"] = list(spots)
    belief["location"], belief["reachable"] = (
        (reachable[0], reachable[1:]) if reachable else (None, [])
    )
    for place, spot in spots.items():
        belief["spots"][place] = [each for each in spots if spots[each] == spot]
    belief["holding"] = sorted(thing for _, thing in rows.get("holds", ()))
    for (place,) in sorted(rows.get("openable", ())):
        belief["containers"][place] = "open" if (place,) in rows.get("opened", ()) else "closed"
    contents = sorted(
        rows.get("inreceptacle", ()),
        key=lambda row: (row[1] in preferred, spots.get(row[1]) in agent_spots, row),
    )
    belief["last_seen"] = {row[0]: row[1] for row in contents}  # the last row wins
    for predicate, state in _STATES.items():
        for (thing,) in sorted(rows.get(predicate, ())):
            states = belief["flags"].get(thing)
            belief["flags"][thing] = f"{states}, {state}" if states else state
    return belief


def true_state(facts: Iterable[Fact]) -> dict[str, str]:
    """The location (every place of the spot), the hand and the open containers, in words."""
    true = true_belief(facts)
    places = true["spots"].get(true["location"] or "", [])
    opened = [place for place, door in true["containers"].items() if door == "open"]
    return {
        "location": ", ".join(places) or "middle of the room",
        "holding": ", ".join(true["holding"]) or "nothing",
        "open": ", ".join(opened) or "nothing",
    }


def disagreements(belief: Belief, facts: Iterable[Fact]) -> list[str]:
    """Every statement of the belief that the true facts contradict, in words."""
    rows = _by_predicate(facts)
    true, inside = _complete_belief(rows), rows.get("inreceptacle", ())
    places = true["spots"].get(true["location"] or "", [])
    wrong = []
    location = belief["location"]
    if location not in places and not (location is None and not places):
        wrong.append(f"location: believed {location}, truly at {places or 'no place'}")
    wrong += [f"reachable: {p} is not at this spot" for p in belief["reachable"] if p not in places]
    if set(belief["holding"]) != set(true["holding"]):
        wrong.append(f"holding: believed {belief['holding']}, truly {true['holding']}")
    wrong += [
        f"{place}: believed {door}"
        for place, door in belief["containers"].items()
        if true["containers"].get(place) != door
    ]
    wrong += [
        f"last seen: {thing} is not at {place}"
        for thing, place in belief["last_seen"].items()
        if (thing, place) not in inside
    ]
    wrong += [
        f"spot of {place}: believed {sorted(together)}"
        for place, together in belief["spots"].items()
        if set(together) != set(true["spots"].get(place, ()))
    ]
    if set(belief["places"]) != set(true["places"]):
        differing = sorted(set(belief["places"]) ^ set(true["places"]))
        wrong.append(f"places: {differing} should not differ")
    return wrong


class _Literal(NamedTuple):
    """A fact that must be true, or false if negated. Its arguments may be ?variables."""

    predicate: str
    args: tuple[str, ...]
    negated: bool

    def __str__(self) -> str:
        """The form that the audit prints."""
        return f"{'not ' if self.negated else ''}{self.predicate}({', '.join(self.args)})"


class _Precondition(NamedTuple):
    """An action: its command, the facts it demands, and the facts of which it demands one."""

    action: str
    command: re.Pattern[str]
    demands: tuple[_Literal, ...]
    choice: tuple[_Literal, ...]


def preconditions(
    commands: Iterable[str], game: GameFile, facts: Iterable[Fact]
) -> list[dict[str, bool] | None]:
    """Each part of the precondition of each command, with its truth value.

    When several actions match the command, the result has a single part: at least one of them is
    possible. The result is None when no action matches.
    """
    rows = _by_predicate(facts)
    demanded: list[dict[str, bool] | None] = []
    for command in commands:
        matches = [
            (rule.action, _parts(rule, words.groupdict(), game, rows))
            for rule in _preconditions(game.release)
            if (words := rule.command.fullmatch(command))
        ]
        if len(matches) > 1:
            label = " | ".join(sorted(action for action, _ in matches))
            demanded.append({label: any(all(parts.values()) for _, parts in matches)})
        else:
            demanded.append(matches[0][1] if matches else None)
    return demanded


@lru_cache(maxsize=4)
def _preconditions(release: Release) -> tuple[_Precondition, ...]:
    at_place = "atlocation(?a, ?l) receptacleatlocation(?r, ?l)"
    accessible = "not openable(?r) opened(?r)"
    washers = [f"receptacletype(?r, {kind})" for kind in release.washers]
    washer, either = (washers[0], "") if len(washers) == 1 else ("", " ".join(washers))
    knives = "objecttype(?ko, knifetype) objecttype(?ko, butterknifetype)"
    put = "move {o} to {r}" if release.dialect == "move" else "put {o} in/on {r}"
    table = (
        ("look", "look", "atlocation(?a, ?l)", ""),
        ("inventory", "inventory", "", ""),
        ("examinereceptacle", "examine {r}", at_place, ""),
        ("examineobject", "examine {o}", "holds(?a, ?o)", ""),
        ("gotolocation", "go to {r}",
         "atlocation(?a, ?lstart) receptacleatlocation(?r, ?lend)", ""),
        ("openobject", "open {r}", f"openable(?r) {at_place} not opened(?r)", ""),
        ("closeobject", "close {r}", f"openable(?r) {at_place} opened(?r)", ""),
        ("pickupobject", "take {o} from {r}",
         f"pickupable(?o) {at_place} inreceptacle(?o, ?r) not holdsany(?a)", accessible),
        ("putobject", put,
         f"holds(?a, ?o) {at_place} objecttype(?o, ?ot) receptacletype(?r, ?rt)"
         " cancontain(?rt, ?ot)", accessible),
        ("cleanobject", "clean {o} with {r}",
         f"cleanable(?o) {washer} {at_place} holds(?a, ?o)", either),
        ("heatobject", "heat {o} with {r}",
         f"heatable(?o) receptacletype(?r, microwavetype) {at_place} holds(?a, ?o)", ""),
        ("coolobject", "cool {o} with {r}",
         f"coolable(?o) receptacletype(?r, fridgetype) {at_place} holds(?a, ?o)", ""),
        ("toggleobject", "use {o}", f"toggleable(?o) {at_place} inreceptacle(?o, ?r)", ""),
        ("sliceobject", "slice {co} with {ko}",
         "sliceable(?co) atlocation(?a, ?l) objectatlocation(?co, ?l) holds(?a, ?ko)", knives),
        *([("help", "help", "", "")] if release.dialect == "move" else []),
    )  # fmt: skip
    return tuple(
        _Precondition(
            action,
            re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>.+?)", words)),
            _literals(demands),
            _literals(choice),
        )
        for action, words, demands, choice in table
    )


def _literals(text: str) -> tuple[_Literal, ...]:
    found = re.findall(r"(not )?(\w+)\(([^)]*)\)", text)
    return tuple(_Literal(name, tuple(args.split(", ")), bool(no)) for no, name, args in found)


def _parts(
    rule: _Precondition, words: Mapping[str, str], game: GameFile, rows: Rows
) -> dict[str, bool]:
    parts = {}
    for name, value in words.items():
        if name == "r":
            parts["?r is a receptacle"] = game.types.get(value) == "receptacle"
        else:
            parts[f"?{name} is a object"] = value in game.types  # PDDL calls everything an object
    values = _bind(rule.demands, {f"?{name}": value for name, value in words.items()}, rows)
    parts |= {str(literal): _holds(literal, values, rows) for literal in rule.demands}
    if rule.choice:
        label = " or ".join(map(str, rule.choice))
        parts[label] = any(_holds(literal, values, rows) for literal in rule.choice)
    # Games leave out commands without effect, such as going to the current place.
    parts["it changes something"] = values.get("?lstart", "") != values.get("?lend", "?")
    return parts


def _bind(literals: Sequence[_Literal], bindings: Mapping[str, str], rows: Rows) -> dict[str, str]:
    """Bind further variables for which the facts leave only one value."""
    values = dict(bindings)
    for _ in literals:
        for literal in literals:
            fitting = [] if literal.negated else _fitting(literal, values, rows)
            if len(fitting) == 1:
                pairs = zip(literal.args, fitting[0], strict=True)
                values |= {arg: value for arg, value in pairs if arg.startswith("?")}
    return values


def _fitting(literal: _Literal, values: Mapping[str, str], rows: Rows) -> list[tuple[str, ...]]:
    pattern = [values.get(arg, "" if arg.startswith("?") else arg) for arg in literal.args]
    return [
        row
        for row in rows.get(literal.predicate, ())
        if all(want in ("", value) for want, value in zip(pattern, row, strict=True))
    ]


def _holds(literal: _Literal, values: Mapping[str, str], rows: Rows) -> bool:
    return bool(_fitting(literal, values, rows)) != literal.negated
