"""What would make an infeasible action possible: read off the effects of the other actions.

A precondition that does not hold is mended by an action whose effects say it. That action may need
something itself, so the way there is followed back to what can be done now. It knows Tier 3 and
the belief and nothing of goals: whether the action is worth the way is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal, NamedTuple

from rpms.rules.manual import Manual
from rpms.rules.predicates import ARGUMENT, Predicate, evaluate, parse_predicate, phrase
from rpms.rules.schema import ActionRule
from rpms.rules.semantics import already_done, check_action, match_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.naming import bare_name

# How many actions a way may have: longer ones are plans, and planning is the agent's part.
LONGEST = 3
# The beginning of a blank, for a name that the belief does not know.
BLANK = "<"

Kind = Literal["first", "instead", "done", "never"]
Names = Mapping[str, str]


class Mend(NamedTuple):
    """How an infeasible action can be mended.

    Attributes:
        kind: ``first`` names what to do before it, ``instead`` another action to the same end,
            ``done`` says that its effects hold already, ``never`` that no action helps.
        actions: in the order they are to be done; a name that is not known is a blank.
        lacking: the need that no action meets, in words.
    """

    kind: Kind
    actions: tuple[str, ...] = ()
    lacking: str = ""

    @property
    def playable(self) -> str:
        """The next thing to do; empty where there is none, or a name in it is not known."""
        return self.actions[0] if self.actions and BLANK not in self.actions[0] else ""


def mend(manual: Manual, action: str, belief: Belief) -> Mend | None:
    """What would mend an action that definitely cannot be done; None for any other."""
    if check_action(manual, action, belief).verdict != "fails":
        return None
    if already_done(manual, action, belief):
        return Mend("done")
    if way := _way(manual, belief, action, ()):
        return Mend("first", tuple(way))
    for other in _to_the_same_end(manual, belief, action):
        way = _way(manual, belief, other, (action,))
        if way is not None and len(way) < LONGEST:
            return Mend("instead", (*way, other))
    return Mend("never", lacking=_lacking(manual, belief, action))


def _lacking(manual: Manual, belief: Belief, action: str) -> str:
    """The first need of an action that nothing meets."""
    rule, names = match_action(manual, action) or (None, {})
    needs = _failing(manual, belief, rule, names) if rule else []
    hopeless = [p for p in needs if _make(manual, belief, p, names, (action,)) is None]
    return phrase(hopeless[0], names, manual.world) if hopeless else ""


def _way(manual: Manual, belief: Belief, action: str, before: tuple[str, ...]) -> list[str] | None:
    """What has to be done until nothing definitely speaks against an action; None: no way.

    ``before`` holds the actions that this one is needed for.
    """
    matched = match_action(manual, action)
    if matched is None or not manual.knows(matched[0]):
        return None
    rule, names = matched
    needs = _failing(manual, belief, rule, names)
    ways = [_make(manual, belief, p, names, (*before, action)) for p in needs]
    if None in ways:  # one need that nothing meets makes all the others pointless
        return None
    return next((way for way in ways if way), [])


def _failing(manual: Manual, belief: Belief, rule: ActionRule, names: Names) -> list[Predicate]:
    """The needs that definitely do not hold; of a blank nothing can be said yet."""
    needs = [p for p in _needs(rule) if not any(BLANK in names.get(a, a) for a in p.arguments)]
    return [p for p in needs if evaluate(p, belief, manual.world, names) is False]


def _make(
    manual: Manual, belief: Belief, need: Predicate, names: Names, before: tuple[str, ...]
) -> list[str] | None:
    """The actions that bring a need about; None where none does."""
    if len(before) > LONGEST:
        return None
    world = manual.world
    need = need._replace(arguments=tuple(names.get(name, name) for name in need.arguments))
    if need.positive and need.name in world.predicates:
        inner = dict(zip((ARGUMENT,), need.arguments, strict=False))
        for choice in world.predicates[need.name]:
            parts = [parse_predicate(text) for text in choice]
            failing = [p for p in parts if evaluate(p, belief, world, inner) is False]
            ways = [_make(manual, belief, p, inner, before) for p in failing]
            if ways and None not in ways:
                return ways[0]
        return None
    best: list[str] | None = None
    for fact in _facts(need, belief, manual):
        for action in _bringing(manual, belief, fact, before):
            way = _way(manual, belief, action, before)
            if way is None or len(way) >= LONGEST:
                continue
            if best is None or len(way) + 1 < len(best):
                best = [*way, action]
    return best


def _facts(need: Predicate, belief: Belief, manual: Manual) -> Iterator[Predicate]:
    """The facts that effects speak of, any one of which would meet a need."""
    yes = need.positive
    if need.name == "hand_empty" and yes:
        yield from (Predicate(False, "holding", (name,)) for name in belief["holding"])
    elif need.name in ("accessible", "unclosed") and yes:
        yield Predicate(True, "open", need.arguments)
    elif need.name == "adjacent" and yes:
        doors = (form.format(*need.arguments) for form in manual.world.wording.passages_to)
        shut = [door for door in doors if belief["containers"].get(door) == "closed"]
        yield from (Predicate(True, "open", (door,)) for door in shut)
    elif need.name in ("here", "visible") and yes:
        around = list(_around(belief, bare_name(need.arguments[0])))
        there = [Predicate(True, "at", (place,)) for place in around[-1:]]
        away = [p for p in there if evaluate(p, belief, manual.world, {}) is False]
        shut = [place for place in around if belief["containers"].get(place) == "closed"]
        yield from away or [Predicate(True, "open", (place,)) for place in shut[-1:]]
    elif not (need.name == "at" and not yes):  # to go away is no aim
        yield need


def _around(belief: Belief, thing: str) -> Iterator[str]:
    """What a thing was last seen in, and what that is in, from the inside out."""
    passed = {thing}
    while (place := belief["last_seen"].get(thing)) is not None and place not in passed:
        passed.add(place)
        yield place
        thing = place


def _bringing(
    manual: Manual, belief: Belief, fact: Predicate, before: tuple[str, ...]
) -> Iterator[str]:
    """The actions with this effect, their other names filled in from the belief.

    One that needs what the action before it is to achieve comes too late to be of use. What the
    list of actions leaves out is not advised.
    """
    achieved = _achieved(manual, before[-1])
    goals = {p for p in achieved if evaluate(p, belief, manual.world, {}) is not True}
    for rule in manual.actions:
        if not rule.printed or not manual.knows(rule):
            continue
        for effect in map(parse_predicate, rule.effects):
            names = _unified(effect, fact, rule)
            if names is None or goals & {_ground(p, names) for p in _needs(rule)}:
                continue
            yield from (a for a in _filled(manual, belief, rule, names, before) if a not in before)


def _unified(effect: Predicate, fact: Predicate, rule: ActionRule) -> dict[str, str] | None:
    """The names under which an effect is a fact; None if it never is."""
    if (effect.positive, effect.name) != (fact.positive, fact.name):
        return None
    names: dict[str, str] = {}
    for mine, wanted in zip(effect.arguments, fact.arguments, strict=True):
        if mine in rule.parameters:
            names[mine] = wanted
        elif mine != wanted:
            return None
    return names


def _filled(
    manual: Manual, belief: Belief, rule: ActionRule, names: Names, before: tuple[str, ...]
) -> list[str]:
    """The action with every name; where the belief does not know one, with a blank for it.

    Only a name that is known to fit is filled in, or one that fits once the agent is there. The
    nearest at hand comes first.
    """
    missing = [name for name in rule.parameters if name not in names]
    if not missing:
        return [rule.syntax.format(**names)]
    at_hand = [*_here(belief), *belief["holding"], *_named(manual, before[0])]
    known = dict.fromkeys([*at_hand, *belief["places"]])
    concerned = [p for p in _needs(rule) if set(missing) & set(p.arguments)]
    found: list[tuple[int, str]] = []
    for values in product(known, repeat=len(missing)):
        bound = {**names, **dict(zip(missing, values, strict=True))}
        truths = {p: evaluate(p, belief, manual.world, bound) for p in concerned}
        away = [p for p, truth in truths.items() if truth is not True]
        if all(p.name == "at" and truths[p] is False for p in away):
            found.append((len(away), rule.syntax.format(**bound)))
    if found:
        return [min(found, key=lambda one: one[0])[1]]
    return [rule.syntax.format(**names, **{name: f"<{name}>" for name in missing})]


def _here(belief: Belief) -> list[str]:
    return [place for place in (belief["location"], *belief["reachable"]) if place]


def _named(manual: Manual, action: str) -> list[str]:
    matched = match_action(manual, action)
    return list(matched[1].values()) if matched else []


def _to_the_same_end(manual: Manual, belief: Belief, action: str) -> Iterator[str]:
    """Other actions that achieve the same: with the place where a thing is, or in another way."""
    matched = match_action(manual, action)
    if matched is None:
        return
    rule, names = matched
    for need in _needs(rule):
        if need.name == "in" and need.arguments[1] in names:
            thing, place = (names.get(name, name) for name in need.arguments)
            where = belief["last_seen"].get(thing)
            if where not in (None, place):
                yield rule.syntax.format(**{**names, need.arguments[1]: where})
    wanted = {_ground(parse_predicate(text), names) for text in rule.effects}
    for other in manual.actions:
        if other is rule or not other.printed or set(other.parameters) - set(rule.parameters):
            continue
        same = {_ground(parse_predicate(text), names) for text in other.effects}
        if wanted and wanted <= same:
            yield other.syntax.format(**names)


def _needs(rule: ActionRule) -> list[Predicate]:
    return [parse_predicate(text) for text in rule.preconditions]


def _achieved(manual: Manual, action: str) -> set[Predicate]:
    matched = match_action(manual, action)
    if matched is None:
        return set()
    rule, names = matched
    return {_ground(parse_predicate(text), names) for text in rule.effects}


def _ground(predicate: Predicate, names: Names) -> Predicate:
    return predicate._replace(arguments=tuple(names.get(a, a) for a in predicate.arguments))


def in_words(found: Mend) -> str:
    """The mend as the end of a veto: ``first: go to fridge 1, then: open fridge 1``."""
    if found.kind == "done":
        return "what it would do is done already"
    if found.kind == "never":
        return f"nothing known makes it so: {found.lacking}"
    return f"{found.kind}: {', then: '.join(found.actions)}"
