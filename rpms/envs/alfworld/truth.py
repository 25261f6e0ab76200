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

from rpms.envs.alfworld.engine import Fact, Game
from rpms.envs.alfworld.pddl import Action, Literal
from rpms.vocabulary.belief import Belief, empty_belief

_STATES = {"ishot": "hot", "iscool": "cool", "isclean": "clean", "issliced": "sliced",
           "istoggled": "on"}  # fmt: skip
_TEMPLATE = re.compile(r'action\s+([\w/-]+)\s*\{\s*template\s*::\s*"([^"]+)"')

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


def preconditions(
    commands: Iterable[str], game: Game, facts: Iterable[Fact]
) -> list[dict[str, bool] | None]:
    """Each part of the precondition of each command, and whether it holds now.

    Where several actions answer to the same words, one of them must be possible as a whole. None
    for words that no action answers to.
    """
    rows, templates = _by_predicate(facts), _templates(game.texts)
    kinds = {entity.name.strip(): entity.type for entity in game.entities.values()}
    demanded: list[dict[str, bool] | None] = []
    for command in commands:
        ways = []
        for action in game.rules.domain.actions:
            template = templates.get(action.name)
            if template and (named := template.fullmatch(command)):
                holes = {f"?{hole}": value for hole, value in named.groupdict().items()}
                ways.append((action, _parts(action, holes, game, kinds, rows)))
        if len(ways) > 1:
            label = " | ".join(sorted(action.name for action, _ in ways))
            demanded.append({label: any(all(parts.values()) for _, parts in ways)})
        else:
            demanded.append(ways[0][1] if ways else None)
    return demanded


@lru_cache(maxsize=8)
def _templates(grammar: str) -> dict[str, re.Pattern[str]]:
    """The command of every action, as a pattern with its variables."""
    patterns = {}
    for name, template in _TEMPLATE.findall(grammar):
        plain = re.sub(r"\[\{(\w+)\.name[^]]*\]", r"{\1}", template)
        blanks = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(plain))
        patterns[name.lower()] = re.compile(blanks)
    return patterns


def _parts(
    action: Action, holes: Mapping[str, str], game: Game, kinds: Mapping[str, str], rows: Rows
) -> dict[str, bool]:
    domain, types = game.rules.domain, dict(action.parameters)
    parts = {
        f"{name} is a {types[name]}": domain.is_a(kinds.get(value, ""), types[name])
        for name, value in holes.items()
    }
    literals = [clause.literals for clause in action.clauses]
    common = [literal for literal in literals[0] if all(literal in other for other in literals)]
    values = _bind(common, holes, rows)
    parts |= {_text(literal): _holds(literal, values, rows) for literal in common}
    choices = []
    for clause in action.clauses:
        rest = [literal for literal in clause.literals if literal not in common]
        inner = _bind(rest, values, rows)
        typed = all(
            domain.is_a(kinds.get(inner.get(name, ""), ""), kind) for name, kind in clause.variables
        )
        choices.append((rest, typed and all(_holds(literal, inner, rows) for literal in rest)))
    if any(rest for rest, _ in choices):
        label = " or ".join(" and ".join(_text(literal) for literal in rest) for rest, _ in choices)
        parts[label] = any(holds for _, holds in choices)
    parts["it changes something"] = _changes(action, common, values)
    return parts


def _bind(literals: Sequence[Literal], known: Mapping[str, str], rows: Rows) -> dict[str, str]:
    """Values for further variables, where the facts leave only one."""
    values = dict(known)
    for _ in literals:
        for literal in literals:
            fitting = [] if literal.negated else _fitting(literal, values, rows)
            if len(fitting) == 1:
                pairs = zip(literal.args, fitting[0], strict=True)
                values |= {arg: value for arg, value in pairs if arg.startswith("?")}
    return values


def _fitting(literal: Literal, values: Mapping[str, str], rows: Rows) -> list[tuple[str, ...]]:
    pattern = [values.get(arg, "" if arg.startswith("?") else arg) for arg in literal.args]
    return [
        row
        for row in rows.get(literal.predicate, ())
        if all(want in ("", value) for want, value in zip(pattern, row, strict=True))
    ]


def _holds(literal: Literal, values: Mapping[str, str], rows: Rows) -> bool:
    return bool(_fitting(literal, values, rows)) != literal.negated


def _changes(action: Action, common: Sequence[Literal], values: Mapping[str, str]) -> bool:
    """Games leave out what changes nothing, such as going where one is."""

    def atom(literal: Literal) -> tuple[str, ...]:
        return (literal.predicate, *(values.get(arg, arg) for arg in literal.args))

    needed = {atom(literal) for literal in common if not literal.negated}
    added = {atom(e.literal) for e in action.effects if not e.literal.negated}
    removed = {atom(e.literal) for e in action.effects if e.literal.negated}
    conditional = any(effect.condition for effect in action.effects)
    return conditional or bool(added - needed or removed - added)


def _text(literal: Literal) -> str:
    return f"{'not ' if literal.negated else ''}{literal.predicate}({', '.join(literal.args)})"
