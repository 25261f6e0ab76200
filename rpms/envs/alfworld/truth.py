"""What is truly so in a game, and what its own rules demand of a command.

For tests, metrics and audits only. Nothing the agent reads may come from here.

How our predicates and the PDDL's correspond:

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

``true_belief`` carries that out: a belief in which everything is known, of which the predicates can
be asked as of any other; an agent's belief is held against it (drift, P2). ``preconditions`` takes
the precondition of an action apart: the truth that a manual is audited against.
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


def true_belief(facts: Iterable[Fact], named: Collection[str] = ()) -> Belief:
    """The belief of somebody who knows everything.

    Official games never forget where a thing was first, so it may be in several places at once; a
    belief has it in one: one that is ``named``, else one at hand.
    """
    return _knowing(_by_predicate(facts), named)


def _knowing(rows: Rows, named: Collection[str] = ()) -> Belief:
    belief = empty_belief()
    spots = {row[0]: row[1] for row in sorted(rows.get("receptacleatlocation", ()))}
    stands = {spot for _, spot in rows.get("atlocation", ())}
    here = [place for place, spot in spots.items() if spot in stands]
    belief["places"] = belief["searched"] = list(spots)
    belief["location"], belief["reachable"] = (here[0], here[1:]) if here else (None, [])
    for place, spot in spots.items():
        belief["spots"][place] = [other for other, where in spots.items() if where == spot]
    belief["holding"] = sorted(thing for _, thing in rows.get("holds", ()))
    for (place,) in sorted(rows.get("openable", ())):
        belief["containers"][place] = "open" if (place,) in rows.get("opened", ()) else "closed"
    lies = sorted(
        rows.get("inreceptacle", ()),
        key=lambda row: (row[1] in named, spots.get(row[1]) in stands, row),
    )
    belief["last_seen"] = {row[0]: row[1] for row in lies}  # the last one stands
    for predicate, state in _STATES.items():
        for (thing,) in sorted(rows.get(predicate, ())):
            others = belief["flags"].get(thing)
            belief["flags"][thing] = f"{others}, {state}" if others else state
    return belief


def true_state(facts: Iterable[Fact]) -> dict[str, str]:
    """Location (every place of the spot), hand and open containers, in words."""
    true = true_belief(facts)
    here = true["spots"].get(true["location"] or "", [])
    opened = [place for place, door in true["containers"].items() if door == "open"]
    return {
        "location": ", ".join(here) or "middle of the room",
        "holding": ", ".join(true["holding"]) or "nothing",
        "open": ", ".join(opened) or "nothing",
    }


def disagreements(belief: Belief, facts: Iterable[Fact]) -> list[str]:
    """Every statement of the belief that the true facts contradict, in words."""
    rows = _by_predicate(facts)
    true, inside = _knowing(rows), rows.get("inreceptacle", ())
    here = true["spots"].get(true["location"] or "", [])
    wrong = []
    location = belief["location"]
    if location not in here and not (location is None and not here):
        wrong.append(f"location: believed {location}, truly at {here or 'no place'}")
    wrong += [f"reachable: {p} is not at this spot" for p in belief["reachable"] if p not in here]
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
    """A fact that has to be true, or (negated) must not; arguments may be ?variables."""

    predicate: str
    args: tuple[str, ...]
    negated: bool

    def __str__(self) -> str:
        """As the audit prints it."""
        return f"{'not ' if self.negated else ''}{self.predicate}({', '.join(self.args)})"


class _Precondition(NamedTuple):
    """An action's words, what it demands, and several things of which it demands one."""

    action: str
    command: re.Pattern[str]
    demands: tuple[_Literal, ...]
    choice: tuple[_Literal, ...]


def preconditions(
    commands: Iterable[str], game: GameFile, facts: Iterable[Fact]
) -> list[dict[str, bool] | None]:
    """Each part of the precondition of each command, and whether it holds now.

    Where several actions answer to the same words, one of them must be possible as a whole. None
    for words that no action answers to.
    """
    rows = _by_predicate(facts)
    demanded: list[dict[str, bool] | None] = []
    for command in commands:
        ways = [
            (rule.action, _parts(rule, words.groupdict(), game, rows))
            for rule in _preconditions(game.release)
            if (words := rule.command.fullmatch(command))
        ]
        if len(ways) > 1:
            label = " | ".join(sorted(action for action, _ in ways))
            demanded.append({label: any(all(parts.values()) for _, parts in ways)})
        else:
            demanded.append(ways[0][1] if ways else None)
    return demanded


@lru_cache(maxsize=4)
def _preconditions(release: Release) -> tuple[_Precondition, ...]:
    """The preconditions of alfworld's PDDL domain."""
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
    # Games leave out what changes nothing, such as going where one is.
    parts["it changes something"] = values.get("?lstart", "") != values.get("?lend", "?")
    return parts


def _bind(literals: Sequence[_Literal], known: Mapping[str, str], rows: Rows) -> dict[str, str]:
    """Values for further variables, where the facts leave only one."""
    values = dict(known)
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
