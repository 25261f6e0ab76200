"""What ``rpms rules show`` prints: a type of task with its steps, what serves them, and its rules.

All of it is read from the manual and from the world's own steps, so it cannot say anything else
than what is played.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rpms.envs import Environment
from rpms.prompts.blocks import render_rules
from rpms.rules import Manual
from rpms.rules.conditions import ABOUT_CONDITIONS, WORDS, DecisionPoint, holds
from rpms.rules.predicates import Predicate, parse_predicate
from rpms.rules.wording import statement
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.goal import GoalSpec, SubGoal


def type_page(world: Environment, manual: Manual, goal: GoalSpec) -> Iterator[str]:
    """The lines of the page; a goal without a sentence stands for a whole goal type."""
    if goal["sentence"]:
        yield f"{goal['sentence']}\n"
    steps = world.plan(goal) if goal["sentence"] else []
    if not steps:
        advances = manual.domain.advances
        for name in manual.domain.procedures[goal["type"]]:
            done = f"'{advances[name]}' succeeded" if name in advances else ""
            steps.append((SubGoal(name=name, target="", progress=0), done))
    printed: dict[str, int] = {}
    for number, (step, done) in enumerate(steps, start=1):
        words = step.get("words", step["target"])
        about = f": {words}" if words else ""
        yield f"{number}. {_plain(step['name'])}{about}"
        if done:
            yield f"   done: {done}"
        for service in _served(DecisionPoint(manual, goal, step, empty_belief())):
            before = printed.setdefault(service, number)
            yield service if before == number else f"{service.split(':')[0]}, as in step {before}"
    yield f"\n{render_rules(world, manual.active(goal, empty_belief()), goal)}"


def _served(now: DecisionPoint) -> Iterator[str]:
    """What serves a step in this type of task, best first, and when."""
    syntax = {rule.name: rule.syntax for rule in now.manual.actions}
    for service in now.manual.domain.applicable.get(now.sub_goal["name"], []):
        conditions = [parse_predicate(text) for text in service.when]
        truths = [_settled(now, condition) for condition in conditions]
        if not {"all", now.goal["type"]} & {*service.goal_types} or False in truths:
            continue
        action = service.wording or syntax[service.action]
        because = service.because.replace("{usual}", "such things are usually there")
        line = f"   - {'else ' * service.last_resort}{action}: {because}"
        left_open = (c for c, truth in zip(conditions, truths, strict=True) if truth is None)
        when = "; ".join(_words(now.manual, condition) for condition in left_open)
        yield re.sub(r"\{(\w+)\}", r"<\1>", line) + (f"\n     if {when}" if when else "")


def _settled(now: DecisionPoint, condition: Predicate) -> bool | None:
    """Whether the task's sentence, or the step, decides a condition before anything is played."""
    choices = now.manual.domain.terms.get(condition.name)
    if choices and not condition.arguments:
        truths = [[_settled(now, parse_predicate(t)) for t in choice] for choice in choices]
        met = True in map(all, truths) or (None if any(False not in t for t in truths) else False)
        return met if met is None or condition.positive else not met
    blanks = {name for rule in now.manual.actions for name in rule.parameters}
    if not now.goal["sentence"] or {*condition.arguments} & blanks:
        return None
    return holds(now, condition, {}) if condition.name in _FROM_THE_START else None


_FROM_THE_START = {"mentioned", "targeted", "goal_object"}


def _words(manual: Manual, condition: Predicate, it: str = "") -> str:
    """A condition in words: the policy's bring their own, the others are phrases of the manual."""
    names = {p: f"<{p}>" for rule in manual.actions for p in rule.parameters}
    names = dict.fromkeys(names, it) if it else {**names, "$object": "the task's object"}
    if condition.name not in WORDS:
        return _plain(statement(condition, names, manual.facts))
    filled = [names.get(argument, _plain(argument)) for argument in condition.arguments]
    if condition.name in ABOUT_CONDITIONS:
        inner = Predicate(True, condition.arguments[-1], ("thing",))
        if condition.name == "some":
            return _words(manual, inner, "something" if condition.positive else "nothing")
        filled[-1] = _words(manual, inner, "it")
    words = WORDS[condition.name][2].format(*filled)
    return words if condition.positive else f"not: {words}"


def _plain(name: str) -> str:
    return name.replace("_", " ")
