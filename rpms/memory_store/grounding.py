"""Putting a memory into words: names of this home for roles, and words for conditions.

The run's ``memory_form`` says in which names a memory is printed: those of the home it was
``recorded`` in, ``roles``, or those of this home (``grounded``). Whatever the form, filter and
arbiter judge what it would mean here, in names of this home. A snippet begins at the first step
that is still ahead, and what cannot be said in names that exist here comes with the reason. Words,
roles and conditions are the memory's own; with rules off only the syntax of commands is used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from rpms.memory_store.roles import (
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
from rpms.rules import Manual, already_done, match_action, refers_to, simulate_in_place
from rpms.rules.predicates import is_predicate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.semantics import blank_syntax
from rpms.rules.wording import need, statement
from rpms.vocabulary.belief import Belief, copy_belief, in_order, kind_of
from rpms.vocabulary.context import MemoryForm
from rpms.vocabulary.goal import PAPER, GoalSignature, GoalSpec, Keys, SubGoal
from rpms.vocabulary.recall import Advice, new_advice

# So often a parameter must have stood for one kind to be held to stand for it always.
USES_OF_ONE_KIND = 3


@dataclass(frozen=True)
class GroundingContext:
    """All that filling-in looks at.

    ``manual`` is what memory may know of the rules: with rules off the syntax of commands alone.
    ``role_names`` holds the name for each role asked for so far: the memories of one moment ask for
    the same few. ``played`` are the executed actions of this episode that changed something the
    belief can see, in order. ``steps_done`` is the world's, of that name.
    """

    manual: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    keys: Keys = PAPER
    form: MemoryForm = "grounded"
    role_names: dict[str, str] = field(default_factory=dict, compare=False)
    played: Sequence[str] = ()
    steps_done: Callable[[Mapping[str, Any], Belief], set[int]] = field(
        default=lambda entry, belief: set(), compare=False
    )

    @cached_property
    def gamma(self) -> GoalSignature:
        """The goal's signature."""
        return self.keys.goal(self.goal["signature"])

    @cached_property
    def places(self) -> list[str]:
        """The places of this home, ``drawer 10`` behind ``drawer 9``."""
        return sorted(self.belief["places"], key=in_order)


class GroundedEntry(NamedTuple):
    """What an entry says here, and what keeps it from being said in names of this home."""

    advice: Advice
    not_groundable: str = ""


def ground(entry: Mapping[str, Any], now: GroundingContext) -> GroundedEntry:
    """What an entry says here and now, whole."""
    if entry["type"] == "schema":
        return _schema(entry, now)
    recorded = entry.get("actions") or [entry["failed_action"]]
    lifted = _lifted(entry, recorded, now)
    wording = _said(recorded, lifted, now)
    if entry["type"] == "success":
        return _from_here(wording, now, now.steps_done(entry, now.belief))
    # A lesson is about its last action alone.
    advice = wording.advice
    last = new_advice(
        advice["actions"][-1:], printed=advice["printed"][-1:], by_kind=advice["by_kind"],
        needs=_reasons(entry, now.manual, advice["printed"][-1:]),
    )  # fmt: skip
    return GroundedEntry(last, wording.not_groundable)


def _said(recorded: Sequence[str], lifted: Sequence[str], now: GroundingContext) -> GroundedEntry:
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
        return GroundedEntry(advice)
    unknown = ", ".join(f"{{{role}}}" for role in strangers)
    no_part = "it is about things that play no part in a goal"
    return GroundedEntry(advice, f"nothing here is known as {unknown}" if unknown else no_part)


def _from_here(wording: GroundedEntry, now: GroundingContext, done: set[int]) -> GroundedEntry:
    """A snippet without the steps that lie behind, or that are done already when they come up.

    ``done`` are steps of the entry as it was recorded, by number.
    """
    advice = wording.advice
    actions, printed = advice["actions"], advice["printed"]
    if wording.not_groundable:
        return wording
    if advice["by_kind"]:  # a step about things that are not known here may be missing from actions
        left = [step for number, step in enumerate(printed) if number not in done]
        by_kind: Advice = {**advice, "printed": left}
        return GroundedEntry(by_kind, "" if left else BEHIND)
    ahead = [step for step in steps_ahead(actions, now) if step not in done]
    if not ahead:
        return wording._replace(not_groundable=BEHIND)
    kept: Advice = {
        **advice,
        "actions": [actions[step] for step in ahead],
        "done": [action for step, action in enumerate(actions) if step not in ahead],
    }
    # In the names of another home steps may not correspond: then they are told whole.
    same = len(printed) == len(actions)
    kept["printed"] = [printed[step] for step in ahead] if same else printed
    return wording._replace(advice=kept)


def steps_ahead(actions: Sequence[str], now: GroundingContext) -> list[int]:
    """Which steps of a way are still to be done.

    What was played tells which ones lie behind. With rules on, Tier 2 tells it too (not every
    change can be seen in the belief: that a thing was heated, the sub-goal says), and Tier 3 which
    steps would change nothing when their turn comes.
    """
    begun = max(_followed(actions, now), _behind(actions, now))
    imagined, ahead = copy_belief(now.belief), list[int]()
    for step in range(begun, len(actions)):
        if already_done(now.manual, actions[step], imagined):
            continue
        if ahead and actions[ahead[-1]] == actions[step]:
            continue  # all that lay between the two is done
        ahead.append(step)
        simulate_in_place(now.manual, actions[step], imagined)
    return ahead


