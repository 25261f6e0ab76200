"""Ground a memory in the current scene: fill its roles with names and word its conditions.

The run's ``memory_form`` chooses the names a memory is printed with: those of the scene it was
``recorded`` in, ``roles``, or the names of the current scene (``grounded``). In every form, the
state filter and the arbiter judge the grounded actions. A snippet starts at its first remaining
step. An entry that cannot be grounded comes with the reason. Roles and conditions come from the
memory itself; with rules off, the manual contributes only the syntax of commands.
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
    NO_NAME,
    OBJECT,
    fill,
    is_place,
    parameter_roles,
    roles_in,
    to_roles,
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

# A parameter that had the same kind in this many uses is assumed to have it always.
USES_OF_ONE_KIND = 3


@dataclass(frozen=True)
class GroundingContext:
    """The current decision, as far as grounding needs it.

    ``manual`` holds the rules that memory may use; with rules off, only the syntax of commands.
    ``role_names`` caches the name of each role, because the memories of one step share a few roles.
    ``played`` lists the executed actions of this episode that changed the belief, in order.
    ``steps_done`` is the environment's method of that name.
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
        return self.keys.goal(self.goal["signature"])

    @cached_property
    def places(self) -> list[str]:
        """The places of this scene, ``drawer 10`` after ``drawer 9``."""
        return sorted(self.belief["places"], key=in_order)


class GroundedEntry(NamedTuple):
    """An entry's advice in the current scene, or the reason why it cannot be grounded."""

    advice: Advice
    not_groundable: str = ""


def ground(entry: Mapping[str, Any], moment: GroundingContext) -> GroundedEntry:
    """Ground an entry in the current scene."""
    if entry["type"] == "schema":
        return _schema(entry, moment)
    recorded = entry.get("actions") or [entry["failed_action"]]
    templates = _templates(entry, recorded, moment)
    grounded = _in_form(recorded, templates, moment)
    if entry["type"] == "success":
        return _remaining(grounded, moment, moment.steps_done(entry, moment.belief))
    # A lesson is about its last action alone.
    advice = grounded.advice
    last = new_advice(
        advice["actions"][-1:], printed=advice["printed"][-1:], by_kind=advice["by_kind"],
        needs=_reasons(entry, moment.manual, advice["printed"][-1:]),
    )  # fmt: skip
    return GroundedEntry(last, grounded.not_groundable)


def _in_form(
    recorded: Sequence[str], templates: Sequence[str], moment: GroundingContext
) -> GroundedEntry:
    """Return the actions as printed in the run's form, and as executed in this scene."""
    names = fill_roles(moment, (role for template in templates for role in roles_in(template)))
    unfilled = [role for role, name in names.items() if name == NO_NAME]
    by_kind = bool(unfilled) or not templates
    if by_kind:
        kinds = {role: _kind_of_role(role, moment.goal) for role in names}
        filled = [fill(template, kinds) for template in templates or recorded]
        actions = [action for action in filled if NO_NAME not in action]
    else:
        actions = [fill(template, names) for template in templates]
    forms = {"recorded": recorded, "roles": templates or recorded, "grounded": actions}
    advice = new_advice(actions, printed=list(forms[moment.form]), by_kind=by_kind)
    if moment.form != "grounded" or not by_kind:
        return GroundedEntry(advice)
    unknown = ", ".join(f"{{{role}}}" for role in unfilled)
    no_part = "it is about things that play no part in a goal"
    return GroundedEntry(advice, f"nothing here is known as {unknown}" if unknown else no_part)


def _remaining(grounded: GroundedEntry, moment: GroundingContext, done: set[int]) -> GroundedEntry:
    """Return a snippet without the steps that are done already.

    ``done`` are numbers of steps of the recorded entry.
    """
    advice = grounded.advice
    actions, printed = advice["actions"], advice["printed"]
    if grounded.not_groundable:
        return grounded
    if advice["by_kind"]:  # steps about things not seen here may be missing from actions
        left = [step for number, step in enumerate(printed) if number not in done]
        by_kind: Advice = {**advice, "printed": left}
        return GroundedEntry(by_kind, "" if left else COMPLETED)
    ahead = [step for step in remaining_steps(actions, moment) if step not in done]
    if not ahead:
        return grounded._replace(not_groundable=COMPLETED)
    kept: Advice = {
        **advice,
        "actions": [actions[step] for step in ahead],
        "done": [action for step, action in enumerate(actions) if step not in ahead],
    }
    # The steps of another scene may not correspond one to one: then all of them are printed.
    same = len(printed) == len(actions)
    kept["printed"] = [printed[step] for step in ahead] if same else printed
    return grounded._replace(advice=kept)


