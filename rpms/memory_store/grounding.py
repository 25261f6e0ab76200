"""Turn a memory into advice for this scene, in the run's ``memory_form``.

``recorded`` and ``roles`` print an entry as it is stored: with the names of the scene it was
recorded in, or with roles for names. ``grounded`` fills the roles with names of the current scene,
and a snippet then starts at its first remaining step, opens a place that the belief knows to be
closed, and leaves out the opening of one that is open. An entry that cannot be grounded comes with
the reason. What is printed is also what the filter and the arbiter judge.

Grounding reads the memory, the state, and what the environment declares of its commands: their
syntax and their results in the belief. It reads no rules, so it is the same without them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from rpms.envs import Environment
from rpms.memory_store.roles import (
    DESTINATION,
    NAMED_OBJECT,
    NO_NAME,
    OBJECT,
    fill,
    parameter_roles,
    roles_in,
    to_roles,
)
from rpms.rules import Manual, already_done, match_action, simulate_in_place
from rpms.rules.predicates import Predicate, evaluate, is_predicate, parse_predicate
from rpms.rules.schema import ActionRule
from rpms.rules.wording import need, statement
from rpms.vocabulary.belief import Belief, copy_belief, in_order, kind_of
from rpms.vocabulary.context import MemoryForm
from rpms.vocabulary.goal import GoalSignature, GoalSpec, SubGoal
from rpms.vocabulary.naming import refers_to
from rpms.vocabulary.output import with_article
from rpms.vocabulary.recall import Advice, new_advice

# A parameter that had the same kind in this many uses is assumed to have it always.
USES_OF_ONE_KIND = 3
# Results that last: a thing in hand, in its place, or in a state.
LASTING = ("holding", "in", "state")


@dataclass(frozen=True)
class GroundingContext:
    """The current decision, as far as grounding needs it.

    ``commands`` holds the syntax of the environment's commands and their results.
    ``played`` lists the executed actions of this episode that changed the belief, in order.
    """

    env: Environment
    commands: Manual
    goal: GoalSpec
    sub_goal: SubGoal
    belief: Belief
    form: MemoryForm = "grounded"
    played: Sequence[str] = ()

    @cached_property
    def role_names(self) -> dict[str, str]:
        """The name of each role, found once: the memories of one step share a few roles."""
        return dict(self.env.role_names(self.belief))

    @cached_property
    def gamma(self) -> GoalSignature:
        return self.env.keys.goal(self.goal["signature"])

    @cached_property
    def places(self) -> list[str]:
        """The places of this scene, ``drawer 10`` after ``drawer 9``."""
        return sorted(self.belief["places"], key=in_order)


class GroundedEntry(NamedTuple):
    """An entry's advice in the current scene, or the reason why it cannot be grounded."""

    advice: Advice
    not_groundable: str = ""


def ground(entry: Mapping[str, Any], moment: GroundingContext) -> GroundedEntry:
    """Ground an entry in the current scene.

    One that names what is not known here cannot be grounded. Neither can a snippet for another
    sub-goal in an environment without a body; in the others, place and hand show which steps of a
    snippet remain.
    """
    grounded = _ground(entry, moment)
    if grounded.not_groundable:
        return grounded
    for action in grounded.advice["printed"] if moment.form == "grounded" else ():
        _, names = match_action(moment.commands, action) or (None, {})
        for name in names.values():
            blank = name.startswith("<")  # a schema's parameter that may be anything
            if not blank and not moment.env.is_known(name, moment.goal, moment.belief):
                return grounded._replace(not_groundable=f"nothing here is known as {name}")
    step = moment.sub_goal["name"]
    if (
        not moment.env.embodied
        and entry["type"] == "success"
        and step not in ("", entry["sub_goal_type"])
    ):
        reason = f"it is about {entry['sub_goal_type']}, not {step}"
        return grounded._replace(not_groundable=reason)
    return grounded


