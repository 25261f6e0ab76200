"""Putting a memory into words: names of this home for roles, and words for conditions.

What comes out is what state filter and arbiter judge and what the prompt prints. A memory that
cannot be said in names that exist here, or that has nothing left to say, is no candidate. The words
for conditions are a memory's own, none of them the manual's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from rpms.nodes.memories.roles import (
    NAMED_OBJECT,
    OBJECT,
    blanks,
    fill,
    goes_nowhere,
    is_place,
    lift,
    parts,
    tool_kind,
)
from rpms.rules import Manual, already_done, imagine, match_action, needed_actions, refers_to
from rpms.rules.predicates import (
    ARGUMENT,
    Predicate,
    World,
    evaluate,
    is_predicate,
    parse_predicate,
)
from rpms.rules.schema import ActionRule
from rpms.vocabulary.belief import Belief, copy_belief, in_order, kind_of
from rpms.vocabulary.goal import PAPER, GoalSignature, GoalSpec, Keys, SubGoal
from rpms.vocabulary.recall import Advice, new_advice

# So often a parameter must have stood for one kind to be held to stand for it always.
USES_OF_ONE_KIND = 3
_UNKNOWN = "?"


@dataclass(frozen=True)
class GroundingContext:
    """All that filling-in looks at.

    ``players`` holds who plays the roles asked for so far, and ``undone`` what is left to do of
    the advice looked at so far: the memories of one moment ask for the same few.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    keys: Keys = PAPER
    players: dict[str, str] = field(default_factory=dict, compare=False)
    undone: dict[tuple[str, ...], list[str]] = field(default_factory=dict, compare=False)

    @cached_property
    def gamma(self) -> GoalSignature:
        """The goal's signature."""
        return self.keys.goal(self.goal["signature"])

    @cached_property
    def upcoming(self) -> tuple[str, ...]:
        """The actions that complete this sub-goal and those after it, in order."""
        return _from_here(self.manual, self.goal["type"], self.sub_goal["name"])

    @cached_property
    def places(self) -> list[str]:
        """The places of this home, ``drawer 10`` behind ``drawer 9``."""
        return sorted(self.belief["places"], key=in_order)


def ground(entry: Mapping[str, Any], now: GroundingContext) -> Advice | None:
    """What an entry says here and now; None if nothing can be said."""
    if entry["type"] == "success":
        return _snippet(entry, now)
    if entry["type"] == "schema":
        return _schema(entry, now)
    return _lesson(entry, now)


def _snippet(entry: Mapping[str, Any], now: GroundingContext) -> Advice | None:
    lifted = _lifted(entry, now)
    names = fill_roles(now, (role for template in lifted for role in blanks(template)))
    if not lifted or names.get(OBJECT) == _UNKNOWN:
        return None
    actions = tuple(fill(template, names) for template in lifted)
    if actions not in now.undone:
        now.undone[actions] = _left_to_do(now, actions)
    steps = now.undone[actions]
    if not steps or any(_UNKNOWN in action for action in steps):
        return None
    return new_advice(list(steps))


def _lesson(entry: Mapping[str, Any], now: GroundingContext) -> Advice | None:
    """A refusal that would happen here and now: what was missing then is missing again."""
    lifted = (_lifted(entry, now) or [""])[-1]
    action = fill(lifted, fill_roles(now, blanks(lifted)))
    if not action or _UNKNOWN in action or goes_nowhere(now.manual, action, now.belief):
        return None
    if not entry.get("violated"):
        return new_advice([action], needs=[entry["corrective_rule"]])
    missing = _still_missing(entry["violated"], action, now)
    return new_advice([action], needs=missing) if missing else None


def _schema(entry: Mapping[str, Any], now: GroundingContext) -> Advice | None:
    rule = next((r for r in now.manual.actions if r.name == entry["action_type"]), None)
    if rule is None:
        return None
    kinds = {name: _usual_kind(entry, rule, name, now) for name in rule.parameters}
    roles = parts(rule, now.gamma, kinds)
    if not all(roles.values()):
        return None
    names = fill_roles(now, (str(role) for role in roles.values()))
    filled = {parameter: names[str(role)] for parameter, role in roles.items()}
    if _UNKNOWN in filled.values():
        return None
    action = rule.syntax.format(**filled)
    if not entry.get("uses"):  # written by hand, in words
        return new_advice([action], needs=entry["preconditions"], then=entry["effects"])
    if not entry["preconditions"] and not entry["effects"]:
        return None
    worked = [use["before"] for use in entry["uses"] if use["worked"]]
    still = {text for text in entry["effects"] if all(held.get(text) for held in worked)}
    world = now.manual.world
    return new_advice(
        [action],
        needs=[in_words(text, filled, world) for text in entry["preconditions"]],
        then=[in_words(t, filled, world, still=t in still) for t in entry["effects"]],
    )


