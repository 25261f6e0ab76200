"""The procedure: the applicable actions of the current sub-goal, and why others may not be taken.

The manual says what is possible, the procedure what to do. The domain tier lists, for every
sub-goal, action patterns that apply to it, best first. They are filled with the names in the
belief, and kept if Tier 3 allows them, no rule forbids them, and they were not tried without
effect. The environment is not asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations, product

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
from rpms.rules.verdicts import Violation, check_action, match_action, violations
from rpms.vocabulary.belief import copy_belief, in_order
from rpms.vocabulary.naming import same_thing
from rpms.vocabulary.turn import Choice

# Conditions that are open, not false, while the recorded numbers do not differ.
COMPARING = ("reads_lowest", "reads_highest")
# The guard applies these principles only if the manual has them.
NO_SUCH_ACTION, NO_EFFECT = "O-FAIL-003", "U-FAIL-001"


def with_rejections(point: DecisionPoint) -> DecisionPoint:
    """The decision point with places that rejections showed to be at this spot.

    A rejection shows nothing if an unmet precondition explains it, such as a place that this room
    does not have. The belief itself learns nothing from a rejection, as in the paper.
    """
    places = []
    for action in point.no_effect:
        rule, names = match_action(point.manual, action) or (None, {})
        explained = check_action(point.manual, action, point.belief).verdict == "broken"
        if rule and rule.rejected_means_here and point.manual.knows(rule) and not explained:
            places.append(names[rule.rejected_means_here])
    if not places:
        return point
    belief = copy_belief(point.belief)
    belief["reachable"] = list(dict.fromkeys([*belief["reachable"], *places]))
    return point._replace(belief=belief)


def find_violation(point: DecisionPoint, action: str) -> Violation | None:
    """Why an action should not be executed: infeasible, forbidden or tried without effect.

    An action that led back here once may be tried again, as the rule says: the third time is
    vetoed. If answers are checked, an irreversible answer that is not the procedure's choice is
    vetoed as well.
    """
    loops = [repeated for repeated, times in Counter(point.repeated_here).items() if times > 1]
    base_violation = _base_violation(point._replace(repeated_here=loops), action)
    return base_violation or (_answer_violation(point, action) if point.check_answers else None)


def _base_violation(point: DecisionPoint, action: str) -> Violation | None:
    """The veto of an action that does not depend on the procedure."""
    if action in point.belief["disambiguation"]:
        return None
    matched, principles = match_action(point.manual, action), point.manual.principles
    if matched is None and NO_SUCH_ACTION in principles:
        return Violation(NO_SUCH_ACTION, "it is not one of the available actions")
    if matched is not None:
        for violation in violations(point.manual, *matched, point.belief, point.goal):
            return violation
    if NO_EFFECT not in principles:
        return None
    if action in point.rejected:  # even a repeatable one: the environment does not know it
        return Violation(NO_EFFECT, "it was rejected before, and nothing has changed since")
    if matched and matched[0].repeatable:
        return None
    if action in point.no_effect:
        return Violation(NO_EFFECT, "it changed nothing before, and nothing has changed since")
    if action in point.repeated_here:
        return Violation(NO_EFFECT, "it was played in this very situation twice and led back here")
    return None


def _answer_violation(point: DecisionPoint, action: str) -> Violation | None:
    """Veto an irreversible answer that differs from the procedure's choice.

    Only the parameter that holds the answer is compared: the same box may be filled with `water` or
    with the `cup in inventory` that holds it. An unknown phrase may mean the right thing, and a
    phrase may say where its thing is. If the sub-goal has an answer that the procedure cannot
    choose yet, it does not judge what is out of view, nor what different numbers would decide.
    """
    rule, names = match_action(point.manual, action) or (None, {})
    applicable = point.manual.domain.applicable
    if not (rule and rule.verified and point.manual.knows(rule) and applicable):
        return None
    conditions = map(parse_predicate, rule.verified_when)
    if not all(holds(point, condition, names) for condition in conditions):
        return None
    patterns = [
        each for each in applicable.get(point.sub_goal["name"], [])
        if each.action == rule.name and _concerns(point, each, rule)
    ]  # fmt: skip
    choices = {
        _plain(matched[1][rule.verified])
        for choice in _offer(point, patterns, all_lines=True)
        if (matched := match_action(point.manual, choice["action"]))
    }
    phrase = _plain(names[rule.verified])
    matches = {name for name in map(_plain, nameable(point)) if same_thing(phrase, name)}
    located = {choice for choice in choices if phrase.startswith(f"{choice} in ")}
    if not matches or located or {phrase, *matches} & choices:
        return None
    compares = any(parse_predicate(c).name in COMPARING for p in patterns for c in p.when)
    in_view = matches & {*map(_plain, point.belief["visible"])}
    if patterns and not choices and (compares or not in_view):
        return None
    return Violation(rule.id, "it cannot be undone, and it is not what the current objective needs")


def _plain(text: str) -> str:
    """Remove articles: a `plane with a tin surface` is also called `plane with tin surface`."""
    return re.sub(r"\b(?:an?|the) ", "", text)


def applicable_actions(point: DecisionPoint) -> list[Choice]:
    """Every action that applies to the current sub-goal and has no veto, best first.

    Urgent actions come before any sub-goal: while there is one, nothing else is offered. If every
    action was part of a loop already, all are offered again: one of them may have been abandoned
    too early.
    """
    if point.belief["disambiguation"]:
        rule = point.manual.environment.disambiguation.rule
        return [
            Choice(action=_disambiguate(point), rule=rule, reason="your last command was ambiguous")
        ]
    point = with_rejections(point)
    return _offered(point) or (
        _offered(point._replace(repeated_here=())) if point.repeated_here else []
    )


def next_search(point: DecisionPoint) -> str:
    """The best action of the current sub-goal that looks where nobody has looked; else empty."""
    patterns = [
        pattern
        for pattern in point.manual.domain.applicable.get(point.sub_goal["name"], [])
        if any(parse_predicate(condition).name == "unsearched" for condition in pattern.when)
    ]
    return next((choice["action"] for choice in _offer(with_rejections(point), patterns)), "")


def _offered(point: DecisionPoint) -> list[Choice]:
    domain = point.manual.domain
    return _offer(point, domain.urgent) or _offer(
        point, domain.applicable.get(point.sub_goal["name"], [])
    )


def _offer(
    point: DecisionPoint, patterns: Sequence[ApplicableAction], all_lines: bool = False
) -> list[Choice]:
    """Fill the patterns; those of last resort if no other can be filled, or with ``all_lines``."""
    choices: dict[str, Choice] = {}
    enough = False
    for pattern in patterns:
        if pattern.last_resort and enough and not all_lines:
            continue
        rule = next((r for r in point.manual.actions if r.name == pattern.action), None)
        # A custom manual may have no such action.
        if rule is None or not _concerns(point, pattern, rule):
            continue
        count, rule_id = len(choices), rule.id if point.manual.knows(rule) else ""
        for names in _fitting(point, pattern, rule):
            action = (pattern.wording or rule.syntax).format(**names)
            if action not in choices and _base_violation(point, action) is None:
                readings = compared(point) if "{readings}" in pattern.because else ""
                usual = _usual(point, pattern, names) if "{usual}" in pattern.because else ""
                reason = pattern.because.format(**names, readings=readings, usual=usual)
                choices[action] = Choice(action=action, rule=rule_id, reason=reason)
                enough = enough or not pattern.last_resort
        if pattern.settles and len(choices) > count:
            break
    return list(choices.values())


def why_nothing(point: DecisionPoint) -> str:
    """Why each pattern of the sub-goal is not offered, for the author of a manual."""
    patterns = point.manual.domain.applicable.get(point.sub_goal["name"])
    if not patterns:
        return "nothing is listed under the name that the world's sub_goal() gives"
    obstacles = [f"{pattern.action}: {_obstacle(point, pattern)}" for pattern in patterns]
    names = ", ".join(nameable(point)) or "none"
    return f"{'; '.join(obstacles)} (names in places, holding, visible, last_seen: {names})"


def _obstacle(point: DecisionPoint, pattern: ApplicableAction) -> str:
    """The veto of the first filling that fits, else the condition that no filling meets."""
    rule = next(rule for rule in point.manual.actions if rule.name == pattern.action)
    conditions = [parse_predicate(text) for text in pattern.when]
    fillings = [dict(zip(rule.parameters, values, strict=True))
                for values in permutations(nameable(point), len(rule.parameters))]  # fmt: skip
    for names in fillings:
        if all(holds(point, condition, names) for condition in conditions):
            action = rule.syntax.format(**names)
            violation = find_violation(point, action)
            other_goals = "it is meant for other types of goals"
            return f"'{action}' would not do: {violation.reason if violation else other_goals}"
    for condition in conditions:
        if not any(holds(point, condition, names) for names in fillings):
            return f"'{condition}' is not known to hold of anything"
    return "its conditions hold of nothing together" if fillings else "there is nothing to fill in"


def _fitting(
    point: DecisionPoint, pattern: ApplicableAction, rule: ActionRule
) -> list[dict[str, str]]:
    """The fillings of a pattern, best first; only likely places while there are any."""
    fillings = sorted(
        _fill(point, pattern, rule), key=lambda names: [*map(in_order, names.values())]
    )
    if not pattern.likely:
        return fillings
    localities = localities_of(point, sought_kind(point, pattern.about))
    places = [place for line in localities for place in (*line.places, *line.inside)]
    ranked = [(rank(names[pattern.likely], places), names) for names in fillings]
    likely = [names for rank, names in sorted(ranked, key=lambda r: r[0]) if rank < len(places)]
    return likely or fillings


def _usual(point: DecisionPoint, pattern: ApplicableAction, names: Mapping[str, str]) -> str:
    """The line of the manual behind a step of a search, or that no usual place is left."""
    sought, name = sought_kind(point, pattern.about), names[pattern.likely]
    localities = localities_of(point, sought)
    for line in localities:
        if rank(name, [*line.places, *line.inside]) < len(line.places) + len(line.inside):
            return f"{line.what or sought} is {line.how_often} there [{line.id}]"
    return f"{sought} was at none of its usual places" if localities else f"{sought} may be there"


def _fill(
    point: DecisionPoint, pattern: ApplicableAction, rule: ActionRule
) -> Iterator[dict[str, str]]:
    """The bindings of a pattern's parameters under which its conditions hold.

    Conditions on at most one parameter are checked before parameters are combined.
    """
    conditions = [parse_predicate(text) for text in pattern.when]
    needs = rule.needs if point.manual.knows(rule) else []

    parameters_in = partial(_parameters_in, rule)

    def possible(predicate: Predicate, names: Mapping[str, str]) -> bool:
        return evaluate(predicate, point.belief, point.manual.facts, names) is not False

    candidates, pools = nameable(point), []
    for parameter in rule.parameters:
        single = [condition for condition in conditions if parameters_in(condition) == [parameter]]
        needed = [need for need in needs if parameters_in(need) == [parameter]]
        names_of = [
            name for name in candidates if all(holds(point, p, {parameter: name}) for p in single)
        ]
        pools.append([n for n in names_of if all(possible(p, {parameter: n}) for p in needed)])
    for values in product(*pools):
        names = dict(zip(rule.parameters, values, strict=True))
        if len(set(values)) == len(values) and all(holds(point, p, names) for p in conditions):
            yield names


def _concerns(point: DecisionPoint, pattern: ApplicableAction, rule: ActionRule) -> bool:
    """The pattern is meant for this goal, and its conditions on nothing in particular hold."""
    conditions = map(parse_predicate, pattern.when)
    return bool({"all", point.goal["type"]} & set(pattern.goal_types)) and all(
        holds(point, condition, {})
        for condition in conditions
        if not _parameters_in(rule, condition)
    )


def _parameters_in(rule: ActionRule, predicate: Predicate) -> list[str]:
    return [name for name in predicate.arguments if name in rule.parameters]


def nameable(point: DecisionPoint) -> list[str]:
    """The names that actions can use: places, and things that are carried, in view or seen.

    A place that the task or a line of the manual names can be visited before it was seen.
    """
    belief = point.belief
    mentioned_places = [
        place for place in point.manual.facts.connected if _is_mentioned(point, place)
    ]
    things = [*belief["holding"], *belief["visible"], *belief["last_seen"]]
    return list(dict.fromkeys([*belief["places"], *mentioned_places, *things]))


def _is_mentioned(point: DecisionPoint, place: str) -> bool:
    lines = point.manual.localities(point.goal)
    return mentioned(point, place) or any(place in line.places for _, line in lines)


def _disambiguate(point: DecisionPoint) -> str:
    """The number of the choice that agrees best with the places in the belief.

    The first of equals, so that the choice is the same each time.
    """
    belief, disambiguation = point.belief, point.manual.environment.disambiguation
    places = {**belief["last_seen"], **dict.fromkeys(belief["holding"], disambiguation.carried)}
    facts = [disambiguation.line.format(name=name, place=place) for name, place in places.items()]
    lines = belief["disambiguation"]
    return max(lines, key=lambda number: sum(fact in lines[number] for fact in facts))