def _ground(entry: Mapping[str, Any], moment: GroundingContext) -> GroundedEntry:
    if entry["type"] == "schema":
        return _schema(entry, moment)
    recorded = entry.get("actions") or [entry["failed_action"]]
    templates = _templates(entry, recorded, moment)
    if moment.form == "recorded":
        stated = GroundedEntry(new_advice([*recorded], solves=bool(entry.get("solves"))))
    elif moment.form == "roles":
        stated = GroundedEntry(_with_roles(templates or recorded, moment, entry))
    else:
        stated = _with_names(templates, moment)
    if entry["type"] == "success":
        return _remaining(entry, stated, moment) if moment.form == "grounded" else stated
    # A lesson is about its last action alone.
    advice = stated.advice
    last = new_advice(
        advice["actions"][-1:], printed=advice["printed"][-1:], by_kind=advice["by_kind"],
        needs=_reasons(entry, moment.commands, advice["printed"][-1:]),
    )  # fmt: skip
    return GroundedEntry(last, stated.not_groundable)


def _with_names(templates: Sequence[str], moment: GroundingContext) -> GroundedEntry:
    """Fill the roles with names of this scene; if one has none here, say which."""
    names = fill_roles(moment, (role for template in templates for role in roles_in(template)))
    unfilled = [role for role, name in names.items() if name == NO_NAME]
    if templates and not unfilled:
        return GroundedEntry(new_advice([fill(template, names) for template in templates]))
    unknown = ", ".join(f"{{{role}}}" for role in unfilled)
    no_part = "it is about things that play no part in a goal"
    reason = f"nothing here is known as {unknown}" if unknown else no_part
    return GroundedEntry(_with_roles(templates, moment), reason)


def _with_roles(
    templates: Sequence[str],
    moment: GroundingContext,
    entry: Mapping[str, Any] = {},
    printed: Sequence[str] = (),
) -> Advice:
    """Print the roles; the actions to judge name the kinds of things that would fill them."""
    kinds = {role: _kind_of_role(role, moment.goal) for t in templates for role in roles_in(t)}
    filled = (fill(template, kinds) for template in templates)
    actions = [action for action in filled if NO_NAME not in action]
    return new_advice(
        actions, printed=[*(printed or templates)], by_kind=True, solves=bool(entry.get("solves"))
    )


def _remaining(
    entry: Mapping[str, Any], stated: GroundedEntry, moment: GroundingContext
) -> GroundedEntry:
    """Return a snippet from its first remaining step on."""
    if stated.not_groundable:
        return stated
    actions = stated.advice["actions"]
    done = moment.env.steps_done(entry, moment.belief)
    ahead = {step: doors for step, doors in remaining_steps(actions, moment).items()
             if step not in done}  # fmt: skip
    if not ahead:
        return stated._replace(not_groundable=COMPLETED)
    steps = [action for step, doors in ahead.items() for action in (*doors, actions[step])]
    behind = [action for step, action in enumerate(actions) if step not in ahead]
    imagined = copy_belief(moment.belief)
    for action in steps:
        simulate_in_place(moment.commands, action, imagined)
    # It won an episode, and would meet the conditions of this goal too.
    solves = bool(entry.get("solves")) and moment.env.solved(moment.goal, imagined) is not False
    return GroundedEntry(new_advice(steps, done=behind, solves=solves))


def remaining_steps(actions: Sequence[str], moment: GroundingContext) -> dict[int, list[str]]:
    """Return the numbers of the steps that are still to be done, each with the doors to open first.

    Steps are behind if the episode has executed them, and if a later one has its lasting result
    already. Of the others, those are left out whose results hold when their turn comes.
    """
    begun = max(_steps_followed(actions, moment), _steps_behind(actions, moment))
    imagined, ahead = copy_belief(moment.belief), dict[int, list[str]]()
    latest = ""
    for step in range(begun, len(actions)):
        if already_done(moment.commands, actions[step], imagined):
            continue
        if latest == actions[step]:
            continue  # every step between the two is done
        ahead[step] = _doors_in_the_way(actions[step], imagined, moment.commands)
        for action in (*ahead[step], actions[step]):
            simulate_in_place(moment.commands, action, imagined)
        latest = actions[step]
    return ahead


