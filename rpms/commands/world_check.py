"""Checks a custom environment by running it: class, belief and procedure must fit together."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rpms.envs import Environment
from rpms.envs.base import LiveGame, Task
from rpms.guard.policy import applicable_actions, why_nothing
from rpms.prompts.examples import load_example
from rpms.rules import Manual, check_action
from rpms.rules.check import Finding, locate
from rpms.rules.conditions import DecisionPoint
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.turn import Turn


def check_world(world: Environment, manual: Manual, over: Path | None) -> Iterator[Finding]:
    """Run the procedure on the first learning task of each goal type and report where it stops."""
    types: set[str] = set()
    for task in world.tasks(world.learning_split):
        goal = world.parse_goal(task["goal"])
        if goal["type"] in types:
            continue
        types.add(goal["type"])
        load_example(world.prompts, goal["type"])
        if not isinstance(task["id"], str):
            yield _at(world, "tasks", f"the id {task['id']!r} should be a text")
        if world.read_signature(goal["signature"]).type != goal["type"]:
            form = ":".join(world.signature)
            problem = f"the signature '{goal['signature']}' should have the form {form}"
            yield _at(world, "parse_goal", problem)
        with closing(world.open_game()) as game:
            yield from _play(world, manual, over, task, goal, game)


def _at(world: Environment, method: str, problem: str) -> Finding:
    """A finding at the line of the method to look at."""
    source = getattr(type(world), method)
    line = inspect.getsourcelines(source)[1]
    return Finding(Path(inspect.getfile(source)), line, method, problem)


def _play(
    world: Environment,
    manual: Manual,
    over: Path | None,
    task: Task,
    goal: GoalSpec,
    game: LiveGame,
) -> Iterator[Finding]:
    """Run until no action is applicable, or an action that the rules allow is rejected."""
    observation, action = game.reset(task), ""
    belief, no_effect = world.first_belief(observation), list[str]()
    history: list[Turn] = []
    for step in range(1, world.max_steps + 1):
        where = f"at step {step} of task {task['index']} of {task['split']}"
        sub_goal = world.sub_goal(goal, belief, history)
        point = DecisionPoint(manual, goal, sub_goal, belief, no_effect)
        choices = applicable_actions(point)
        if not choices:
            last = f", after '{action}' was answered '{observation}'" if action else ""
            problem = (
                f"'{sub_goal['name']}' has no applicable action {where}{last}: {why_nothing(point)}"
            )
            yield Finding(
                *locate("domain", "applicable", world.rules, over=over), "applicable", problem
            )
            return
        action = choices[0]["action"]
        observation, done, *_ = game.step(action)
        rejected, diagnosis = world.failed(observation), check_action(manual, action, belief)
        if rejected and diagnosis.verdict == "holds":
            promise = f"although every precondition of {diagnosis.rule} holds in the belief"
            yield _at(world, "update_belief", f"'{action}' was rejected {where} {promise}")
            return
        if done:
            return
        history.append(Turn(step=step, thought="", action=action, observation=observation,
                            failed=rejected, reply=""))  # fmt: skip
        before, belief = belief, world.update_belief(belief, action, observation)
        no_effect = [*no_effect, action] if belief == before else []