def _lifted(entry: Mapping[str, Any], now: GroundingContext) -> Sequence[str]:
    """What an entry says with roles for names; one written by hand may have left that to us."""
    if lifted := entry.get("lifted"):
        return [lifted] if isinstance(lifted, str) else lifted
    actions = entry.get("actions") or [entry["failed_action"]]
    return _lift_once(now.manual, now.keys.goal(entry["goal_signature"]), tuple(actions)) or ()


_lift_once = lru_cache(maxsize=4096)(lift)


def _left_to_do(now: GroundingContext, actions: Sequence[str]) -> list[str]:
    """The steps whose effects do not hold yet and that the rest still needs.

    A step that serves a sub-goal which lies behind the agent is done too: not every change can be
    seen in the belief. If the last one is done there is nothing left to say.
    """
    if _passed(now, actions[-1]):
        return []
    steps, before = [action for action in actions if not _passed(now, action)], list[str]()
    while steps and steps != before:
        before, undone, imagined = steps, list[str](), copy_belief(now.belief)
        for action in steps:
            if not already_done(now.manual, action, imagined):
                undone.append(action)
                imagine(now.manual, action, imagined)
        steps = needed_actions(now.manual, undone, now.upcoming)
    return steps


def _passed(now: GroundingContext, action: str) -> bool:
    matched = match_action(now.manual, action)
    if matched is None:
        return False
    name = matched[0].name
    return name not in now.upcoming and name in _advances(now.manual, now.goal["type"]).values()


# The same for a whole sub-goal.
@lru_cache(maxsize=1024)
def _from_here(manual: Manual, goal_type: str, sub_goal: str) -> tuple[str, ...]:
    advances = _advances(manual, goal_type)
    steps = list(advances)
    start = steps.index(sub_goal) if sub_goal in steps else 0
    return tuple(dict.fromkeys(list(advances.values())[start:]))


def _advances(manual: Manual, goal_type: str) -> Mapping[str, str]:
    """Each sub-goal of a type of goal with the action that completes it, in order."""
    steps = manual.domain.procedures.get(goal_type, [])
    return {step: manual.domain.advances.get(step, "") for step in steps}


def _still_missing(violated: Sequence[str], action: str, now: GroundingContext) -> list[str]:
    """What an action was refused for, in words, as far as it does not hold now either."""
    world, matched = now.manual.world, match_action(now.manual, action)
    if matched is None or not all(is_predicate(text, world) for text in violated):
        return []  # learned by another manual: nobody can tell whether it is missing again
    names = matched[1]
    return [
        reason(text, names, world)
        for text in violated
        if evaluate(parse_predicate(text), now.belief, world, names) is False
    ]


def _usual_kind(
    entry: Mapping[str, Any], rule: ActionRule, parameter: str, now: GroundingContext
) -> str:
    """What a parameter stands for under this goal, going by what it stood for before."""
    seen = entry.get("kinds", {}).get(parameter, {})
    by_goal = [now.goal["object"], now.goal["destination"]]
    if not is_place(rule, parameter):
        return next((kind for kind in by_goal if kind in seen), by_goal[0])
    if len(seen) == 1 and sum(seen.values()) >= USES_OF_ONE_KIND:
        return str(next(iter(seen)))
    return tool_kind(rule, parameter) or by_goal[1]


def fill_roles(now: GroundingContext, roles: Iterable[str]) -> dict[str, str]:
    """Who plays each role here; ``?`` where nobody does."""
    names = {}
    for role in roles:
        if role not in now.players:
            now.players[role] = _player(now, role)
        names[role] = now.players[role]
    return names


def _player(now: GroundingContext, role: str) -> str:
    if role == NAMED_OBJECT:
        return now.goal["object"]
    if role.endswith("'s place"):
        thing = _player(now, role.removesuffix("'s place"))
        return now.belief["last_seen"].get(thing, _UNKNOWN)
    if role == OBJECT:
        return _object(now)
    kind = role.removeprefix("a ") if role.startswith("a ") else now.goal["destination"]
    return _nearest(now, kind)


