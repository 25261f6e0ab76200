"""Roles: the part that each name plays in a goal, so that experience transfers to other scenes.

``take mug 2 from desk 1`` holds in one scene. ``take {object} from {object's place}`` transfers to
another. A role is one of

- ``object``, ``destination``: the individual thing or place that the goal asks for;
- ``object's place``, ``destination's place``: where that one was seen;
- ``a microwave``: any thing or place of a kind;
- ``the object``: the goal's object in environments that do not number their things;
- any role that the environment's ``role_names`` adds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from rpms.envs import Environment
from rpms.rules.manual import Manual
from rpms.rules.predicates import evaluate
from rpms.rules.schema import ActionRule
from rpms.rules.verdicts import match_action
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.goal import GoalSignature
from rpms.vocabulary.recall import BLANK

OBJECT, DESTINATION, NAMED_OBJECT = "object", "destination", "the object"
NO_NAME = "?"
"""Printed for a role that no name fills."""


def to_roles(
    manual: Manual,
    goal: GoalSignature,
    actions: Sequence[str],
    role_of: Mapping[str, str] = {},
    individual: Callable[[str], bool] = lambda name: False,
) -> list[str] | None:
    """Replace names by roles; return None if an action handles a thing that plays no part.

    Every step gets the walk to its place, because the route was specific to the recorded scene. In
    an action that the manual leaves out, names that the goal does not mention become ``a KIND``.
    ``role_of`` maps names to the environment's own roles. ``individual`` is true of a name without
    a number that means another thing in another task. Repeated steps are dropped.
    """
    walk = next((rule for rule in manual.actions if _walks(rule)), None)
    steps: list[str] = []
    location = ""
    for number, action in enumerate(actions):
        matched = match_action(manual, action)
        if matched is None:
            steps.append(action)
            continue
        rule, names = matched
        if rule is walk and _is_added_again(manual, names[rule.parameters[0]], actions[number:]):
            continue
        kinds = {name: kind_of(text) for name, text in names.items()}
        roles = parameter_roles(rule, goal, kinds)
        filled = {}
        for parameter, text in names.items():
            role = roles[parameter]
            if text in role_of:
                filled[parameter] = f"{{{role_of[text]}}}"
                continue
            if individual(text) and text.lower() != goal.object:
                return None
            if kinds[parameter] == text:
                filled[parameter] = _with_object_role(text, goal)
                continue
            if (
                rule.parameters == [parameter] and parameter in rule.places
            ):  # it opens or goes there
                role = _purpose(manual, goal, text, actions[number + 1 :]) or role
            if role is None and not manual.knows(rule):
                role = f"a {kinds[parameter]}"
            if role is None:
                return None
            filled[parameter] = f"{{{role}}}"
            place = _where(rule, parameter, role)
            if walk and place and place != location:
                steps.append(walk.syntax.format(**{walk.parameters[0]: f"{{{place}}}"}))
                location = place
        steps.append(rule.syntax.format(**filled))
    return without_repeats(steps) or _walk_alone(manual, goal, actions)


def without_repeats(steps: Sequence[str]) -> list[str]:
    """Drop each step that equals the one before it."""
    return [step for number, step in enumerate(steps) if not number or step != steps[number - 1]]


def useful_actions(manual: Manual, env: Environment) -> set[str]:
    """Return the actions that complete a sub-goal or, without a body, have effects."""
    if env.embodied:
        return {*manual.domain.advances.values()}
    return {rule.name for rule in manual.actions if rule.effects}


def goes_nowhere(manual: Manual, action: str, belief: Belief) -> bool:
    """Return True if an action takes place at a thing that the manual allows no walk to."""
    rule, names = match_action(manual, action) or (None, {})
    conditions = (*rule.preconditions, *rule.effects) if rule else ()
    places = [name for parameter, name in names.items() if f"at({parameter})" in conditions]
    lasting = {"place", *manual.facts.affordances}
    return any(
        evaluate(condition, belief, manual.facts, {walk.parameters[0]: name}) is False
        for walk in (filter(_walks, manual.actions) if places else ())
        for condition in walk.needs
        if condition.name in lasting
        for name in places
    )


def _walks(rule: ActionRule) -> bool:
    """Return True for an action whose only effect is to move the agent to a place."""
    return [effect.name for effect in rule.outcomes] == ["at"] and len(rule.parameters) == 1


def _where(rule: ActionRule, parameter: str, role: str) -> str:
    """Return the role of the place where an action with this parameter happens."""
    if f"at({parameter})" in (*rule.preconditions, *rule.effects):
        return role
    return f"{role}'s place" if f"here({parameter})" in rule.preconditions else ""


def _is_added_again(manual: Manual, place: str, steps: Sequence[str]) -> bool:
    """Return True if the walk to a numbered place is added before the step that it was made for.

    Without rules a manual may not say where a step takes place: then the recorded walk stays.
    """
    if kind_of(place) == place:
        return False
    if any(rule.preconditions for rule in manual.actions):
        return True
    rule, names = (match_action(manual, steps[1]) if steps[1:] else None) or (None, {})
    return rule is not None and any(_where(rule, parameter, "role") for parameter in names)


def _purpose(manual: Manual, goal: GoalSignature, place: str, later: Sequence[str]) -> str:
    """Return the role of an opened place: the one it has in the next step that uses it."""
    for action in later:
        matched = match_action(manual, action)
        if matched is None or len(matched[0].parameters) < 2:
            continue
        rule, names = matched
        roles = parameter_roles(rule, goal, {name: kind_of(text) for name, text in names.items()})
        for parameter, text in names.items():
            if text == place:
                return roles[parameter] or ""
    return ""


def _walk_alone(manual: Manual, goal: GoalSignature, actions: Sequence[str]) -> list[str] | None:
    """Return the roles of a path that is only a walk: the kind of place it leads to."""
    matched = match_action(manual, actions[-1]) if actions else None
    if matched is None:
        return None
    rule, names = matched
    roles = parameter_roles(rule, goal, {name: kind_of(text) for name, text in names.items()})
    return [rule.syntax.format(**{name: f"{{{role}}}" for name, role in roles.items()})]


def parameter_roles(
    rule: ActionRule, goal: GoalSignature, kinds: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the role of each parameter of an action, given the kinds of their values."""
    roles: dict[str, str | None] = {}
    for parameter, kind in kinds.items():
        if parameter not in rule.places:
            matching = {goal.object: OBJECT, goal.destination: DESTINATION}
            roles[parameter] = matching.get(kind)
    for parameter, kind in kinds.items():
        if parameter in rule.places:
            thing = _holder_of(rule, parameter)
            if tool_kind(rule, parameter) == kind:
                roles[parameter] = f"a {kind}"
            elif thing and roles.get(thing):
                roles[parameter] = f"{roles[thing]}'s place"
            elif kind == goal.destination:
                roles[parameter] = DESTINATION
            else:
                roles[parameter] = f"a {kind}"
    return roles


