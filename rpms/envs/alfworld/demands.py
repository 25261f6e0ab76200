"""What a game's own rules demand of a command: the truth that a manual is audited against.

For audits only; nothing the agent reads may come from here.

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
be asked as of any other. ``demands`` takes the precondition of an action apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from rpms.envs.alfworld.conditions import Literal
from rpms.envs.alfworld.engine import Fact
from rpms.envs.alfworld.rules import Action, Domain
from rpms.vocabulary.belief import Belief, Door, empty_belief

_STATES = {"ishot": "hot", "iscool": "cool", "isclean": "clean", "issliced": "sliced",
           "istoggled": "on"}  # fmt: skip
_TEMPLATE = re.compile(r'action\s+([\w/-]+)\s*\{\s*template\s*::\s*"([^"]+)"')


def true_belief(facts: Iterable[Fact]) -> Belief:
    """The belief of somebody who knows everything."""
    rows = _by_predicate(facts)
    belief = empty_belief()
    spots = {row[0]: row[1] for row in sorted(rows.get("receptacleatlocation", ()))}
    stands = {spot for _, spot in rows.get("atlocation", ())}
    here = [place for place, spot in spots.items() if spot in stands]
    belief["places"] = belief["searched"] = list(spots)
    belief["location"], belief["reachable"] = (here[0], here[1:]) if here else (None, [])
    for place, spot in spots.items():
        belief["spots"][place] = [one for one, where in spots.items() if where == spot]
    belief["holding"] = sorted(thing for _, thing in rows.get("holds", ()))
    opened = rows.get("opened", set())
    for (place,) in sorted(rows.get("openable", ())):
        door: Door = "open" if (place,) in opened else "closed"
        belief["containers"][place] = door
    # A thing may be in several at once (official games never forget the first); the one at hand
    # comes last and stands.
    lies = sorted(rows.get("inreceptacle", ()), key=lambda row: (spots.get(row[1]) in stands, row))
    belief["last_seen"] = {row[0]: row[1] for row in lies}
    for predicate, state in _STATES.items():
        for (thing,) in sorted(rows.get(predicate, ())):
            told = belief["flags"].get(thing)
            belief["flags"][thing] = f"{told}, {state}" if told else state
    return belief


Rows = dict[str, set[tuple[str, ...]]]


def _by_predicate(facts: Iterable[Fact]) -> Rows:
    found: Rows = {}
    for predicate, arguments in facts:
        found.setdefault(predicate, set()).add(tuple(one.strip() for one in arguments))
    return found


@lru_cache(maxsize=8)
def _words(grammar: str) -> dict[str, str]:
    """The command template of every action."""
    return {name.lower(): template for name, template in _TEMPLATE.findall(grammar)}


def demands(
    commands: Iterable[str],
    domain: Domain,
    grammar: str,
    kinds: Mapping[str, str],
    facts: Iterable[Fact],
) -> list[dict[str, bool] | None]:
    """Each part of the precondition of each command, and whether it holds now.

    Where several actions answer to the same words, one of them must be possible as a whole. None
    for words that no action answers to.

    Args:
        commands: in the game's own wording.
        domain: the game's rules.
        grammar: the game's texts, which have the words for each action.
        kinds: the declared type of everything that has a name.
        facts: everything true now.
    """
    rows, words = _by_predicate(facts), _words(grammar)
    return [_of_command(command, domain, words, kinds, rows) for command in commands]


def _of_command(
    command: str, domain: Domain, words: Mapping[str, str], kinds: Mapping[str, str], rows: Rows
) -> dict[str, bool] | None:
    ways = []
    for action in domain.actions:
        if (holes := _read(command, words.get(action.name, ""))) is not None:
            ways.append((action, _parts(action, holes, domain, kinds, rows)))
    if len(ways) > 1:
        label = " | ".join(sorted(action.name for action, _ in ways))
        return {label: any(all(parts.values()) for _, parts in ways)}
    return ways[0][1] if ways else None


@lru_cache(maxsize=64)
def _pattern(template: str) -> re.Pattern[str]:
    plain = re.sub(r"\[\{(\w+)\.name[^]]*\]", r"{\1}", template)
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(plain)))


def _read(command: str, template: str) -> dict[str, str] | None:
    """What a command names, under the variables of the action's template."""
    found = _pattern(template).fullmatch(command) if template else None
    return {f"?{name}": value for name, value in found.groupdict().items()} if found else None


def _parts(
    action: Action, holes: Mapping[str, str], domain: Domain, kinds: Mapping[str, str], rows: Rows
) -> dict[str, bool]:
    types = dict(action.parameters)
    found = {
        f"{name} is a {types[name]}": domain.is_a(kinds.get(value, ""), types[name])
        for name, value in holes.items()
    }
    literals = [clause.literals for clause in action.clauses]
    common = [one for one in literals[0] if all(one in other for other in literals)]
    values = _bind(common, holes, rows)
    found |= {_text(one): _holds(one, values, rows) for one in common}
    choices = []
    for clause in action.clauses:
        rest = [one for one in clause.literals if one not in common]
        inner = _bind(rest, values, rows)
        typed = all(
            domain.is_a(kinds.get(inner.get(name, ""), ""), kind) for name, kind in clause.variables
        )
        choices.append((rest, typed and all(_holds(one, inner, rows) for one in rest)))
    if any(rest for rest, _ in choices):
        label = " or ".join(" and ".join(_text(one) for one in rest) for rest, _ in choices)
        found[label] = any(holds for _, holds in choices)
    found["it changes something"] = _changes(action, common, values)
    return found


def _bind(literals: Sequence[Literal], given: Mapping[str, str], rows: Rows) -> dict[str, str]:
    """Values for further variables, where the facts leave only one."""
    values = dict(given)
    for _ in literals:
        for one in literals:
            fitting = [] if one.negated else _fitting(one, values, rows)
            if len(fitting) == 1:
                pairs = zip(one.args, fitting[0], strict=True)
                values |= {arg: value for arg, value in pairs if arg.startswith("?")}
    return values


def _fitting(one: Literal, values: Mapping[str, str], rows: Rows) -> list[tuple[str, ...]]:
    wanted = [values.get(arg, "" if arg.startswith("?") else arg) for arg in one.args]
    return [
        row
        for row in rows.get(one.predicate, ())
        if all(want in ("", value) for want, value in zip(wanted, row, strict=True))
    ]


def _holds(one: Literal, values: Mapping[str, str], rows: Rows) -> bool:
    return bool(_fitting(one, values, rows)) != one.negated


def _changes(action: Action, common: Sequence[Literal], values: Mapping[str, str]) -> bool:
    """Games leave out what changes nothing, such as going where one is."""

    def atom(one: Literal) -> tuple[str, ...]:
        return (one.predicate, *(values.get(arg, arg) for arg in one.args))

    if any(effect.condition for effect in action.effects):
        return True
    needed = {atom(one) for one in common if not one.negated}
    added = {atom(e.literal) for e in action.effects if not e.literal.negated}
    removed = {atom(e.literal) for e in action.effects if e.literal.negated}
    return bool(added - needed or removed - added)


def _text(one: Literal) -> str:
    return f"{'not ' if one.negated else ''}{one.predicate}({', '.join(one.args)})"