def _followed(actions: Sequence[str], now: GroundingContext) -> int:
    """How many of the first steps were just played: the last of them here, or as the last thing."""
    count = 0
    for action in now.played:
        count += count < len(actions) and action == actions[count]
    if not count:
        return 0
    last, here = actions[count - 1], now.belief["location"]
    return count if last == now.played[-1] or (here and last.endswith(f" {here}")) else 0


def _behind(actions: Sequence[str], now: GroundingContext) -> int:
    """The number of steps up to the last one that completes a sub-goal reached before."""
    behind, ahead = now.manual.completing_actions(now.goal["type"], now.sub_goal["name"])
    begun = 0
    for number, action in enumerate(actions, start=1):
        matched = match_action(now.manual, action)
        name = matched[0].name if matched else ""
        if name in ahead:
            break
        if name in behind:
            begun = number
    return begun


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
    """What it lacked when it was rejected, as needs, about the names that are printed."""
    matched = match_action(manual, printed[0]) if printed else None
    violated = entry.get("violated", [])
    if not violated or matched is None or not all(map(is_predicate, violated)):
        return [] if entry["corrective_rule"] == UNEXPLAINED else [entry["corrective_rule"]]
    words = (need(parse_predicate(text), matched[1], manual.facts) for text in violated)
    return list(dict.fromkeys(words))


def _schema(entry: Mapping[str, Any], now: GroundingContext) -> GroundedEntry:
    """What an action needs and does, told by its uses, of the things that it would be about here.

    Which parameter is a place, and where its thing has to be, is what was so at every use that
    worked: a memory may know that, whatever the rules say.
    """
    uses = entry.get("uses", [])
    if not uses:  # written by hand, in words
        general = blank_syntax(_rule(entry["action_template"], (), ()))
        return GroundedEntry(
            new_advice([general], by_kind=True, needs=entry["preconditions"], then=entry["effects"])
        )
    held = [use["before"] for use in uses if use["worked"]]
    always = {text for text in (held[0] if held else ()) if all(b.get(text) for b in held)}
    needs = sorted(always.union(entry["preconditions"]))
    rule = _rule(entry["action_template"], tuple(needs), tuple(entry["effects"]))
    kinds = {name: _usual_kind(entry, rule, name, now) for name in rule.parameters}
    roles = {n: role or f"a {kinds[n]}" for n, role in parts(rule, now.gamma, kinds).items()}
    # What has stood for nothing of a kind, as ids do, is told by the parameter's name, or by the
    # one word that was ever given for it.
    blank = {name for name in roles if held and name not in entry.get("kinds", {})}
    words = {name: list(entry.get("words", {}).get(name, ())) for name in blank}
    plain = {name: words[name][0] if len(words[name]) == 1 else f"<{name}>" for name in blank}
    slots = {n: plain[n] if n in blank else f"{{{role}}}" for n, role in roles.items()}
    template = rule.syntax.format(**slots)
    blanks = {name: plain.get(name, f"<{name}>") for name in roles}
    said = _said([rule.syntax.format(**blanks)], [template], now)
    if said.not_groundable:
        return said
    by_form: dict[str, Mapping[str, str]] = {
        "recorded": blanks,
        "roles": slots,
        "grounded": {name: fill(slot, now.role_names) for name, slot in slots.items()},
    }
    names = by_form[now.form]
    if now.form == "grounded" and len({*names.values()}) < len(names):
        return said._replace(not_groundable="it would be about one thing twice")
    still = {text for text in entry["effects"] if all(before.get(text) for before in held)}
    # A switch was only ever used from one state: what it did then, it does from there.
    given = [text for text in sorted(always) if parse_predicate(text).name == "state"]
    given = [text for text in given if text not in {*entry["preconditions"], *entry["effects"]}]
    facts = [statement(parse_predicate(text), names, now.manual.facts) for text in given]
    then = [
        statement(parse_predicate(text), names, now.manual.facts) + " still" * (text in still)
        for text in entry["effects"]
    ]
    if then and facts:
        then[0] = f"{then[0]} (before: {' and '.join(facts)})"
    conditions = [need(parse_predicate(t), names, now.manual.facts) for t in entry["preconditions"]]
    if not (then or conditions):
        return said._replace(not_groundable="it says nothing: no need and no effect was noticed")
    return GroundedEntry({**said.advice, "needs": conditions, "then": then})


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
        if role not in now.role_names:
            now.role_names[role] = _role_name(now, role)
        names[role] = now.role_names[role]
    return names


def _role_name(now: GroundingContext, role: str) -> str:
    if role == NAMED_OBJECT:
        return _spelled(now.goal)
    if role.endswith("'s place"):
        thing = _role_name(now, role.removesuffix("'s place"))
        return now.belief["last_seen"].get(thing, NOBODY)
    if role == OBJECT:
        return _object(now)
    kind = role.removeprefix("a ") if role.startswith("a ") else now.goal["destination"]
    return _nearest(now, kind)


def _spelled(goal: GoalSpec) -> str:
    """The goal's object with the letters of its sentence: ``unknown substance B``."""
    found = re.search(rf"\b{re.escape(goal['object'])}\b", goal["sentence"], re.I)
    return found[0] if found else goal["object"]


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


BEHIND = "no step of it is still ahead"
UNEXPLAINED = "the reason is not known"
NOT_UNDERSTOOD = "'{0}' was not understood"
FATAL = "it ended the task with score {0:.0f}"
