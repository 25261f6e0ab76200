"""Putting a memory into words: names of this home for roles, and words for conditions.

The run's ``memory_form`` says in which names a memory is printed: those of the home it was
``recorded`` in, ``roles``, or those of this home (``grounded``). Whatever the form, filter and
arbiter judge what it would mean here, in names of this home. Nothing is dropped or shortened by
being put into words: what cannot be said in names that exist here comes with the reason. Words,
roles and conditions are the memory's own; of the manual only the syntax of commands is used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from rpms.nodes.memories.roles import (
    DESTINATION,
    NAMED_OBJECT,
    NOBODY,
    OBJECT,
    blanks,
    fill,
    is_place,
    lift,
    parts,
)
from rpms.rules import Manual, match_action, refers_to
from rpms.rules.predicates import ARGUMENT, Predicate, World, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.semantics import blank_syntax
from rpms.vocabulary.belief import Belief, in_order, kind_of
from rpms.vocabulary.context import MemoryForm
from rpms.vocabulary.goal import PAPER, GoalSignature, GoalSpec, Keys, SubGoal
from rpms.vocabulary.recall import Advice, new_advice

# So often a parameter must have stood for one kind to be held to stand for it always.
USES_OF_ONE_KIND = 3
# A memory's conditions are spoken of in its own words, none of them a world's.
_NO_WORLD = World({}, {})


@dataclass(frozen=True)
class GroundingContext:
    """All that filling-in looks at.

    ``manual`` is what memory may know of the rules: with rules off the syntax of commands alone.
    ``players`` holds who plays the roles asked for so far: the memories of one moment ask for the
    same few.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    keys: Keys = PAPER
    form: MemoryForm = "grounded"
    players: dict[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def gamma(self) -> GoalSignature:
        """The goal's signature."""
        return self.keys.goal(self.goal["signature"])

    @cached_property
    def places(self) -> list[str]:
        """The places of this home, ``drawer 10`` behind ``drawer 9``."""
        return sorted(self.belief["places"], key=in_order)


class Wording(NamedTuple):
    """What an entry says here, and what keeps it from being said in names of this home."""

    advice: Advice
    unsayable: str = ""


def ground(entry: Mapping[str, Any], now: GroundingContext) -> Wording:
    """What an entry says here and now, whole."""
    if entry["type"] == "schema":
        return _schema(entry, now)
    recorded = entry.get("actions") or [entry["failed_action"]]
    lifted = _lifted(entry, recorded, now)
    wording = _said(recorded, lifted, now)
    if entry["type"] == "success":
        return wording
    # A lesson is about its last action alone.
    advice = wording.advice
    last = new_advice(
        advice["actions"][-1:], printed=advice["printed"][-1:], by_kind=advice["by_kind"],
        needs=_reasons(entry, now.manual, advice["printed"][-1:]),
    )  # fmt: skip
    return Wording(last, wording.unsayable)


def _said(recorded: Sequence[str], lifted: Sequence[str], now: GroundingContext) -> Wording:
    """Actions in the run's form, and what they come to here."""
    names = fill_roles(now, (role for template in lifted for role in blanks(template)))
    strangers = [role for role, name in names.items() if name == NOBODY]
    by_kind = bool(strangers) or not lifted
    if by_kind:
        kinds = {role: _kind_of_role(role, now.goal) for role in names}
        filled = [fill(template, kinds) for template in lifted or recorded]
        actions = [action for action in filled if NOBODY not in action]
    else:
        actions = [fill(template, names) for template in lifted]
    forms = {"recorded": recorded, "roles": lifted or recorded, "grounded": actions}
    advice = new_advice(actions, printed=list(forms[now.form]), by_kind=by_kind)
    if now.form != "grounded" or not by_kind:
        return Wording(advice)
    unknown = ", ".join(f"{{{role}}}" for role in strangers)
    no_part = "it is about things that play no part in a goal"
    return Wording(advice, f"nothing here is known as {unknown}" if unknown else no_part)


def _kind_of_role(role: str, goal: GoalSpec) -> str:
    """The kind of thing that would play a role, where no such thing is known yet."""
    if role.endswith("'s place"):
        return NOBODY
    if role in (OBJECT, NAMED_OBJECT):
        return goal["object"]
    if role.startswith("a "):
        return role.removeprefix("a ")
    return goal["destination"] if role == DESTINATION else NOBODY


def _reasons(entry: Mapping[str, Any], manual: Manual, printed: Sequence[str]) -> list[str]:
    """Why it was refused, in the words it was stored with, about the names that are printed."""
    words: str = entry["corrective_rule"]
    matched = match_action(manual, printed[0]) if printed else None
    if matched is None:
        return [words]
    reasons = words.removeprefix(f"{blank_syntax(matched[0])}: ")
    for parameter, name in matched[1].items():
        reasons = reasons.replace(f"<{parameter}>", name)
    return reasons.split("; ")


def _schema(entry: Mapping[str, Any], now: GroundingContext) -> Wording:
    """What an action needs and does, told by its uses, of the things that it would be about here.

    Which parameter is a place, and where its thing has to be, is what was so at every use that
    worked: a memory may know that, whatever the rules say.
    """
    uses = entry.get("uses", [])
    if not uses:  # written by hand, in words
        general = blank_syntax(_rule(entry["action_template"], (), ()))
        return Wording(
            new_advice([general], by_kind=True, needs=entry["preconditions"], then=entry["effects"])
        )
    held = [use["before"] for use in uses if use["worked"]]
    always = {text for text in (held[0] if held else ()) if all(b.get(text) for b in held)}
    needs = sorted(always.union(entry["preconditions"]))
    rule = _rule(entry["action_template"], tuple(needs), tuple(entry["effects"]))
    kinds = {name: _usual_kind(entry, rule, name, now) for name in rule.parameters}
    roles = {n: role or f"a {kinds[n]}" for n, role in parts(rule, now.gamma, kinds).items()}
    # What has stood for nothing of a kind, as ids do, is told by the parameter's name.
    blank = {name for name in roles if held and name not in entry.get("kinds", {})}
    slots = {n: f"<{n}>" if n in blank else f"{{{role}}}" for n, role in roles.items()}
    template = rule.syntax.format(**slots)
    said = _said([blank_syntax(rule)], [template], now)
    if said.unsayable:
        return said
    by_form: dict[str, Mapping[str, str]] = {
        "recorded": {name: f"<{name}>" for name in roles},
        "roles": slots,
        "grounded": {name: fill(slot, now.players) for name, slot in slots.items()},
    }
    names = by_form[now.form]
    if now.form == "grounded" and len({*names.values()}) < len(names):
        return said._replace(unsayable="it would be about one thing twice")
    still = {text for text in entry["effects"] if all(before.get(text) for before in held)}
    then = [in_words(t, names, _NO_WORLD, still=t in still) for t in entry["effects"]]
    conditions = [in_words(text, names, _NO_WORLD) for text in entry["preconditions"]]
    return Wording({**said.advice, "needs": conditions, "then": then})


@lru_cache(maxsize=256)
def _rule(syntax: str, needs: tuple[str, ...], effects: tuple[str, ...]) -> ActionRule:
    return ActionRule(
        id="M-SCHEMA-001", name=syntax, syntax=syntax, preconditions=[*needs], effects=[*effects]
    )


def _lifted(
    entry: Mapping[str, Any], recorded: Sequence[str], now: GroundingContext
) -> Sequence[str]:
    """What an entry says with roles for names; one written by hand may have left that to us."""
    if lifted := entry.get("lifted"):
        return [lifted] if isinstance(lifted, str) else lifted
    return _lift_once(now.manual, now.keys.goal(entry["goal_signature"]), tuple(recorded)) or ()


_lift_once = lru_cache(maxsize=4096)(lift)


def _usual_kind(
    entry: Mapping[str, Any], rule: ActionRule, parameter: str, now: GroundingContext
) -> str:
    """What a parameter stands for under this goal, going by what it stood for before."""
    seen: Counter[str] = Counter(entry.get("kinds", {}).get(parameter, {}))
    by_goal = [now.goal["object"], now.goal["destination"]]
    if not is_place(rule, parameter):
        return next((kind for kind in by_goal if kind in seen), by_goal[0])
    if len(seen) == 1 and seen.total() >= USES_OF_ONE_KIND:
        return next(iter(seen))
    return by_goal[1]


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
        return now.belief["last_seen"].get(thing, NOBODY)
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
    return next(iter([*mine, *named, *loose]), NOBODY)


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
    return next((name for name in known if kind_of(name) == kind), NOBODY)


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
