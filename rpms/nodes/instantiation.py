"""Fill a memory in for this home and this moment: names for roles, steps already done left out.

What comes out is what state filter and arbiter judge and what the prompt prints. A memory that
cannot be said in names that exist here, or that has nothing left to say, is no candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from rpms.memory_store.schemas import only_kind
from rpms.nodes.wording import in_words, reason
from rpms.rules import Manual, already_done, imagine, match_action, needed_actions, refers_to
from rpms.rules.predicates import evaluate, is_predicate, parse_predicate
from rpms.rules.roles import (
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
from rpms.rules.schema import ActionRule
from rpms.vocabulary.belief import Belief, copy_belief, in_order, kind_of
from rpms.vocabulary.goal import PAPER, GoalSignature, GoalSpec, Keys, SubGoal
from rpms.vocabulary.recall import Advice, new_advice

_UNKNOWN = "?"


@dataclass(frozen=True)
class Moment:
    """All that filling-in looks at.

    ``cast`` holds who plays the roles asked for so far, and ``left`` what is left to do of the
    advice looked at so far: a moment's memories ask for the same few.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    keys: Keys = PAPER
    cast: dict[str, str] = field(default_factory=dict, compare=False)
    left: dict[tuple[str, ...], list[str]] = field(default_factory=dict, compare=False)

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


def instantiate(entry: Mapping[str, Any], now: Moment) -> Advice | None:
    """What an entry says here and now; None if nothing can be said."""
    if entry["type"] == "success":
        return _snippet(entry, now)
    if entry["type"] == "schema":
        return _schema(entry, now)
    return _lesson(entry, now)


def _snippet(entry: Mapping[str, Any], now: Moment) -> Advice | None:
    lifted = entry.get("lifted") or _lifted(
        now.manual, now.keys.goal(entry["goal_signature"]), tuple(entry["actions"])
    )
    if not lifted:
        return None
    names = cast(now, (role for template in lifted for role in blanks(template)))
    if names.get(OBJECT) == _UNKNOWN:
        return None
    actions = tuple(fill(template, names) for template in lifted)
    if actions not in now.left:
        now.left[actions] = _left_to_do(now, actions)
    left = list(now.left[actions])
    if not left or any(_UNKNOWN in action for action in left):
        return None
    return new_advice(left)


# An entry without its lifted form (written by hand) is lifted when it is first asked for.
_lifted = lru_cache(maxsize=4096)(lift)


def _left_to_do(now: Moment, actions: Sequence[str]) -> list[str]:
    """The steps whose effects do not hold yet and that the rest still needs.

    A step that serves a sub-goal which lies behind the agent is done too: not every change can be
    seen in the belief. If the last one is done there is nothing left to say.
    """
    if _passed(now, actions[-1]):
        return []
    left, before = [action for action in actions if not _passed(now, action)], list[str]()
    while left and left != before:
        before, kept, imagined = left, list[str](), copy_belief(now.belief)
        for action in left:
            if not already_done(now.manual, action, imagined):
                kept.append(action)
                imagine(now.manual, action, imagined)
        left = needed_actions(now.manual, kept, now.upcoming)
    return left


def _passed(now: Moment, action: str) -> bool:
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


@lru_cache(maxsize=256)
def _advances(manual: Manual, goal_type: str) -> Mapping[str, str]:
    """Each sub-goal of a type of goal with the action that completes it, in order."""
    steps = manual.domain.procedures.get(goal_type, [])
    return {step: manual.domain.advances.get(step, "") for step in steps}


def _lesson(entry: Mapping[str, Any], now: Moment) -> Advice | None:
    """A refusal that would happen here and now: what was missing then is missing again."""
    if not (lifted := entry.get("lifted")):
        recorded = now.keys.goal(entry["goal_signature"])
        lifted = (_lifted(now.manual, recorded, (entry["failed_action"],)) or [""])[-1]
    action = fill(lifted, cast(now, blanks(lifted)))
    if not action or _UNKNOWN in action:
        return None
    manual, belief = now.manual, now.belief
    if goes_nowhere(manual, action, belief):
        return None
    if not (violated := entry.get("violated", [])):
        return new_advice([action], needs=[entry["corrective_rule"]])
    matched = match_action(manual, action)
    if matched is None or not all(is_predicate(text, manual.world) for text in violated):
        return None  # learned by another manual: nobody can tell whether it is missing again
    world, names = manual.world, matched[1]
    missing = [t for t in violated if evaluate(parse_predicate(t), belief, world, names) is False]
    if not missing:
        return None
    return new_advice([action], needs=[reason(text, names, world) for text in missing])


def _schema(entry: Mapping[str, Any], now: Moment) -> Advice | None:
    goal = now.gamma
    rule = next((r for r in now.manual.actions if r.name == entry["action_type"]), None)
    if rule is None:
        return None
    roles = parts(
        rule, goal, {name: _usual_kind(entry, rule, name, now) for name in rule.parameters}
    )
    if not all(roles.values()):
        return None
    names = cast(now, (str(role) for role in roles.values()))
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


def _usual_kind(entry: Mapping[str, Any], rule: ActionRule, parameter: str, now: Moment) -> str:
    """What a parameter stands for under this goal, going by what it stood for before."""
    seen = entry.get("kinds", {}).get(parameter, {})
    wanted = [now.goal["object"], now.goal["destination"]]
    if is_place(rule, parameter):
        return only_kind(seen) or tool_kind(rule, parameter) or wanted[1]
    return next((kind for kind in wanted if kind in seen), wanted[0])


def cast(now: Moment, roles: Iterable[str]) -> dict[str, str]:
    """Who plays each role here; ``?`` where nobody does."""
    found = {}
    for role in roles:
        if role not in now.cast:
            now.cast[role] = _play(now, role)
        found[role] = now.cast[role]
    return found


def _play(now: Moment, role: str) -> str:
    if role == NAMED_OBJECT:
        return now.goal["object"]
    if role.endswith("'s place"):
        thing = _play(now, role.removesuffix("'s place"))
        return now.belief["last_seen"].get(thing, _UNKNOWN)
    if role == OBJECT:
        return _object(now)
    kind = role.removeprefix("a ") if role.startswith("a ") else now.goal["destination"]
    return _one_of(now, kind)


def _object(now: Moment) -> str:
    """What the goal asks for: what is in hand, else what the sub-goal names, else one seen."""
    belief, kind = now.belief, now.goal["object"]
    mine = [name for name in belief["holding"] if refers_to(name, kind)]
    seen = [name for name in belief["last_seen"] if kind_of(name) == kind]
    named = [name for name in seen if _names(now.sub_goal["target"], name)]
    loose = [n for n in seen if kind_of(belief["last_seen"][n]) != now.goal["destination"]]
    return next(iter([*mine, *named, *loose]), _UNKNOWN)


def _one_of(now: Moment, kind: str) -> str:
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
