"""Roles: the part each name plays in a goal, so that experience can leave the home it was made in.

``take mug 2 from desk 1`` was true of one home. What can be carried to another is ``take {object}
from {object's place}``. A role is one of

- ``object``, ``destination``: the individual thing or place that the goal asks for;
- ``object's place``, ``destination's place``: where that one was seen;
- ``a microwave``: any thing or place of a kind;
- ``the object``: the goal's object in worlds that do not number their things;
- whatever else a world says by ``role_names``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from rpms.envs import Environment
from rpms.rules.manual import Manual
from rpms.rules.predicates import evaluate
from rpms.rules.schema import ActionRule
from rpms.rules.semantics import match_action
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.goal import GoalSignature
from rpms.vocabulary.recall import BLANK

OBJECT, DESTINATION, NAMED_OBJECT = "object", "destination", "the object"
NOBODY = "?"
"""Stands where nothing here plays a role."""


def lift(
    manual: Manual,
    goal: GoalSignature,
    actions: Sequence[str],
    own: Mapping[str, str] = {},
    individual: Callable[[str], bool] = lambda name: False,
) -> list[str] | None:
    """The actions with roles for names; None if an individual in them plays no part in the goal.

    Each step is told with the walk to where it is done: that two of them were done at one spot was
    chance, and where the agent stood at first is another home's matter. Of an action that nothing
    is known of, whatever the goal does not name is one of its kind. ``own`` has the role of each
    name for which the world itself has one, and ``individual`` says of a name without a number that
    it means another thing in another task. No step is told twice in a row.
    """
    walk = next((rule for rule in manual.actions if _walks(rule)), None)
    lifted: list[str] = []
    here = ""
    for number, action in enumerate(actions):
        matched = match_action(manual, action)
        if matched is None:
            lifted.append(action)
            continue
        rule, names = matched
        if rule is walk and kind_of(names[rule.parameters[0]]) != names[rule.parameters[0]]:
            continue  # told again before the step that it was for
        kinds = {name: kind_of(text) for name, text in names.items()}
        roles = parts(rule, goal, kinds)
        filled = {}
        for parameter, text in names.items():
            role = roles[parameter]
            if text in own:
                filled[parameter] = f"{{{own[text]}}}"
                continue
            if individual(text) and text.lower() != goal.object:
                return None
            if kinds[parameter] == text:
                filled[parameter] = _named(text, goal)
                continue
            if _alone(rule, parameter):
                role = _purpose(manual, goal, text, actions[number + 1 :]) or role
            if role is None and not manual.knows(rule):
                role = f"a {kinds[parameter]}"
            if role is None:
                return None
            filled[parameter] = f"{{{role}}}"
            there = _where(rule, parameter, role)
            if walk and there and there != here:
                lifted.append(walk.syntax.format(**{walk.parameters[0]: f"{{{there}}}"}))
                here = there
        lifted.append(rule.syntax.format(**filled))
    return without_repeats(lifted) or _walk_alone(manual, goal, actions)


def without_repeats(steps: Sequence[str]) -> list[str]:
    """A way on which no step comes twice in a row."""
    return [step for number, step in enumerate(steps) if not number or step != steps[number - 1]]


def wanted(manual: Manual, env: Environment) -> set[str]:
    """Actions wanted for their own sake: those that complete a step, or else change something."""
    if env.embodied:
        return {*manual.domain.advances.values()}
    return {rule.name for rule in manual.actions if rule.effects}


def goes_nowhere(manual: Manual, action: str, belief: Belief) -> bool:
    """Whether an action is done at what is no place: the manual allows no walk to such a thing."""
    rule, names = match_action(manual, action) or (None, {})
    known = (*rule.preconditions, *rule.effects) if rule else ()
    there = [name for parameter, name in names.items() if f"at({parameter})" in known]
    lasting = {"place", *manual.facts.affordances}
    return any(
        evaluate(condition, belief, manual.facts, {walk.parameters[0]: name}) is False
        for walk in (filter(_walks, manual.actions) if there else ())
        for condition in walk.needs
        if condition.name in lasting
        for name in there
    )


def _walks(rule: ActionRule) -> bool:
    """The action that takes the agent to the place it names and does nothing else."""
    return [effect.name for effect in rule.outcomes] == ["at"] and len(rule.parameters) == 1


def _where(rule: ActionRule, parameter: str, role: str) -> str:
    """The role of the place where an action with this parameter has to be done."""
    if f"at({parameter})" in rule.preconditions:
        return role
    return f"{role}'s place" if f"here({parameter})" in rule.preconditions else ""


def _purpose(manual: Manual, goal: GoalSignature, place: str, later: Sequence[str]) -> str:
    """What a place was opened for: the role it plays in the next step that does something there."""
    for action in later:
        matched = match_action(manual, action)
        if matched is None or len(matched[0].parameters) < 2:
            continue
        rule, names = matched
        roles = parts(rule, goal, {name: kind_of(text) for name, text in names.items()})
        for parameter, text in names.items():
            if text == place:
                return roles[parameter] or ""
    return ""


def _walk_alone(manual: Manual, goal: GoalSignature, actions: Sequence[str]) -> list[str] | None:
    """Nothing but a walk: by the kind of place it led to."""
    matched = match_action(manual, actions[-1]) if actions else None
    if matched is None:
        return None
    rule, names = matched
    roles = parts(rule, goal, {name: kind_of(text) for name, text in names.items()})
    return [rule.syntax.format(**{name: f"{{{role}}}" for name, role in roles.items()})]


def parts(rule: ActionRule, goal: GoalSignature, kinds: Mapping[str, str]) -> dict[str, str | None]:
    """The role of each parameter of an action, by the kinds of what fills them."""
    roles: dict[str, str | None] = {}
    for parameter, kind in kinds.items():
        if not is_place(rule, parameter):
            matching = {goal.object: OBJECT, goal.destination: DESTINATION}
            roles[parameter] = matching.get(kind)
    for parameter, kind in kinds.items():
        if is_place(rule, parameter):
            held = _holder_of(rule, parameter)
            if tool_kind(rule, parameter) == kind:
                roles[parameter] = f"a {kind}"
            elif held and roles.get(held):
                roles[parameter] = f"{roles[held]}'s place"
            elif kind == goal.destination:
                roles[parameter] = DESTINATION
            else:
                roles[parameter] = f"a {kind}"
    return roles


def tool_kind(rule: ActionRule, parameter: str) -> str:
    """The one kind of thing that the action can be done with, if the parameter is its tool."""
    kinds = (need.arguments for need in rule.needs if need.name == "kind")
    return next((kind for tool, kind in kinds if tool == parameter), "")


def is_place(rule: ActionRule, parameter: str) -> bool:
    """Whether a parameter stands for somewhere to be, not for something to handle."""
    return parameter in rule.places


def _alone(rule: ActionRule, parameter: str) -> bool:
    """A place that nothing is done with but being there, or opening it."""
    return is_place(rule, parameter) and rule.parameters == [parameter]


def _holder_of(rule: ActionRule, parameter: str) -> str:
    """The thing that has to be in this place, if the action needs that."""
    inside = (need.arguments for need in rule.needs if need.name == "in")
    return next((thing for thing, place in inside if place == parameter), "")


def _named(text: str, goal: GoalSignature) -> str:
    """A name without a number means the same everywhere, but for the goal's own object."""
    if not goal.object:
        return text
    # Goals are kept in lower case; some names are not ("unknown substance B").
    return re.sub(rf"\b{re.escape(goal.object)}\b", f"{{{NAMED_OBJECT}}}", text, flags=re.I)


@lru_cache(maxsize=65536)
def blanks(template: str) -> tuple[str, ...]:
    """The roles that a template has blanks for."""
    return tuple(BLANK.findall(template))


def fill(template: str, role_names: Mapping[str, str]) -> str:
    """The template with names for roles; a role that nothing plays here becomes ``?``."""
    return BLANK.sub(lambda blank: role_names.get(blank[1], NOBODY), template)