def remaining_steps(actions: Sequence[str], moment: GroundingContext) -> list[int]:
    """Return the numbers of the steps that are still to be done.

    The executed actions show which steps are completed. With rules on, the sub-goal of Tier 2 shows
    it too, because the belief does not record every change (that a thing was heated, for example).
    Tier 3 skips steps that would have no effect when their turn comes.
    """
    begun = max(_steps_followed(actions, moment), _steps_completed(actions, moment))
    imagined, ahead = copy_belief(moment.belief), list[int]()
    for step in range(begun, len(actions)):
        if already_done(moment.manual, actions[step], imagined):
            continue
        if ahead and actions[ahead[-1]] == actions[step]:
            continue  # every step between the two is done
        ahead.append(step)
        simulate_in_place(moment.manual, actions[step], imagined)
    return ahead


def _steps_followed(actions: Sequence[str], moment: GroundingContext) -> int:
    """Count the first steps that were executed, if the last of them was just now or right here."""
    count = 0
    for action in moment.played:
        count += count < len(actions) and action == actions[count]
    if not count:
        return 0
    last, location = actions[count - 1], moment.belief["location"]
    return count if last == moment.played[-1] or (location and last.endswith(f" {location}")) else 0


def _steps_completed(actions: Sequence[str], moment: GroundingContext) -> int:
    """Count the steps up to the last one that completes an earlier sub-goal."""
    behind, ahead = moment.manual.completing_actions(moment.goal["type"], moment.sub_goal["name"])
    begun = 0
    for number, action in enumerate(actions, start=1):
        matched = match_action(moment.manual, action)
        name = matched[0].name if matched else ""
        if name in ahead:
            break
        if name in behind:
            begun = number
    return begun


def _kind_of_role(role: str, goal: GoalSpec) -> str:
    """Return the kind of thing that would fill a role for which none was seen yet."""
    if role.endswith("'s place"):
        return NO_NAME
    if role in (OBJECT, NAMED_OBJECT):
        return goal["object"]
    if role.startswith("a "):
        return role.removeprefix("a ")
    return goal["destination"] if role == DESTINATION else NO_NAME


def _reasons(entry: Mapping[str, Any], manual: Manual, printed: Sequence[str]) -> list[str]:
    """Word the preconditions that a rejected action violated, with the printed names."""
    matched = match_action(manual, printed[0]) if printed else None
    violated = entry.get("violated", [])
    if not violated or matched is None or not all(map(is_predicate, violated)):
        return [] if entry["corrective_rule"] == UNEXPLAINED else [entry["corrective_rule"]]
    words = (need(parse_predicate(text), matched[1], manual.facts) for text in violated)
    return list(dict.fromkeys(words))


def _schema(entry: Mapping[str, Any], moment: GroundingContext) -> GroundedEntry:
    """Ground a schema: an action's preconditions and effects, as its recorded uses show them.

    Conditions that held before every successful use also tell which parameter is a place. This is
    the memory's own knowledge and needs no rules.
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
    kinds = {name: _usual_kind(entry, rule, name, moment) for name in rule.parameters}
    roles = {
        n: role or f"a {kinds[n]}" for n, role in parameter_roles(rule, moment.gamma, kinds).items()
    }
    # A parameter without a kind, such as an id, is printed by its name, or by its value if all uses
    # had the same.
    blank = {name for name in roles if held and name not in entry.get("kinds", {})}
    words = {name: list(entry.get("words", {}).get(name, ())) for name in blank}
    plain = {name: words[name][0] if len(words[name]) == 1 else f"<{name}>" for name in blank}
    slots = {n: plain[n] if n in blank else f"{{{role}}}" for n, role in roles.items()}
    template = rule.syntax.format(**slots)
    placeholders = {name: plain.get(name, f"<{name}>") for name in roles}
    grounded = _in_form([rule.syntax.format(**placeholders)], [template], moment)
    if grounded.not_groundable:
        return grounded
    by_form: dict[str, Mapping[str, str]] = {
        "recorded": placeholders,
        "roles": slots,
        "grounded": {name: fill(slot, moment.role_names) for name, slot in slots.items()},
    }
    names = by_form[moment.form]
    if moment.form == "grounded" and len({*names.values()}) < len(names):
        return grounded._replace(not_groundable="it would be about one thing twice")
    still = {text for text in entry["effects"] if all(before.get(text) for before in held)}
    # An action that was only used in one state, such as a switch, has its effects in that state.
    starts = [text for text in sorted(always) if parse_predicate(text).name == "state"]
    starts = [text for text in starts if text not in {*entry["preconditions"], *entry["effects"]}]
    facts = [statement(parse_predicate(text), names, moment.manual.facts) for text in starts]
    effects = [
        statement(parse_predicate(text), names, moment.manual.facts) + " still" * (text in still)
        for text in entry["effects"]
    ]
    if effects and facts:
        effects[0] = f"{effects[0]} (before: {' and '.join(facts)})"
    conditions = [
        need(parse_predicate(t), names, moment.manual.facts) for t in entry["preconditions"]
    ]
    if not (effects or conditions):
        return grounded._replace(
            not_groundable="it says nothing: no need and no effect was noticed"
        )
    return GroundedEntry({**grounded.advice, "needs": conditions, "then": effects})


@lru_cache(maxsize=256)
def _rule(syntax: str, needs: tuple[str, ...], effects: tuple[str, ...]) -> ActionRule:
    return ActionRule(
        id="M-SCHEMA-001", name=syntax, syntax=syntax, preconditions=[*needs], effects=[*effects]
    )


def _templates(
    entry: Mapping[str, Any], recorded: Sequence[str], moment: GroundingContext
) -> Sequence[str]:
    """Return an entry's actions with roles for names; computed if a handwritten entry has none."""
    if templates := entry.get("lifted"):
        return [templates] if isinstance(templates, str) else templates
    return (
        _to_roles_cached(moment.manual, moment.keys.goal(entry["goal_signature"]), tuple(recorded))
        or ()
    )


