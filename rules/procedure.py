"""Procedure as data: which actions serve the current sub-goal, and what speaks against another.

The domain tier lists, for every sub-goal, action patterns that serve it, best first. They are
filled in with the names the belief knows and kept if Tier 3 allows them, no rule forbids them, and
they were not tried in vain. Nothing here asks the environment what is possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from rules.manual import Manual
from rules.naming import refers_to
from rules.predicates import Predicate, evaluate, parse_predicate
from rules.schema import ActionRule, Service
from rules.semantics import check_action, forbidden_by, match_action
from vocabulary.belief import Belief, copy_belief, kind_of
from vocabulary.decision import Choice
from vocabulary.goal import GoalSpec, SubGoal

Bindings = Mapping[str, str]
UNLIKELY = 1000
"""The rank of what is no likely place: behind all that are."""


class Veto(NamedTuple):
    """What speaks against an action; ``rule`` is the id that says so."""

    rule: str
    reason: str


class Situation(NamedTuple):
    """All that judging an action may look at.

    ``vain`` holds the actions played since the belief last changed: they changed nothing, and
    nothing has changed for them since. ``circled`` holds those played in this very belief before:
    whatever they changed, the way from there led back here.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    vain: Collection[str] = ()
    circled: Collection[str] = ()


def with_refusals(now: Situation) -> Situation:
    """The same with what refusals have told: a walk that leads nowhere ends at this very spot.

    The belief itself takes nothing from a refusal, as in the paper.
    """
    here = []
    for action in now.vain:
        matched = match_action(now.manual, action)
        if matched and matched[0].refused_means_here:
            here.append(matched[1][matched[0].refused_means_here])
    if not here:
        return now
    belief = copy_belief(now.belief)
    belief["reachable"] = list(dict.fromkeys([*belief["reachable"], *here]))
    return now._replace(belief=belief)


def veto(now: Situation, action: str) -> Veto | None:
    """Why an action should not be played now: infeasible, forbidden, in vain, or a circle."""
    diagnosis = check_action(now.manual, action, now.belief)
    if diagnosis.verdict == "no_such_action":
        return Veto("U-FAIL-003", diagnosis.violated[0])
    if diagnosis.verdict == "fails":
        return Veto(diagnosis.rule, f"'{action}' needs: {'; '.join(diagnosis.violated)}")
    if rule := forbidden_by(now.manual, action, now.goal):
        return Veto(rule, f"'{action}' is forbidden for this goal")
    matched = match_action(now.manual, action)
    if matched and matched[0].repeatable:
        return None
    if action in now.vain:
        return Veto("U-FAIL-001", f"'{action}' changed nothing before, and nothing changed since")
    if action in now.circled:
        return Veto("U-FAIL-001", f"'{action}' was played in this very situation and led back here")
    return None


def serving_actions(now: Situation) -> list[Choice]:
    """Every action that serves the current sub-goal and that nothing speaks against, best first.

    Where every one of them has been round a circle already, they are offered once more: one of
    them may have been left too early.
    """
    now = with_refusals(now)
    return _serving(now) or (_serving(now._replace(circled=())) if now.circled else [])


def _serving(now: Situation) -> list[Choice]:
    found: dict[str, Choice] = {}
    enough = False
    for service in now.manual.domain.serves.get(now.sub_goal["name"], []):
        if service.last_resort and enough:
            continue
        before = len(found)
        rule = next(rule for rule in now.manual.actions if rule.name == service.action)
        for names in _fitting(now, service, rule):
            action = rule.syntax.format(**names)
            if action not in found and veto(now, action) is None:
                reason = service.because.format(**names)
                found[action] = Choice(action=action, rule=rule.id, reason=reason)
                enough = enough or not service.last_resort
        if service.settles and len(found) > before:
            break
    return list(found.values())


def _fitting(now: Situation, service: Service, rule: ActionRule) -> list[dict[str, str]]:
    """The fillings of a pattern, best first; only the likely ones while there are any."""
    ranked = sorted(
        ((_rank(now, service, names), names) for names in _fill(now, service, rule)),
        key=lambda pair: pair[0],
    )
    likely = [names for (position, _), names in ranked if position < UNLIKELY]
    return likely or [names for _, names in ranked]


