"""Repairs an infeasible action: finds actions whose effects meet its unmet preconditions.

Such an action may have unmet preconditions itself, so the path is followed back to an action that
is possible now.

Advice must be safe to follow. A name is filled in only if a precondition on that parameter holds of
it; otherwise a blank stays. An action that a rule forbids for the goal, that releases the goal's
object, that breaks another precondition, or that cannot be undone is withheld. If nothing else
helps, no advice is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from rpms.guard.look_ups import Blank, has_blanks, look_up_choices, was_made
from rpms.rules.effects import already_done
from rpms.rules.manual import Manual
from rpms.rules.predicates import (
    ARGUMENT,
    Predicate,
    argument_names,
    evaluate,
    is_evidence,
    parse_predicate,
    reads_values,
    unify,
)
from rpms.rules.schema import ActionRule
from rpms.rules.things import places_around
from rpms.rules.verdicts import check_action, forbidden_by, match_action
from rpms.rules.wording import need as in_words
from rpms.vocabulary.belief import Belief, in_order, kind_of
from rpms.vocabulary.calls import Call
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.naming import Truth, bare_name, refers_to

# The longest path, in actions: longer ones are plans, and planning is the agent's part.
LONGEST = 3
# Begins a blank, which stands for an unknown name.
BLANK = "<"
# Predicates that hold of values of any kind: they do not show the kind.
KINDLESS = {"hand_empty", "changed", "looked_around", "here_closed"}
# A veto names at most this many places.
MOST_PLACES = 12

Names = Mapping[str, str]


class Repair(NamedTuple):
    """How an infeasible action can be made possible.

    Attributes:
        kind: ``first`` names what to do before it, ``instead`` another action to the same end,
            ``done`` says that its effects hold already, ``never`` that no action helps,
            ``elsewhere`` that the action names a place which does not exist.
        actions: in order; an unknown name is a blank.
        lacking: the need that no action meets, or the places that exist, in words.
    """

    kind: Literal["first", "instead", "done", "never", "elsewhere"]
    actions: tuple[str, ...] = ()
    lacking: str = ""

    @property
    def playable(self) -> str:
        """The next action; empty if there is none or it has a blank."""
        return self.actions[0] if self.actions and BLANK not in self.actions[0] else ""

    @property
    def words(self) -> str:
        """The repair as the end of a veto: ``first: go to fridge 1, then: open fridge 1``."""
        if self.kind == "done":
            return "what it would do is done already"
        if self.kind == "never":
            return f"no known action causes {self.lacking}"
        if self.kind == "elsewhere":
            return self.lacking
        return f"{self.kind}: {', then: '.join(self.actions)}"


def find_repair(
    manual: Manual, action: str, belief: Belief, goal: GoalSpec | None = None
) -> Repair | None:
    """Find a repair of an action that definitely fails; None for any other action.

    None also if the only help is not safe to advise under this goal.
    """
    if check_action(manual, action, belief).verdict != "broken":
        return None
    if already_done(manual, action, belief):
        return Repair("done")
    planner = RepairPlanner(manual, belief, goal)
    if path := planner.path_to(action, ()):
        return Repair("first", tuple(path))
    for other in planner.to_the_same_end(action):
        path = planner.path_to(other, (action,))
        if path is not None and len(path) < LONGEST:
            return Repair("instead", (*path, other))
    if places := _existing_places(manual, action, belief):
        return Repair("elsewhere", lacking=places)
    lacking = planner.lacking(action)
    return Repair("never", lacking=lacking) if lacking else None


def _existing_places(manual: Manual, action: str, belief: Belief) -> str:
    """The places to choose from if an action names one that does not exist; else empty.

    Models count on: after the last drawer, drawer 3, they search drawer 4. Only a world in which
    moving needs an existing place says that its list of places is complete.
    """
    rule, names = match_action(manual, action) or (None, {})
    complete = any(need.name == "place" for other in manual.actions for need in other.needs)
    places = sorted(belief["places"], key=in_order)
    unknown = [names[name] for name in rule.places if names[name] not in places] if rule else []
    if not (complete and places and unknown):
        return ""
    kind = kind_of(unknown[0])
    alike = [place for place in places if kind_of(place) == kind]
    unsearched = [place for place in places if place not in belief["searched"]]
    texts = [f"the only {kind} here: {_some(alike)}" if alike else f"there is no {kind} here"]
    texts += [f"not searched yet: {_some(unsearched)}" if unsearched else "all is searched"]
    return "; ".join(texts)


def _some(places: Sequence[str]) -> str:
    return ", ".join(places[:MOST_PLACES]) + (", ..." if len(places) > MOST_PLACES else "")


Unmet = tuple[Mapping[str, Any], Sequence[Predicate], Belief]
"""The unmet needs of a rule, in one reading of a call and one belief."""


class CallRepair(NamedTuple):
    """How a refused call can be made possible.

    Attributes:
        words: the calls to make first; empty if nothing is known to help.
        fruitless: look-ups that were made and did not show what they should.
    """

    words: str = ""
    fruitless: tuple[str, ...] = ()


def repair_call(
    manual: Manual, rule: ActionRule, unmet: Sequence[Unmet], goal: GoalSpec | None
) -> CallRepair:
    """Find what would meet the unmet needs of a call.

    Of each rule these are the calls that show missing evidence, else those whose effects meet a
    need. A look-up that has shown nothing is not advised again.
    """
    steps: list[str] = []
    fruitless: dict[str, str] = {}
    blanks: list[str] = []
    for bindings, lacking, belief in unmet:
        choices = [*look_up_choices(manual, bindings, lacking, belief)]
        for calls in choices:
            made = [call for call in calls if was_made(manual, call, belief)]
            if made:
                fruitless[str(made[0])] = f"{made[0]} was {was_made(manual, made[0], belief)}"
            else:
                (blanks if has_blanks(calls[0]) else steps).append(str(calls[0]))
        if not choices:
            steps += _effects_that_help(manual, rule, bindings, lacking, belief, goal)
    advised = dict.fromkeys([*steps, *blanks])
    words = [f"first: {', then: '.join(advised)}"] if advised else []
    return CallRepair("; ".join([*fruitless.values(), *words]), tuple(fruitless))


def _effects_that_help(
    manual: Manual,
    rule: ActionRule,
    bindings: Mapping[str, Any],
    lacking: Sequence[Predicate],
    belief: Belief,
    goal: GoalSpec | None,
) -> list[str]:
    """The calls whose effects meet the first need that some can meet."""
    names = {
        name: (argument_names(bindings[name]) or [f"<{name}>"])[0]
        for name in rule.parameters
        if name in bindings
    }
    action = rule.syntax.format(**names)
    if match_action(manual, action) != (rule, names):
        return []
    planner = RepairPlanner(manual, belief, goal)
    for need in lacking:
        if reads_values(need.name):
            continue
        if path := planner.path_for(need, names, (action,)):
            return [_as_call(manual, step) for step in path]
    return []


def _as_call(manual: Manual, action: str) -> str:
    matched = match_action(manual, action)
    if matched is None:
        return action
    rule, names = matched
    arguments = {
        name: Blank(names[parameter]) if names[parameter].startswith(BLANK) else names[parameter]
        for name, parameter in rule.called.items()
    }
    return str(Call(rule.name, arguments))


class RepairPlanner:
    """Follows the needs of an action back to actions that are possible now."""

    def __init__(self, manual: Manual, belief: Belief, goal: GoalSpec | None = None) -> None:
        """``withheld`` becomes true if an action would help that is not advised."""
        self.manual, self.belief, self.goal = manual, belief, goal
        self.withheld = False

    def path_to(self, action: str, before: tuple[str, ...]) -> list[str] | None:
        """The actions after which no need of an action definitely fails; None if there are none.

        ``before`` holds the actions that this one is needed for.
        """
        matched = match_action(self.manual, action)
        if matched is None or not self.manual.knows(matched[0]):
            return None
        rule, names = matched
        paths = [self.path_for(n, names, (*before, action)) for n in self._failing(rule, names)]
        if None in paths:  # one need that nothing meets makes the others pointless
            return None
        return next((path for path in paths if path), [])

    def lacking(self, action: str) -> str:
        """The first need that no action meets, withheld ones included; empty if there is none.

        A need of evidence, or of another argument, can still be met and does not count.
        """
        rule, names = match_action(self.manual, action) or (None, {})
        for need in self._failing(rule, names) if rule else ():
            self.withheld = False
            is_argument = need.name in ("in", "kind") and self.manual.facts.unmoved
            if is_evidence(need, self.manual.facts) or is_argument:
                continue
            if self.path_for(need, names, (action,)) is None and not self.withheld:
                return in_words(need, names, self.manual.facts)
        return ""

    def to_the_same_end(self, action: str) -> Iterator[str]:
        """Other actions with the same effect: with the place where a thing is, or another rule."""
        matched = match_action(self.manual, action)
        if matched is None:
            return
        rule, names = matched
        for need in rule.needs:
            if need.name == "in" and need.arguments[1] in names:
                thing, place = need.bind(names).arguments
                where = self.belief["last_seen"].get(thing)
                moved = rule.syntax.format(**{**names, need.arguments[1]: where})
                if where not in (None, place) and self._is_safe(moved, ()):
                    yield moved
        goals = {effect.bind(names) for effect in rule.outcomes}
        for other in self.manual.actions:
            if other is rule or not other.printed or set(other.parameters) - set(rule.parameters):
                continue
            if goals and goals <= {effect.bind(names) for effect in other.outcomes}:
                same = other.syntax.format(**names)
                if self._is_safe(same, ()):
                    yield same

    def _truth(self, predicate: Predicate, names: Names) -> Truth:
        return evaluate(predicate, self.belief, self.manual.facts, names)

    def _failing(self, rule: ActionRule, names: Names) -> list[Predicate]:
        """The needs that definitely fail; a need with a blank is undecided."""
        needs = [p for p in rule.needs if not any(BLANK in a for a in p.bind(names).arguments)]
        return [need for need in needs if self._truth(need, names) is False]

    def path_for(self, need: Predicate, names: Names, before: tuple[str, ...]) -> list[str] | None:
        """The actions that achieve a need; None if none does.

        The best has the fewest blanks, then the fewest actions, then the fewest names chosen.
        """
        if len(before) > LONGEST:
            self.withheld = True
            return None
        need = need.bind(names)
        composed = self.manual.facts.predicates
        if need.positive and need.name in composed:
            inner = dict(zip((ARGUMENT,), need.arguments, strict=False))
            for choice in composed[need.name]:
                failing = [
                    p for p in map(parse_predicate, choice) if self._truth(p, inner) is False
                ]
                paths = [self.path_for(part, inner, before) for part in failing]
                if paths and None not in paths:
                    return paths[0]
            return None
        best: tuple[tuple[int, int, int], list[str]] | None = None
        for fact in self._facts(need):
            for action, chosen in self._achievers(fact, before):
                path = self.path_to(action, before)
                if path is None:
                    continue
                if len(path) >= LONGEST:
                    self.withheld = True
                    continue
                path = [*path, action]
                cost = (sum(step.count(BLANK) for step in path), len(path), chosen)
                if best is None or cost < best[0]:
                    best = cost, path
        return best[1] if best else None

    def _facts(self, need: Predicate) -> Iterator[Predicate]:
        """Facts of which any one would meet a need, in the terms of effects."""
        doors, name = self.belief["containers"], need.name if need.positive else f"not {need.name}"
        if name == "hand_empty":
            yield from (Predicate(False, "holding", (held,)) for held in self.belief["holding"])
        elif name in ("accessible", "unclosed"):
            yield Predicate(True, "open", need.arguments)
        elif name == "adjacent":
            forms = self.manual.facts.wording.passages_to
            passages = [form.format(*need.arguments) for form in forms]
            yield from (Predicate(True, "open", (p,)) for p in passages if doors.get(p) == "closed")
        elif name in ("here", "visible"):
            places = list(places_around(self.belief, bare_name(need.arguments[0])))
            at_place = [Predicate(True, "at", (place,)) for place in places[-1:]]
            away = [fact for fact in at_place if self._truth(fact, {}) is False]
            shut = [place for place in places if doors.get(place) == "closed"]
            yield from away or [Predicate(True, "open", (place,)) for place in shut[-1:]]
        elif name == "seen":  # an action achieves the fact, and its answer shows it
            yield need._replace(name="state")
        elif name in ("not seen", "not state"):
            thing, state = need.arguments
            yield need._replace(name="state")
            for family in self.manual.facts.alternatives:
                others = sorted(family - {state}) if state in family else []
                yield from (Predicate(True, "state", (thing, other)) for other in others)
        elif name != "not at":  # moving away is no aim
            yield need

    def _achievers(self, fact: Predicate, before: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        """The actions with this effect, each with how many of its names were chosen here.

        An action that needs the effect it is to enable is useless. Actions that are not printed are
        not advised.
        """
        later, names = match_action(self.manual, before[-1]) or (None, {})
        effects = [effect.bind(names) for effect in later.outcomes] if later else []
        goals = {effect for effect in effects if self._truth(effect, {}) is not True}
        for rule in self.manual.actions:
            if not self.manual.knows(rule):
                continue
            for effect in rule.outcomes:
                bound = unify(effect, fact, rule.parameters)
                if bound is None or goals & {need.bind(bound) for need in rule.needs}:
                    continue
                action = self._complete(rule, bound, before[0])
                if action in before:
                    continue
                if rule.printed and not rule.verified and self._is_safe(action, before):
                    yield action, len(rule.parameters) - len(bound)
                else:
                    self.withheld = True

    def _is_safe(self, action: str, before: tuple[str, ...]) -> bool:
        """Return whether an action harms neither the goal nor the needs of later actions."""
        rule, names = match_action(self.manual, action) or (None, {})
        if rule is None:
            return False
        effects = [effect.bind(names) for effect in rule.outcomes]
        if self.goal is not None:
            if forbidden_by(self.manual, action, self.goal, self.belief):
                return False
            kind = self.goal["object"]
            loses = (e.arguments[0] for e in effects if not e.positive and e.name == "holding")
            if kind and any(refers_to(name, kind) for name in loses):
                return False
        needs = (need for later in before for need in self._needs(later))
        held = [need for need in needs if self._truth(need, {}) is True]
        return not any(self._spoils(effect, need) for effect in effects for need in held)

    def _needs(self, action: str) -> list[Predicate]:
        rule, names = match_action(self.manual, action) or (None, {})
        return [need.bind(names) for need in rule.needs] if rule else []

    def _spoils(self, effect: Predicate, need: Predicate) -> bool:
        """Return whether an effect breaks a need: it negates it, or is a state that excludes it.

        Moving breaks nothing, because the agent can return.
        """
        if effect == need._replace(positive=not need.positive):
            return True
        if need.name == "seen":
            need = need._replace(name="state")
        if {effect.name, need.name} == {"open", "closed"} and effect.positive and need.positive:
            return effect.arguments == need.arguments
        return (
            effect.positive
            and need.positive
            and (effect.name, need.name) == ("state", "state")
            and effect.arguments[0] == need.arguments[0]
            and self._exclude(effect.arguments[1], need.arguments[1])
        )

    def _exclude(self, state: str, other: str) -> bool:
        """Return whether two states exclude each other."""
        families = self.manual.facts.alternatives
        if not families:  # a thing has one state
            return state != other
        return state != other and any({state, other} <= family for family in families)

    def _complete(self, rule: ActionRule, names: Names, aim: str) -> str:
        """The action with all names filled in; an unknown name is a blank.

        A name is filled in only if it fits, or will fit once the agent is there: a precondition on
        that parameter shows its kind. The nearest name comes first.
        """
        missing = [name for name in rule.parameters if name not in names]
        belief, (_, aimed_at) = self.belief, match_action(self.manual, aim) or (None, {})
        reachable = [place for place in (belief["location"], *belief["reachable"]) if place]
        candidates = dict.fromkeys(
            [*reachable, *belief["holding"], *aimed_at.values(), *belief["places"]]
        )
        open_needs = [need for need in rule.needs if set(missing) & set(need.arguments)]
        fitting: dict[str, int] = {}
        for values in product(candidates, repeat=len(missing)):
            bound = {**names, **dict(zip(missing, values, strict=True))}
            truths = {need: self._truth(need, bound) for need in open_needs}
            away = [need for need, truth in truths.items() if truth is not True]
            if not all(need.name == "at" and truths[need] is False for need in away):
                continue
            if all(self._of_its_kind(rule, name, bound[name], truths) for name in missing):
                fitting.setdefault(rule.syntax.format(**bound), len(away))
        if fitting:
            return min(fitting, key=fitting.__getitem__)
        return rule.syntax.format(**names, **{name: f"<{name}>" for name in missing})

    def _of_its_kind(
        self, rule: ActionRule, parameter: str, value: str, truths: Mapping[Predicate, Truth]
    ) -> bool:
        """Return whether a value is known to be of a parameter's kind."""
        if parameter in rule.places and value in self.belief["places"]:
            return True
        return any(
            truth is True
            and need.positive
            and not reads_values(need.name)
            and need.name not in KINDLESS
            for need, truth in truths.items()
            if parameter in need.arguments
        )