def _object(now: GroundingContext) -> str:
    """What the goal asks for: what is in hand, else what the sub-goal names, else one seen."""
    belief, kind = now.belief, now.goal["object"]
    mine = [name for name in belief["holding"] if refers_to(name, kind)]
    seen = [name for name in belief["last_seen"] if kind_of(name) == kind]
    named = [name for name in seen if _names(now.sub_goal["target"], name)]
    loose = [n for n in seen if kind_of(belief["last_seen"][n]) != now.goal["destination"]]
    return next(iter([*mine, *named, *loose]), _UNKNOWN)


def _nearest(now: GroundingContext, kind: str) -> str:
    """The place or thing of a kind that is nearest at hand.

    Where some of the goal's objects have been brought already comes first, then where the agent
    is, then the lowest number.
    """
    belief = now.belief
    used = (
        place for thing, place in belief["last_seen"].items()
        if kind == now.goal["destination"] and kind_of(thing) == now.goal["object"]
    )  # fmt: skip
    here = (belief["location"] or "", *belief["reachable"])
    known = chain(used, here, now.places, belief["last_seen"], belief["holding"])
    return next((name for name in known if kind_of(name) == kind), _UNKNOWN)


def _names(sentence: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?! ?\w*\d)", sentence) is not None


# By predicate; ``{how}`` is where "not" or "still" goes. Where "not" would not do, the contrary has
# a form of its own. What a world calls its own stands in its Tier 3, under wording: recalled.
WORDS = {
    "at": "{how}at {0}",
    "place": "{0} is {how}one of the places here",
    "holding": "{how}holding {0}",
    "hand_empty": "{how}empty-handed",
    "open": "{0} {how}stands open",
    "not open": "{0} does {how}not stand open",
    "closed": "{0} is {how}shut",
    "accessible": "{0} is {how}not shut",
    "not accessible": "{0} is {how}shut",
    "unclosed": "{0} is {how}not shut",
    "not unclosed": "{0} is {how}shut",
    "in": "{0} is {how}in or on {1}",
    "here": "{0} is {how}in sight",
    "visible": "{0} is {how}in sight",
    "kind": "{0} {how}counts as a {1}",
    "not kind": "{0} is {how}no {1}",
    "can_contain": "{0} {how}takes {1}",
    "not can_contain": "{0} does {how}not take {1}",
    "state": "{0} has {how}become {1}",
    "adjacent": "an open way {how}leads from here to {0}",
    "not adjacent": "{how}no open way leads from here to {0}",
    "activated": "{0} is {how}running",
    "combined": "{0} {how}holds two things or more",
    "not combined": "{0} {how}holds fewer than two things",
    "changed": "{0} has {how}changed",
    "looked_around": "{how}having had a look around",
    "here_closed": "the place here is {how}shut",
}
# What no moment changes: it was never so, where other conditions may yet come to hold.
_LASTING = {"place", "kind", "can_contain"}
UNEXPLAINED = "it was refused for a reason that could not be seen"
NOT_UNDERSTOOD = "'{0}' was not understood"
FATAL = "it ended the task with score {0:.0f}: be sure the task wants it"


def reason(text: str, names: Mapping[str, str], world: World) -> str:
    """Why an action was refused for want of a condition."""
    predicate = parse_predicate(text)
    if predicate.name in _LASTING or predicate.name in world.affordances:
        return _say(predicate._replace(positive=not predicate.positive), names, world)
    return f"only when {_say(predicate, names, world)}"


def in_words(text: str, names: Mapping[str, str], world: World, *, still: bool = False) -> str:
    """A condition with names filled in, as someone would say it who saw it."""
    return _say(parse_predicate(text), names, world, "still " if still else "")


def _say(predicate: Predicate, names: Mapping[str, str], world: World, how: str = "") -> str:
    forms = {**WORDS, **world.wording.recalled}
    arguments = [names.get(argument, argument) for argument in predicate.arguments]
    positive, name = predicate.positive, predicate.name
    if not positive and f"not {name}" in forms:
        return forms[f"not {name}"].format(*arguments, how=how)
    if name in forms:
        return forms[name].format(*arguments, how=how if positive else f"{how}not ")
    if name in world.predicates:
        bound = dict(zip((ARGUMENT,), arguments, strict=False))
        every, some = (" and ", " or ") if positive else (" or ", " and ")
        choices = [map(parse_predicate, choice) for choice in world.predicates[name]]
        return some.join(
            every.join(
                _say(part._replace(positive=part.positive == positive), bound, world, how)
                for part in choice
            )
            for choice in choices
        )
    counts = f"{how}counts" if positive else f"does {how}not count"
    return f"{' with '.join(arguments) or 'this'} {counts} as {name.replace('_', ' ')}"