def _doors_in_the_way(action: str, belief: Belief, commands: Manual) -> list[str]:
    """Return the commands that open the places, known to be closed, that an action reaches into."""
    rule, names = match_action(commands, action) or (None, {})
    moved = (o.arguments[1] for o in (rule.outcomes if rule else ()) if o.name == "in")
    closed = [names[p] for p in moved if belief["containers"].get(names[p]) == "closed"]
    openers = (rule for rule in commands.actions if any(o.name == "open" for o in rule.outcomes))
    opener = next(openers, None)
    if opener is None:
        return []
    return [opener.syntax.format(**{opener.parameters[0]: place}) for place in closed]


def _steps_followed(actions: Sequence[str], moment: GroundingContext) -> int:
    """Count the first steps that were executed, if the last of them was just now or right here."""
    count = 0
    for action in moment.played:
        count += count < len(actions) and action == actions[count]
    if not count:
        return 0
    last, location = actions[count - 1], moment.belief["location"]
    return count if last == moment.played[-1] or (location and last.endswith(f" {location}")) else 0


def _steps_behind(actions: Sequence[str], moment: GroundingContext) -> int:
    """Count the first steps whose lasting results, taken together, hold now.

    A thing in hand, in its place or in its state lasts; where the agent is and which doors are open
    says nothing about the steps before. What a later step undoes is not asked for: a thing that is
    put down is not in hand. A thing may be in its place before the first step, too, so the results
    of all steps count.
    """
    behind, lasting = 0, dict[tuple[str, tuple[str, ...]], Predicate]()
    for count, action in enumerate(actions, start=1):
        rule, names = match_action(moment.commands, action) or (None, {})
        results = [o.bind(names) for o in (rule.outcomes if rule else ()) if o.name in LASTING]
        lasting |= {(result.name, result.arguments): result for result in results}
        facts = moment.commands.facts
        if any(result.positive for result in results) and all(
            evaluate(result, moment.belief, facts, {}) for result in lasting.values()
        ):
            behind = count
    return behind


def _kind_of_role(role: str, goal: GoalSpec) -> str:
    """Return the kind of thing that would fill a role for which none was seen yet."""
    if role.endswith("'s place"):
        return NO_NAME
    if role in (OBJECT, NAMED_OBJECT):
        return goal["object"]
    if role.startswith("a "):
        return role.removeprefix("a ")
    return goal["destination"] if role == DESTINATION else NO_NAME


def _reasons(entry: Mapping[str, Any], commands: Manual, printed: Sequence[str]) -> list[str]:
    """Word the preconditions that a rejected action violated, with the printed names."""
    matched = match_action(commands, printed[0]) if printed else None
    violated = entry.get("violated", [])
    if not violated or matched is None or not all(map(is_predicate, violated)):
        return [] if entry["corrective_rule"] == UNEXPLAINED else [entry["corrective_rule"]]
    words = (_need(parse_predicate(text), matched[1], commands) for text in violated)
    return list(dict.fromkeys(words))


def _need(predicate: Predicate, names: Mapping[str, str], commands: Manual) -> str:
    """Word a need; the need of another kind of thing names that kind, not an impossible change."""
    if predicate.name == "kind" and predicate.positive:
        thing, kind = (names.get(argument, argument) for argument in predicate.arguments)
        return f"{with_article(kind)} in place of {thing}"
    return need(predicate, names, commands.facts)


