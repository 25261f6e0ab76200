"""The page of ``rpms rules show``: a goal type with its steps, applicable actions and rules.

It is generated from the manual and the environment's steps, so it shows what an episode uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rpms.envs import Environment
from rpms.prompts.blocks import render_rules
from rpms.rules import Manual
from rpms.rules.conditions import DecisionPoint, holds
from rpms.rules.predicates import Predicate, parse_predicate
from rpms.rules.registry import CONDITIONS
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
        text = f": {words}" if words else ""
        yield f"{number}. {_plain(step['name'])}{text}"
        if done:
            yield f"   done: {done}"
        for line in _applicable(DecisionPoint(manual, goal, step, empty_belief())):
            first = printed.setdefault(line, number)
            yield line if first == number else f"{line.split(':')[0]}, as in step {first}"
    yield f"\n{render_rules(world, manual.active(goal, empty_belief()), goal)}"


def _applicable(point: DecisionPoint) -> Iterator[str]:
    """The applicable actions of a step, best first, with their conditions."""
    syntax = {rule.name: rule.syntax for rule in point.manual.actions}
    for row in point.manual.domain.applicable.get(point.sub_goal["name"], []):
        conditions = [parse_predicate(text) for text in row.when]
        truths = [_settled(point, condition) for condition in conditions]
        if not {"all", point.goal["type"]} & {*row.goal_types} or False in truths:
            continue
        action = row.wording or syntax[row.action]
        because = row.because.replace("{usual}", "such things are usually there")
        line = f"   - {'else ' * row.last_resort}{action}: {because}"
        left_open = (c for c, truth in zip(conditions, truths, strict=True) if truth is None)
        when = "; ".join(_words(point.manual, condition) for condition in left_open)
        yield re.sub(r"\{(\w+)\}", r"<\1>", line) + (f"\n     if {when}" if when else "")


def _settled(point: DecisionPoint, condition: Predicate) -> bool | None:
    """The truth value of a condition that the task's sentence or the step decides, else None."""
    choices = point.manual.domain.terms.get(condition.name)
    if choices and not condition.arguments:
        truths = [[_settled(point, parse_predicate(t)) for t in choice] for choice in choices]
        met = True in map(all, truths) or (None if any(False not in t for t in truths) else False)
        return met if met is None or condition.positive else not met
    blanks = {name for rule in point.manual.actions for name in rule.parameters}
    if not point.goal["sentence"] or {*condition.arguments} & blanks:
        return None
    return holds(point, condition, {}) if condition.name in _FROM_THE_START else None


_FROM_THE_START = {"mentioned", "targeted", "goal_object"}


def _words(manual: Manual, condition: Predicate, it: str = "") -> str:
    """A condition in words: those of the policy have their own, the others use the manual's."""
    names = {p: f"<{p}>" for rule in manual.actions for p in rule.parameters}
    names = dict.fromkeys(names, it) if it else {**names, "$object": "the task's object"}
    declared = CONDITIONS.get(condition.name)
    if declared is None or declared.reads != "decision":
        return _plain(statement(condition, names, manual.facts))
    filled = [names.get(argument, _plain(argument)) for argument in condition.arguments]
    if declared.about_condition:
        inner = Predicate(True, condition.arguments[-1], ("thing",))
        if condition.name == "some":
            return _words(manual, inner, "something" if condition.positive else "nothing")
        filled[-1] = _words(manual, inner, "it")
    words = declared.statement.format(*filled)
    return words if condition.positive else f"not: {words}"


def _plain(name: str) -> str:
    return name.replace("_", " ")
