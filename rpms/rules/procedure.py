"""Procedure as data: which actions serve the current sub-goal, and what speaks against another.

The domain tier lists, for every sub-goal, action patterns that serve it, best first. They are
filled in with the names the belief knows and kept if Tier 3 allows them, no rule forbids them, and
they were not tried in vain. Nothing here asks the environment what is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from rpms.rules.conditions import Situation, holds, mentioned
from rpms.rules.predicates import Predicate, evaluate, parse_predicate
from rpms.rules.schema import ActionRule, Service
from rpms.rules.semantics import check_action, forbidden_by, match_action
from rpms.vocabulary.belief import copy_belief, in_order, kind_of
from rpms.vocabulary.turn import Choice

# The principles that the guard acts by itself; where one is not in the manual, it does not.
NO_SUCH_ACTION, IN_VAIN = "O-FAIL-003", "U-FAIL-001"


class Veto(NamedTuple):
    """What speaks against an action; ``rule`` is the id that says so."""

    rule: str
    reason: str


def with_refusals(now: Situation) -> Situation:
    """The same with what refusals have told: a walk that leads nowhere ends at this very spot.

    The belief itself takes nothing from a refusal, as in the paper.
    """
    here = []
    for action in now.vain:
        matched = match_action(now.manual, action)
        if matched and matched[0].refused_means_here and now.manual.knows(matched[0]):
            here.append(matched[1][matched[0].refused_means_here])
    if not here:
        return now
    belief = copy_belief(now.belief)
    belief["reachable"] = list(dict.fromkeys([*belief["reachable"], *here]))
    return now._replace(belief=belief)


def veto(now: Situation, action: str) -> Veto | None:
    """Why an action should not be played now: infeasible, forbidden, in vain, or a circle."""
    if action in now.belief["asked"]:
        return None
    diagnosis = check_action(now.manual, action, now.belief)
    principles = now.manual.principles
    if diagnosis.verdict == "no_such_action" and NO_SUCH_ACTION in principles:
        return Veto(NO_SUCH_ACTION, diagnosis.violated[0])
    if diagnosis.verdict == "fails":
        return Veto(diagnosis.rule, f"'{action}' needs: {'; '.join(diagnosis.violated)}")
    if rule := forbidden_by(now.manual, action, now.goal):
        return Veto(rule, f"'{action}' is forbidden for this goal")
    matched = match_action(now.manual, action)
    if IN_VAIN not in principles or (matched and matched[0].repeatable):
        return None
    if action in now.vain:
        return Veto(IN_VAIN, f"'{action}' changed nothing before, and nothing changed since")
    if action in now.circled:
        return Veto(IN_VAIN, f"'{action}' was played in this very situation and led back here")
    return None


def serving_actions(now: Situation) -> list[Choice]:
    """Every action that serves the current sub-goal and that nothing speaks against, best first.

    What is urgent comes before any sub-goal: while there is some of it, nothing else is offered.
    Where every action has been round a circle already, they are offered once more: one of them may
    have been left too early.
    """
    if now.belief["asked"]:
        rule = now.manual.environment.asked_back.rule
        return [Choice(action=_meant(now), rule=rule, reason="the last command was asked back")]
    now = with_refusals(now)
    return _serving(now) or (_serving(now._replace(circled=())) if now.circled else [])


def _serving(now: Situation) -> list[Choice]:
    domain = now.manual.domain
    return _offer(now, domain.urgent) or _offer(now, domain.serves.get(now.sub_goal["name"], []))


def _offer(now: Situation, services: Sequence[Service]) -> list[Choice]:
    found: dict[str, Choice] = {}
    enough = False
    for service in services:
        if service.last_resort and enough:
            continue
        if not {"all", now.goal["type"]} & set(service.goal_types):
            continue
        rule = next((r for r in now.manual.actions if r.name == service.action), None)
        if rule is None:  # a manual of the user's own may have no such action
            continue
        before, cited = len(found), rule.id if now.manual.knows(rule) else ""
        for names in _fitting(now, service, rule):
            action = (service.wording or rule.syntax).format(**names)
            if action not in found and veto(now, action) is None:
                reason = service.because.format(**names)
                found[action] = Choice(action=action, rule=cited, reason=reason)
                enough = enough or not service.last_resort
        if service.settles and len(found) > before:
            break
    return list(found.values())


def _fitting(now: Situation, service: Service, rule: ActionRule) -> list[dict[str, str]]:
    """The fillings of a pattern, best first; only the likely places while any is left."""
    found = sorted(_fill(now, service, rule), key=lambda names: [*map(in_order, names.values())])
    if not service.likely:
        return found
    places = now.manual.likely_places(now.goal[service.about])
    likely = [names for names in found if kind_of(names[service.likely]) in places]
    likely.sort(key=lambda names: places.index(kind_of(names[service.likely])))
    return likely or found


def _fill(now: Situation, service: Service, rule: ActionRule) -> Iterator[dict[str, str]]:
    """The bindings of a pattern's parameters under which its conditions hold.

    What concerns none or one of the parameters is settled before they are combined.
    """
    wanted = [parse_predicate(text) for text in service.when]
    general = [p for p in wanted if not set(p.arguments) & set(rule.parameters)]
    if not all(holds(now, p, {}) for p in general):
        return
    known_of = rule.preconditions if now.manual.knows(rule) else []
    needed = [parse_predicate(text) for text in known_of]

    def alone(parameter: str, predicate: Predicate) -> bool:
        return [a for a in predicate.arguments if a in rule.parameters] == [parameter]

    known = _names(now)
    pools = []
    for parameter in rule.parameters:
        mine = [p for p in wanted if alone(parameter, p)]
        allowed = [p for p in needed if alone(parameter, p)]
        pools.append(
            [
                name
                for name in known
                if all(holds(now, p, {parameter: name}) for p in mine)
                and all(
                    evaluate(p, now.belief, now.manual.world, {parameter: name}) is not False
                    for p in allowed
                )
            ]
        )
    for values in product(*pools):
        names = dict(zip(rule.parameters, values, strict=True))
        if len(set(values)) == len(values) and all(holds(now, p, names) for p in wanted):
            yield names


def _names(now: Situation) -> list[str]:
    """Everything that can be named: places, and things that are carried, in view or known.

    A place of the manual that the task names can be gone to before it was ever seen.
    """
    belief = now.belief
    told = [place for place in now.manual.world.connected if mentioned(now, place)]
    things = [*belief["holding"], *belief["visible"], *belief["last_seen"]]
    return list(dict.fromkeys([*belief["places"], *told, *things]))


def _meant(now: Situation) -> str:
    """The number of the line that agrees best with what the belief says is where.

    The first of equals: where all are alike, the same one should be meant each time.
    """
    belief, asked_back = now.belief, now.manual.environment.asked_back
    places = {**belief["last_seen"], **dict.fromkeys(belief["holding"], asked_back.carried)}
    facts = [asked_back.line.format(name=name, place=place) for name, place in places.items()]
    lines = belief["asked"]
    return max(lines, key=lambda number: sum(fact in lines[number] for fact in facts))