def tool_kind(rule: ActionRule, parameter: str) -> str:
    """Return the kind of tool that the action requires, if the parameter is its tool."""
    kinds = (need.arguments for need in rule.needs if need.name == "kind")
    return next((kind for tool, kind in kinds if tool == parameter), "")


def _holder_of(rule: ActionRule, parameter: str) -> str:
    """Return the parameter of the thing that must be in this place, if there is one."""
    taken = (outcome for outcome in rule.outcomes if not outcome.positive)
    inside = (each.arguments for each in (*rule.needs, *taken) if each.name == "in")
    return next((thing for thing, place in inside if place == parameter), "")


def _with_object_role(text: str, goal: GoalSignature) -> str:
    """Keep a name without a number, which is valid in every scene; mark the goal's object."""
    if not goal.object:
        return text
    # Goals are kept in lower case; some names are not ("unknown substance B").
    return re.sub(rf"\b{re.escape(goal.object)}\b", f"{{{NAMED_OBJECT}}}", text, flags=re.I)


@lru_cache(maxsize=65536)
def roles_in(template: str) -> tuple[str, ...]:
    return tuple(BLANK.findall(template))


def fill(template: str, role_names: Mapping[str, str]) -> str:
    """Replace the template's roles by names; a role without a name becomes ``?``."""
    return BLANK.sub(lambda blank: role_names.get(blank[1], NO_NAME), template)