def _schema(entry: Mapping[str, Any], moment: GroundingContext) -> GroundedEntry:
    """Ground a schema: an action's preconditions and effects, as its recorded uses show them.

    Conditions that held before every successful use also tell which parameter is a place. This is
    the memory's own knowledge and needs no rules.
    """
    if not entry.get("uses"):  # written by hand, in words
        general = _rule(entry["action_template"], (), ()).syntax.replace("{", "<").replace("}", ">")
        return GroundedEntry(
            new_advice([general], by_kind=True, needs=entry["preconditions"], then=entry["effects"])
        )
    held = [use["before"] for use in entry["uses"] if use["worked"]]
    always = {text for text in (held[0] if held else ()) if all(b.get(text) for b in held)}
    needs = sorted(always.union(entry["preconditions"]))
    rule = _rule(entry["action_template"], tuple(needs), tuple(entry["effects"]))
    slots = _slots(entry, rule, moment)
    template = rule.syntax.format(**slots)
    if moment.form == "grounded":
        grounded = _with_names([template], moment)
        names = {name: fill(slot, moment.role_names) for name, slot in slots.items()}
        if not grounded.not_groundable and len({*names.values()}) < len(names):
            grounded = grounded._replace(not_groundable="it would be about one thing twice")
    else:
        names = slots
        if moment.form == "recorded":
            names = {n: f"<{n}>" if slot.startswith("{") else slot for n, slot in slots.items()}
        printed = [rule.syntax.format(**names)]
        grounded = GroundedEntry(_with_roles([template], moment, printed=printed))
    if grounded.not_groundable:
        return grounded
    facts = moment.commands.facts
    conditions = [need(parse_predicate(text), names, facts) for text in entry["preconditions"]]
    unchanged = {text for text in entry["effects"] if all(before.get(text) for before in held)}
    effects = [
        statement(parse_predicate(text), names, facts) + " still" * (text in unchanged)
        for text in entry["effects"]
    ]
    # An action that was only used in one state, such as a switch, has its effects in that state.
    starts = [parse_predicate(text) for text in sorted(always)
              if text not in {*entry["preconditions"], *entry["effects"]}]  # fmt: skip
    states = [statement(start, names, facts) for start in starts if start.name == "state"]
    if effects and states:
        effects[0] = f"{effects[0]} (before: {' and '.join(states)})"
    if not (effects or conditions):
        return grounded._replace(
            not_groundable="it says nothing: no need and no effect was noticed"
        )
    return GroundedEntry({**grounded.advice, "needs": conditions, "then": effects})


def _slots(entry: Mapping[str, Any], rule: ActionRule, moment: GroundingContext) -> dict[str, str]:
    """The role of each parameter of a schema, in braces.

    A parameter without a kind, such as an id, is printed by its name, or by its value if all uses
    had the same.
    """
    kinds = {name: _usual_kind(entry, rule, name, moment) for name in rule.parameters}
    worked = any(use["worked"] for use in entry["uses"])
    slots: dict[str, str] = {}
    for name, role in parameter_roles(rule, moment.gamma, kinds).items():
        slots[name] = f"{{{role or f'a {kinds[name]}'}}}"
        if worked and name not in entry.get("kinds", {}):
            values = list(entry.get("words", {}).get(name, ()))
            slots[name] = values[0] if len(values) == 1 else f"<{name}>"
    return slots


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
        _to_roles_cached(
            moment.commands, moment.env.keys.goal(entry["goal_signature"]), tuple(recorded)
        )
        or ()
    )


_to_roles_cached = lru_cache(maxsize=4096)(to_roles)


def _usual_kind(
    entry: Mapping[str, Any], rule: ActionRule, parameter: str, moment: GroundingContext
) -> str:
    """Return the kind that a parameter has under this goal, judging by its earlier kinds."""
    seen: Counter[str] = Counter(entry.get("kinds", {}).get(parameter, {}))
    by_goal = [moment.goal["object"], moment.goal["destination"]]
    if parameter not in rule.places:
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
        goal = moment.goal  # the sentence may spell its object otherwise: "unknown substance B"
        written = re.search(rf"\b{re.escape(goal['object'])}\b", goal["sentence"], re.I)
        return written[0] if written else goal["object"]
    if role.endswith("'s place"):
        thing = _role_name(moment, role.removesuffix("'s place"))
        return moment.belief["last_seen"].get(thing, NO_NAME)
    if role == OBJECT:
        return _object(moment)
    kind = role.removeprefix("a ") if role.startswith("a ") else moment.goal["destination"]
    return _nearest(moment, kind)


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
