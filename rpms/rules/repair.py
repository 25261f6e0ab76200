"""What would make an infeasible action possible: read off the effects of the other actions.

A precondition that does not hold is met by an action whose effects say it. That action may need
something itself, so the way there is followed back to what can be done now. It knows Tier 3 and
the belief and nothing of goals: whether the action is worth the way is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal, NamedTuple

from rpms.rules.manual import Manual
from rpms.rules.predicates import (
    ARGUMENT,
    Predicate,
    around,
    evaluate,
    parse_predicate,
    unify,
)
from rpms.rules.predicates import need as in_words
from rpms.rules.schema import ActionRule
from rpms.rules.semantics import already_done, check_action, match_action
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.naming import Truth, bare_name

# How many actions a way may have: longer ones are plans, and planning is the agent's part.
LONGEST = 3
# The beginning of a blank, for a name that the belief does not know.
BLANK = "<"

Names = Mapping[str, str]


class Repair(NamedTuple):
    """How an infeasible action can be made possible.

    Attributes:
        kind: ``first`` names what to do before it, ``instead`` another action to the same end,
            ``done`` says that its effects hold already, ``never`` that no action helps.
        actions: in the order they are to be done; a name that is not known is a blank.
        lacking: the need that no action meets, in words.
    """

    kind: Literal["first", "instead", "done", "never"]
    actions: tuple[str, ...] = ()
    lacking: str = ""

    @property
    def playable(self) -> str:
        """The next thing to do; empty where there is none, or a name in it is not known."""
        return self.actions[0] if self.actions and BLANK not in self.actions[0] else ""

    @property
    def words(self) -> str:
        """As the end of a veto: ``first: go to fridge 1, then: open fridge 1``."""
        if self.kind == "done":
            return "what it would do is done already"
        if self.kind == "never":
            return f"no known action causes {self.lacking}"
        return f"{self.kind}: {', then: '.join(self.actions)}"


def find_repair(manual: Manual, action: str, belief: Belief) -> Repair | None:
    """What would repair an action that definitely cannot be done; None for any other."""
    if check_action(manual, action, belief).verdict != "fails":
        return None
    if already_done(manual, action, belief):
        return Repair("done")
    planner = Planner(manual, belief)
    if way := planner.way_to(action, ()):
        return Repair("first", tuple(way))
    for other in planner.to_the_same_end(action):
        way = planner.way_to(other, (action,))
        if way is not None and len(way) < LONGEST:
            return Repair("instead", (*way, other))
    return Repair("never", lacking=planner.lacking(action))


class Planner:
    """Follows the needs of an action back to what can be done now."""

    def __init__(self, manual: Manual, belief: Belief) -> None:
        """What is possible, and what is so."""
        self.manual, self.belief = manual, belief

    def way_to(self, action: str, before: tuple[str, ...]) -> list[str] | None:
        """What has to be done until nothing definitely speaks against an action; None: no way.

        ``before`` holds the actions that this one is needed for.
        """
        matched = match_action(self.manual, action)
        if matched is None or not self.manual.knows(matched[0]):
            return None
        rule, names = matched
        ways = [self._way_for(n, names, (*before, action)) for n in self._failing(rule, names)]
        if None in ways:  # one need that nothing meets makes all the others pointless
            return None
        return next((way for way in ways if way), [])

    def lacking(self, action: str) -> str:
        """The first need of an action that nothing meets."""
        rule, names = match_action(self.manual, action) or (None, {})
        for need in self._failing(rule, names) if rule else ():
            if self._way_for(need, names, (action,)) is None:
                return in_words(need, names, self.manual.world)
        return ""

    def to_the_same_end(self, action: str) -> Iterator[str]:
        """Other actions that achieve the same: with the place where a thing is, or another way."""
        matched = match_action(self.manual, action)
        if matched is None:
            return
        rule, names = matched
        for need in rule.needs:
            if need.name == "in" and need.arguments[1] in names:
                thing, place = need.about(names).arguments
                where = self.belief["last_seen"].get(thing)
                if where not in (None, place):
                    yield rule.syntax.format(**{**names, need.arguments[1]: where})
        goals = {effect.about(names) for effect in rule.outcomes}
        for other in self.manual.actions:
            if other is rule or not other.printed or set(other.parameters) - set(rule.parameters):
                continue
            if goals and goals <= {effect.about(names) for effect in other.outcomes}:
                yield other.syntax.format(**names)

    def _truth(self, predicate: Predicate, names: Names) -> Truth:
        return evaluate(predicate, self.belief, self.manual.world, names)

    def _failing(self, rule: ActionRule, names: Names) -> list[Predicate]:
        """The needs that definitely do not hold; of a blank nothing can be said yet."""
        needs = [p for p in rule.needs if not any(BLANK in a for a in p.about(names).arguments)]
        return [need for need in needs if self._truth(need, names) is False]

    def _way_for(self, need: Predicate, names: Names, before: tuple[str, ...]) -> list[str] | None:
        """The actions that bring a need about; None where none does."""
        if len(before) > LONGEST:
            return None
        need = need.about(names)
        composed = self.manual.world.predicates
        if need.positive and need.name in composed:
            inner = dict(zip((ARGUMENT,), need.arguments, strict=False))
            for choice in composed[need.name]:
                failing = [
                    p for p in map(parse_predicate, choice) if self._truth(p, inner) is False
                ]
                ways = [self._way_for(part, inner, before) for part in failing]
                if ways and None not in ways:
                    return ways[0]
            return None
        best: list[str] | None = None
        for fact in self._facts(need):
            for action in self._achievers(fact, before):
                way = self.way_to(action, before)
                if way is None or len(way) >= LONGEST:
                    continue
                if best is None or len(way) + 1 < len(best):
                    best = [*way, action]
        return best

    def _facts(self, need: Predicate) -> Iterator[Predicate]:
        """The facts that effects speak of, any one of which would meet a need."""
        doors, name = self.belief["containers"], need.name if need.positive else f"not {need.name}"
        if name == "hand_empty":
            yield from (Predicate(False, "holding", (held,)) for held in self.belief["holding"])
        elif name in ("accessible", "unclosed"):
            yield Predicate(True, "open", need.arguments)
        elif name == "adjacent":
            forms = self.manual.world.wording.passages_to
            passages = [form.format(*need.arguments) for form in forms]
            yield from (Predicate(True, "open", (p,)) for p in passages if doors.get(p) == "closed")
        elif name in ("here", "visible"):
            places = list(around(self.belief, bare_name(need.arguments[0])))
            there = [Predicate(True, "at", (place,)) for place in places[-1:]]
            away = [fact for fact in there if self._truth(fact, {}) is False]
            shut = [place for place in places if doors.get(place) == "closed"]
            yield from away or [Predicate(True, "open", (place,)) for place in shut[-1:]]
        elif name != "not at":  # to go away is no aim
            yield need

    def _achievers(self, fact: Predicate, before: tuple[str, ...]) -> Iterator[str]:
        """The actions with this effect, their other names filled in from the belief.

        One that needs what the action before it is to achieve comes too late to be of use. What the
        list of actions leaves out is not advised.
        """
        later, names = match_action(self.manual, before[-1]) or (None, {})
        effects = [effect.about(names) for effect in later.outcomes] if later else []
        goals = {effect for effect in effects if self._truth(effect, {}) is not True}
        for rule in self.manual.actions:
            if not rule.printed or not self.manual.knows(rule):
                continue
            for effect in rule.outcomes:
                bound = unify(effect, fact, rule.parameters)
                if bound is None or goals & {need.about(bound) for need in rule.needs}:
                    continue
                action = self._complete(rule, bound, before[0])
                if action not in before:
                    yield action

    def _complete(self, rule: ActionRule, names: Names, aim: str) -> str:
        """The action with every name; where the belief does not know one, with a blank for it.

        Only a name that is known to fit is filled in, or one that fits once the agent is there. The
        nearest at hand comes first.
        """
        missing = [name for name in rule.parameters if name not in names]
        belief, (_, aimed_at) = self.belief, match_action(self.manual, aim) or (None, {})
        here = [place for place in (belief["location"], *belief["reachable"]) if place]
        known = dict.fromkeys([*here, *belief["holding"], *aimed_at.values(), *belief["places"]])
        concerned = [need for need in rule.needs if set(missing) & set(need.arguments)]
        fitting: dict[str, int] = {}
        for values in product(known, repeat=len(missing)):
            bound = {**names, **dict(zip(missing, values, strict=True))}
            truths = {need: self._truth(need, bound) for need in concerned}
            away = [need for need, truth in truths.items() if truth is not True]
            if all(need.name == "at" and truths[need] is False for need in away):
                fitting.setdefault(rule.syntax.format(**bound), len(away))
        if fitting:
            return min(fitting, key=fitting.__getitem__)
        return rule.syntax.format(**names, **{name: f"<{name}>" for name in missing})