def _fill(now: Situation, service: Service, rule: ActionRule) -> Iterator[dict[str, str]]:
    """The bindings of a pattern's parameters under which its conditions hold.

    What concerns one parameter is settled before parameters are combined.
    """
    wanted = [parse_predicate(text) for text in service.when]
    needed = [parse_predicate(text) for text in rule.preconditions]

    def alone(parameter: str, predicate: Predicate) -> bool:
        return [a for a in predicate.arguments if a in rule.parameters] == [parameter]

    pools = []
    for parameter in rule.parameters:
        mine = [p for p in wanted if alone(parameter, p)]
        allowed = [p for p in needed if alone(parameter, p)]
        pools.append(
            [
                name
                for name in _names(now.belief)
                if all(_holds(now, p, {parameter: name}) for p in mine)
                and all(
                    evaluate(p, now.belief, now.manual.world, {parameter: name}) is not False
                    for p in allowed
                )
            ]
        )
    for values in product(*pools):
        names = dict(zip(rule.parameters, values, strict=True))
        if len(set(values)) == len(values) and all(_holds(now, p, names) for p in wanted):
            yield names


def _names(belief: Belief) -> list[str]:
    """Everything that can be named: places, and things that are carried, in view or known."""
    return list(
        dict.fromkeys(
            [*belief["places"], *belief["holding"], *belief["visible"], *belief["last_seen"]]
        )
    )


def _holds(now: Situation, predicate: Predicate, names: Bindings) -> bool:
    """Whether a condition is known to hold; what is unknown does not."""
    arguments = [names.get(name, name) for name in predicate.arguments]
    if predicate.name in WORDS:
        return WORDS[predicate.name][1](now, *arguments) == predicate.positive
    fixed = {"$object": now.goal["object"], "$destination": now.goal["destination"]}
    return evaluate(predicate, now.belief, now.manual.world, {**fixed, **names}) is True


def _rank(now: Situation, service: Service, names: Bindings) -> tuple[int, list[object]]:
    """Likely places first, then in order of kind and number."""
    likely: Sequence[str] = []
    if service.likely:
        likely = now.manual.likely_places(now.goal[service.about])
    kind = kind_of(names.get(service.likely, ""))
    position = likely.index(kind) if kind in likely else UNLIKELY
    return position, [_in_order(name) for name in names.values()]


def _in_order(name: str) -> tuple[str, int]:
    kind = kind_of(name)
    number = name.removeprefix(kind).strip()
    return kind, int(number) if number.isdigit() else 0


# Conditions that only `serves` may use: they speak of the goal and of what has been looked into.


def _targeted(now: Situation, name: str) -> bool:
    """The sub-goal names it, or the kind of thing it is."""
    text = f" {now.sub_goal['target'].lower()} "
    return any(
        re.search(rf"(?<![\w-]){re.escape(word.lower())}(?! \d|[\w-])", text)
        for word in {name, kind_of(name)}
    )


def _is_object(now: Situation, name: str) -> bool:
    return refers_to(name, now.goal["object"])


def _is_destination(now: Situation, name: str) -> bool:
    return bool(now.goal["destination"]) and refers_to(name, now.goal["destination"])


def _shared_spot(now: Situation) -> bool:
    """Another place was found at this spot, and what else is here has not been looked at."""
    here = now.belief["location"]
    return bool(now.belief["reachable"]) and here not in now.belief["spots"]


def _shows_target(now: Situation, place: str) -> bool:
    """Something the sub-goal names was seen in this room."""
    return any(_targeted(now, thing) for thing in now.belief["spots"].get(place, []))


def _holds_target(now: Situation, name: str) -> bool:
    """Something the sub-goal names was seen in this container."""
    inside = (thing for thing, where in now.belief["last_seen"].items() if where == name)
    return any(_targeted(now, thing) for thing in inside)


def _has_category(now: Situation, name: str, category: str) -> bool:
    kinds = now.manual.domain.categories.get(category, [])
    return any(refers_to(name, kind) for kind in kinds)


WORDS: dict[str, tuple[int, Callable[..., bool]]] = {
    "targeted": (1, _targeted),
    "goal_object": (1, _is_object),
    "destination": (1, _is_destination),
    "unsearched": (1, lambda now, name: name not in now.belief["searched"]),
    "carried": (1, lambda now, name: name in now.belief["holding"]),
    "in_view": (1, lambda now, name: name in now.belief["visible"]),
    "seen_at": (2, lambda now, thing, place: now.belief["last_seen"].get(thing) == place),
    "shared_spot": (0, _shared_spot),
    "shows_target": (1, _shows_target),
    "holds_target": (1, _holds_target),
    "of_category": (2, _has_category),
    "mentioned": (
        1,
        lambda now, name: f" {name} " in re.sub(r"[.,'()]", " ", now.goal["sentence"]),
    ),
    "focused": (1, lambda now, name: name in now.belief["flags"].get("focus", "").split("; ")),
}