_to_roles_cached = lru_cache(maxsize=4096)(to_roles)


def _usual_kind(
    entry: Mapping[str, Any], rule: ActionRule, parameter: str, moment: GroundingContext
) -> str:
    """Return the kind that a parameter has under this goal, judging by its earlier kinds."""
    seen: Counter[str] = Counter(entry.get("kinds", {}).get(parameter, {}))
    by_goal = [moment.goal["object"], moment.goal["destination"]]
    if not is_place(rule, parameter):
        return next((kind for kind in by_goal if kind in seen), by_goal[0])
    if len(seen) == 1 and seen.total() >= USES_OF_ONE_KIND:
        return next(iter(seen))
    return by_goal[1]


def fill_roles(moment: GroundingContext, roles: Iterable[str]) -> dict[str, str]:
    """Return the name that fills each role in this scene, or ``?``."""
    names = {}
    for role in roles:
        if role not in moment.role_names:
            moment.role_names[role] = _role_name(moment, role)
        names[role] = moment.role_names[role]
    return names


def _role_name(moment: GroundingContext, role: str) -> str:
    if role == NAMED_OBJECT:
        return _as_written(moment.goal)
    if role.endswith("'s place"):
        thing = _role_name(moment, role.removesuffix("'s place"))
        return moment.belief["last_seen"].get(thing, NO_NAME)
    if role == OBJECT:
        return _object(moment)
    kind = role.removeprefix("a ") if role.startswith("a ") else moment.goal["destination"]
    return _nearest(moment, kind)


def _as_written(goal: GoalSpec) -> str:
    """Return the goal's object as its sentence spells it: ``unknown substance B``."""
    found = re.search(rf"\b{re.escape(goal['object'])}\b", goal["sentence"], re.I)
    return found[0] if found else goal["object"]


def _object(moment: GroundingContext) -> str:
    """Return the goal's object: the one in hand, else the sub-goal's target, else one seen."""
    belief, kind = moment.belief, moment.goal["object"]
    held = [name for name in belief["holding"] if refers_to(name, kind)]
    seen = [name for name in belief["last_seen"] if kind_of(name) == kind]
    targets = [name for name in seen if _names(moment.sub_goal["target"], name)]
    loose = [n for n in seen if kind_of(belief["last_seen"][n]) != moment.goal["destination"]]
    return next(iter([*held, *targets, *loose]), NO_NAME)


def _nearest(moment: GroundingContext, kind: str) -> str:
    """Return the closest place or thing of a kind.

    A place that already received one of the goal's objects comes first, then the agent's location,
    then the lowest number.
    """
    belief = moment.belief
    used = (
        place for thing, place in belief["last_seen"].items()
        if kind == moment.goal["destination"] and kind_of(thing) == moment.goal["object"]
    )  # fmt: skip
    nearby = (belief["location"] or "", *belief["reachable"])
    names = chain(used, nearby, moment.places, belief["last_seen"], belief["holding"])
    return next((name for name in names if kind_of(name) == kind), NO_NAME)


def _names(sentence: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?! ?\w*\d)", sentence) is not None


COMPLETED = "no step of it is still ahead"
UNEXPLAINED = "the reason is not known"
NOT_UNDERSTOOD = "'{0}' was not understood"
FATAL = "it ended the task with score {0:.0f}"
