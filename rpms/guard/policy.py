"""The policy: which action applies to the current sub-goal, and what speaks against another.

The manual says what is possible, the policy what to do. The domain tier lists, for every sub-goal,
action patterns that apply to it, best first. They are filled in with the names the belief knows and
stay if Tier 3 allows them, no rule forbids them, and they were not tried without effect. Nothing
here asks the environment what is possible.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import NamedTuple

from rpms.guard.decision import violations
from rpms.rules.conditions import (
    DecisionPoint,
    compared,
    holds,
    localities_of,
    mentioned,
    rank,
    sought_kind,
)
from rpms.rules.predicates import Predicate, evaluate, parse_predicate
from rpms.rules.schema import ActionRule, ApplicableAction
from rpms.rules.semantics import match_action
from rpms.vocabulary.belief import copy_belief, in_order
from rpms.vocabulary.naming import same_thing
from rpms.vocabulary.turn import Choice

# The principles that the guard acts by itself; where one is not in the manual, it does not.
NO_SUCH_ACTION, IN_VAIN = "O-FAIL-003", "U-FAIL-001"


class Veto(NamedTuple):
    """What speaks against an action, as a clause about "it"; ``rule`` is the id that says so."""

    rule: str
    reason: str


def with_rejections(point: DecisionPoint) -> DecisionPoint:
    """The same with what refusals have told: a walk that leads nowhere ends at this very spot.

    The belief itself takes nothing from a refusal, as in the paper.
    """
    here = []
    for action in point.no_effect:
        matched = match_action(point.manual, action)
        if matched and matched[0].rejected_means_here and point.manual.knows(matched[0]):
            here.append(matched[1][matched[0].rejected_means_here])
    if not here:
        return point
    belief = copy_belief(point.belief)
    belief["reachable"] = list(dict.fromkeys([*belief["reachable"], *here]))
    return point._replace(belief=belief)


def veto(point: DecisionPoint, action: str) -> Veto | None:
    """Why an action should not be played now: infeasible, forbidden or tried without effect.

    What led back here once may be tried again, as the rule says: it is the third time that is
    refused. Where answers are checked, an irreversible answer that is not the procedure's own is
    one more reason.
    """
    loops = [played for played, times in Counter(point.repeated_here).items() if times > 1]
    against = _ruled_out(point._replace(repeated_here=loops), action)
    return against or (_unverified(point, action) if point.check_answers else None)


def _ruled_out(point: DecisionPoint, action: str) -> Veto | None:
    """What speaks against an action whatever the procedure has in mind."""
    if action in point.belief["disambiguation"]:
        return None
    matched, principles = match_action(point.manual, action), point.manual.principles
    if matched is None and NO_SUCH_ACTION in principles:
        return Veto(NO_SUCH_ACTION, "it is not one of the available actions")
    if matched is not None:
        for violation in violations(point.manual, *matched, point.belief, point.goal):
            return Veto(violation.rule, violation.reason)
    if IN_VAIN not in principles:
        return None
    if action in point.refused:  # even one that is worth repeating: the world knows no such thing
        return Veto(IN_VAIN, "it was rejected before, and nothing has changed since")
    if matched and matched[0].repeatable:
        return None
    if action in point.no_effect:
        return Veto(IN_VAIN, "it changed nothing before, and nothing has changed since")
    if action in point.repeated_here:
        return Veto(IN_VAIN, "it was played in this very situation twice and led back here")
    return None


def _unverified(point: DecisionPoint, action: str) -> Veto | None:
    """An answer that cannot be undone, and that differs from the procedure's own choice.

    Only the blank that holds the answer is compared: the same box may be filled with `water` or
    with the `cup in inventory` that holds it. A phrase that stands for nothing known may mean it.
    """
    rule, names = match_action(point.manual, action) or (None, {})
    served = point.manual.domain.applicable
    if not (rule and rule.verified and point.manual.knows(rule) and served):
        return None
    conditions = map(parse_predicate, rule.verified_when)
    if not all(holds(point, condition, names) for condition in conditions):
        return None
    services = [each for each in served.get(point.sub_goal["name"], []) if each.action == rule.name]
    offered = {
        _plain(matched[1][rule.verified])
        for choice in _offer(point, services)
        if (matched := match_action(point.manual, choice["action"]))
    }
    phrase = _plain(names[rule.verified])
    meant = {name for name in map(_plain, nameable(point)) if same_thing(phrase, name)}
    if not meant or {phrase, *meant} & offered:
        return None
    return Veto(rule.id, "it cannot be undone, and it is not what the current objective needs")


def _plain(text: str) -> str:
    """Without articles: a `plane with a tin surface` is also called `plane with tin surface`."""
    return re.sub(r"\b(?:an?|the) ", "", text)


def applicable_actions(point: DecisionPoint) -> list[Choice]:
    """Every action that serves the current sub-goal and that nothing speaks against, best first.

    What is urgent comes before any sub-goal: while there is some of it, nothing else is offered.
    Where every action has been round a circle already, they are offered once more: one of them may
    have been left too early.
    """
    if point.belief["disambiguation"]:
        rule = point.manual.environment.disambiguation.rule
        return [Choice(action=_meant(point), rule=rule, reason="your last command was ambiguous")]
    point = with_rejections(point)
    return _serving(point) or (
        _serving(point._replace(repeated_here=())) if point.repeated_here else []
    )


def _serving(point: DecisionPoint) -> list[Choice]:
    domain = point.manual.domain
    return _offer(point, domain.urgent) or _offer(
        point, domain.applicable.get(point.sub_goal["name"], [])
    )


def _offer(point: DecisionPoint, services: Sequence[ApplicableAction]) -> list[Choice]:
    choices: dict[str, Choice] = {}
    enough = False
    for service in services:
        if service.last_resort and enough:
            continue
        if not {"all", point.goal["type"]} & set(service.goal_types):
            continue
        rule = next((r for r in point.manual.actions if r.name == service.action), None)
        if rule is None:  # a manual of the user's own may have no such action
            continue
        before, cited = len(choices), rule.id if point.manual.knows(rule) else ""
        for names in _fitting(point, service, rule):
            action = (service.wording or rule.syntax).format(**names)
            if action not in choices and _ruled_out(point, action) is None:
                readings = compared(point) if "{readings}" in service.because else ""
                usual = _usual(point, service, names) if "{usual}" in service.because else ""
                reason = service.because.format(**names, readings=readings, usual=usual)
                choices[action] = Choice(action=action, rule=cited, reason=reason)
                enough = enough or not service.last_resort
        if service.settles and len(choices) > before:
            break
    return list(choices.values())


def why_nothing(point: DecisionPoint) -> str:
    """What keeps each pattern of the sub-goal from being offered, for whoever writes a manual."""
    services = point.manual.domain.applicable.get(point.sub_goal["name"])
    if not services:
        return "nothing is listed under the name that the world's sub_goal() gives"
    obstacles = [f"{service.action}: {_obstacle(point, service)}" for service in services]
    known = ", ".join(nameable(point)) or "none"
    return f"{'; '.join(obstacles)} (names in places, holding, visible, last_seen: {known})"


def _obstacle(point: DecisionPoint, service: ApplicableAction) -> str:
    """What speaks against the first filling that is meant, else the condition that none fulfils."""
    rule = next(rule for rule in point.manual.actions if rule.name == service.action)
    conditions = [parse_predicate(text) for text in service.when]
    fillings = [dict(zip(rule.parameters, values, strict=True))
                for values in permutations(nameable(point), len(rule.parameters))]  # fmt: skip
    for names in fillings:
        if all(holds(point, condition, names) for condition in conditions):
            action = rule.syntax.format(**names)
            against = veto(point, action)
            other = "it is meant for other types of goals"
            return f"'{action}' would not do: {against.reason if against else other}"
    for condition in conditions:
        if not any(holds(point, condition, names) for names in fillings):
            return f"'{condition}' is not known to hold of anything"
    return "its conditions hold of nothing together" if fillings else "there is nothing to fill in"


def _fitting(
    point: DecisionPoint, service: ApplicableAction, rule: ActionRule
) -> list[dict[str, str]]:
    """The fillings of a pattern, best first; only the likely places while any is left."""
    fitting = sorted(
        _fill(point, service, rule), key=lambda names: [*map(in_order, names.values())]
    )
    if not service.likely:
        return fitting
    localities = localities_of(point, sought_kind(point, service.about))
    places = [place for line in localities for place in (*line.places, *line.inside)]
    ranked = [(rank(names[service.likely], places), names) for names in fitting]
    likely = [names for rank, names in sorted(ranked, key=lambda r: r[0]) if rank < len(places)]
    return likely or fitting


def _usual(point: DecisionPoint, service: ApplicableAction, names: Mapping[str, str]) -> str:
    """The line that speaks for a step of a search, or that there is none left."""
    sought, name = sought_kind(point, service.about), names[service.likely]
    localities = localities_of(point, sought)
    for line in localities:
        if rank(name, [*line.places, *line.inside]) < len(line.places) + len(line.inside):
            return f"{line.what or sought} is {line.how_often} there [{line.id}]"
    return f"{sought} was at none of its usual places" if localities else f"{sought} may be there"


def _fill(
    point: DecisionPoint, service: ApplicableAction, rule: ActionRule
) -> Iterator[dict[str, str]]:
    """The bindings of a pattern's parameters under which its conditions hold.

    What concerns none or one of the parameters is settled before they are combined.
    """
    conditions = [parse_predicate(text) for text in service.when]
    needs = rule.needs if point.manual.knows(rule) else []

    def about(predicate: Predicate) -> list[str]:
        return [name for name in predicate.arguments if name in rule.parameters]

    def possible(predicate: Predicate, names: Mapping[str, str]) -> bool:
        return evaluate(predicate, point.belief, point.manual.facts, names) is not False

    if not all(holds(point, condition, {}) for condition in conditions if not about(condition)):
        return
    known, pools = nameable(point), []
    for parameter in rule.parameters:
        alone = [condition for condition in conditions if about(condition) == [parameter]]
        needed = [need for need in needs if about(need) == [parameter]]
        names_of = [
            name for name in known if all(holds(point, p, {parameter: name}) for p in alone)
        ]
        pools.append([n for n in names_of if all(possible(p, {parameter: n}) for p in needed)])
    for values in product(*pools):
        names = dict(zip(rule.parameters, values, strict=True))
        if len(set(values)) == len(values) and all(holds(point, p, names) for p in conditions):
            yield names


def nameable(point: DecisionPoint) -> list[str]:
    """Everything that can be named: places, and things that are carried, in view or known.

    A place that the task names, or that the manual says something is at, can be gone to before it
    was ever seen.
    """
    belief = point.belief
    named = [place for place in point.manual.facts.connected if _told(point, place)]
    things = [*belief["holding"], *belief["visible"], *belief["last_seen"]]
    return list(dict.fromkeys([*belief["places"], *named, *things]))


def _told(point: DecisionPoint, place: str) -> bool:
    lines = point.manual.localities(point.goal)
    return mentioned(point, place) or any(place in line.places for _, line in lines)


def _meant(point: DecisionPoint) -> str:
    """The number of the line that agrees best with what the belief says is where.

    The first of equals: where all are alike, the same one should be meant each time.
    """
    belief, disambiguation = point.belief, point.manual.environment.disambiguation
    places = {**belief["last_seen"], **dict.fromkeys(belief["holding"], disambiguation.carried)}
    facts = [disambiguation.line.format(name=name, place=place) for name, place in places.items()]
    lines = belief["disambiguation"]
    return max(lines, key=lambda number: sum(fact in lines[number] for fact in facts))
