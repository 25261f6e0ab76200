"""Checks the rules of an environment: words, examples, tools, and the procedure in play."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from rpms.envs import Environment, ToolWorld
from rpms.envs.base import LiveGame, Task
from rpms.envs.manuals import load_manual
from rpms.envs.registry import BUILT_IN
from rpms.guard.conversation import ConversationTracker
from rpms.guard.examples import example_problems, field_problems, unexercised, unsourced
from rpms.guard.procedure import applicable_actions, why_nothing
from rpms.guard.sources import Citations, compare_policy, left_over, undecided
from rpms.guard.tools import tool_problems
from rpms.prompts.examples import load_example, missing_prompts
from rpms.rules import Manual, check_action
from rpms.rules.check import Finding, check_manual, find_places, locate
from rpms.rules.conditions import DecisionPoint
from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.turn import Turn


class Checked(NamedTuple):
    """The problems of an environment's rules, the number of its rules, and a policy's citations.

    ``counts`` is empty if ``rules`` has problems: such a manual may not load. ``citations`` needs a
    policy and a manual without unknown words.
    """

    problems: list[Finding]
    counts: dict[str, int]
    citations: Citations | None


def check_world(
    world: Environment, rules: str = "", policy: str = "", strict: bool = False
) -> Checked:
    """Check the rules of an environment.

    Args:
        world: the environment; one of your own is also run on its first tasks.
        rules: a folder that overlays its manual.
        policy: the text of a policy, which is compared with the sources of rules.
        strict: every rule needs an allowed and a refused example, and every condition one that
            makes it true and one that makes it false; every sentence of the policy is decided.
    """
    over = Path(rules) if rules else None
    prompted = not isinstance(world, ToolWorld)  # else another agent acts and prompts
    problems = check_manual(
        world.rules, world.goal_types(), world.command_verbs(), over=over, played=prompted
    )
    if prompted:
        missing = missing_prompts(world)
        problems += [Finding(file, 1, "prompts", f"missing; {advice}") for file, advice in missing]
    citations = None
    if not problems:  # a manual with unknown words cannot judge anything
        tracker = ConversationTracker.open(world, rules)
        tools = [*world.tools()]
        differences = tool_problems(tracker.manual, tools) if tools else ()
        mismatches = [("environment", rule, words) for rule, words in differences]
        # The examples would only repeat a misspelt tool or argument.
        found = mismatches or [*field_problems(tracker.manual), *example_problems(tracker)]
        citations = compare_policy(tracker.manual, policy) if policy else None
        if strict and not found:
            found += [*unexercised(tracker), *unsourced(tracker.manual), *undecided(tracker.manual)]
            found += left_over(citations) if citations else ()
        problems += find_places(found, world.rules, over=over)
    # Tests cover the built-in environments; with problems in the rules no episode runs.
    if prompted and world.name not in BUILT_IN and not problems:
        problems += _procedure_problems(world, load_manual(world.name, rules), over)
    if rules and problems:
        return Checked(problems, {}, citations)
    manual = load_manual(world.name, rules)
    demands = len(manual.environment.policy)
    counts = {
        "universal": len(manual.universal.rules),
        "domain": len(manual.domain.rules) + len(manual.domain.likely_places),
        **{name: len(tier) for name, tier in manual.extra.items()},
        "action rules": len(manual.actions),
        **({"policy rules": demands} if demands else {}),
        "forbidden patterns": len(manual.forbidden),
        "situations": len(manual.environment.situations),
        "problems": len(problems),
    }
    return Checked(problems, counts, citations)


def _procedure_problems(world: Environment, manual: Manual, over: Path | None) -> Iterator[Finding]:
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
        if rejected and diagnosis.verdict == "kept":
            promise = f"although every precondition of {diagnosis.rule} holds in the belief"
            yield _at(world, "update_belief", f"'{action}' was rejected {where} {promise}")
            return
        if done:
            return
        history.append(Turn(step=step, thought="", action=action, observation=observation,
                            failed=rejected, reply=""))  # fmt: skip
        before, belief = belief, world.update_belief(belief, action, observation)
        no_effect = [*no_effect, action] if belief == before else []
