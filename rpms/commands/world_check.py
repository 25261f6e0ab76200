"""What only play shows of a world: whether its class, its belief and its procedure fit together."""

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
    """Play the first task to learn on of each goal type by the procedure, and say where it ends."""
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
    """Where the class has the method that is to be looked at."""
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
    """Until the procedure has nothing to offer, or is refused what the rules promise."""
    observation, action = game.reset(task), ""
    belief, no_effect = world.first_belief(observation), list[str]()
    history: list[Turn] = []
    for step in range(1, world.max_steps + 1):
        where = f"at step {step} of task {task['index']} of {task['split']}"
        sub_goal = world.sub_goal(goal, belief, history)
        now = DecisionPoint(manual, goal, sub_goal, belief, no_effect)
        choices = applicable_actions(now)
        if not choices:
            last = f", after '{action}' was answered '{observation}'" if action else ""
            problem = f"'{sub_goal['name']}' has nothing to offer {where}{last}: {why_nothing(now)}"
            yield Finding(
                *locate("domain", "applicable", world.rules, over=over), "applicable", problem
            )
            return
        action = choices[0]["action"]
        observation, done, *_ = game.step(action)
        refused, diagnosis = world.failed(observation), check_action(manual, action, belief)
        if refused and diagnosis.verdict == "holds":
            promise = f"although all that {diagnosis.rule} needs holds in the belief"
            yield _at(world, "update_belief", f"'{action}' was refused {where} {promise}")
            return
        if done:
            return
        history.append(Turn(step=step, thought="", action=action, observation=observation,
                            failed=refused, reply=""))  # fmt: skip
        before, belief = belief, world.update_belief(belief, action, observation)
        no_effect = [*no_effect, action] if belief == before else []
