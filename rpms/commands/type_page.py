"""The page of ``rpms rules show``: a goal type with its steps, applicable actions and rules.

It is generated from the manual and the environment's steps, so it shows what an episode uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rpms.envs import Environment
from rpms.prompts.blocks import render_rules
from rpms.rules import Manual
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
    for number, (step, done) in enumerate(steps, start=1):
        words = step.get("words", step["target"])
        yield f"{number}. {step['name'].replace('_', ' ')}{': ' if words else ''}{words}"
        if done:
            yield f"   done: {done}"
        yield from _applicable(manual, goal["type"], step["name"])
    yield f"\n{render_rules(world, manual.active(goal, empty_belief()), goal)}"


def _applicable(manual: Manual, goal_type: str, step: str) -> Iterator[str]:
    """The applicable actions of a step, best first, with their conditions as in the rule file."""
    syntax = {rule.name: rule.syntax for rule in manual.actions}
    for row in manual.domain.applicable.get(step, []):
        if {"all", goal_type} & {*row.goal_types}:
            because = row.because.replace("{usual}", "such things are usually there")
            line = f"   - {'else ' * row.last_resort}{row.wording or syntax[row.action]}: {because}"
            when = f"\n     if {'; '.join(row.when)}" if row.when else ""
            yield re.sub(r"\{(\w+)\}", r"<\1>", line) + when
