"""What a run consists of: conditions, tasks, and one job for each pair of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rpms.envs import Task, get_environment
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import ERRORS, FailureMode

JobKey = tuple[str, str]
"""Condition label and task id: what names an episode within a run."""


class Job(NamedTuple):
    """One episode to be played."""

    condition: str
    task: Task

    @property
    def key(self) -> JobKey:
        """What names the episode within its run."""
        return self.condition, self.task["id"]


@dataclass(frozen=True)
class RunPlan:
    """Everything that decides the results of a run.

    Attributes:
        env: the environment.
        split: the list the tasks come from.
        tasks: the tasks, in their order.
        conditions: settings by label; every task is played under each of them.
        limit: how many tasks were asked for; 0 for the whole split.
        truth: whether every step's belief is compared with the simulator's true facts.
        cache: file of replies that need no new model call; empty for none.
    """

    env: str
    split: str
    tasks: list[Task]
    conditions: dict[str, RunContext]
    limit: int = 0
    truth: bool = True
    cache: str = ""

    @property
    def context(self) -> RunContext:
        """Settings that all conditions share, such as the model."""
        return next(iter(self.conditions.values()))

    def jobs(self) -> list[Job]:
        """Every episode. The conditions of a task lie together, so that pairs fill up early."""
        return [Job(label, task) for task in self.tasks for label in self.conditions]


def make_plan(
    env: str,
    split: str,
    conditions: dict[str, RunContext],
    limit: int = 0,
    truth: bool = True,
    cache: str = "",
    spread: bool = False,
) -> RunPlan:
    """List the tasks and check that there is something to do.

    Args:
        env: the environment.
        split: the list the tasks come from.
        conditions: settings by label.
        limit: how many tasks; 0 for the whole split.
        truth: whether beliefs are compared with the simulator's facts.
        cache: file of replies that need no new model call.
        spread: take the tasks evenly from the whole split rather than its first ones. Splits are
            sorted by task type, so this is what keeps a small sample from being all of one type.
    """
    if limit < 0:
        raise RpmsError("--limit must not be negative")
    if not conditions:
        raise RpmsError("no conditions given; choose from A,B,C,D or give a --preset")
    tasks = get_environment(env).tasks(split, None if spread else limit or None)
    if spread:
        tasks = evenly(tasks, limit)
    tasks = tasks[:limit] if limit else tasks
    if not tasks:
        raise RpmsError(f"split '{split}' of {env} has no tasks")
    return RunPlan(env, split, tasks, conditions, limit, truth=truth, cache=cache)


def evenly(tasks: list[Task], count: int) -> list[Task]:
    """That many tasks at equal distances, in their order; all of them for 0 or too high a count."""
    if not 0 < count < len(tasks):
        return tasks
    return [tasks[number * len(tasks) // count] for number in range(count)]


def remaining(
    plan: RunPlan, finished: Mapping[JobKey, FailureMode | None], retry_failed: bool
) -> list[Job]:
    """What is still to do: everything not finished, and on request what ended in an error."""
    again: Collection[FailureMode] = ERRORS if retry_failed else ()
    return [job for job in plan.jobs() if job.key not in finished or finished[job.key] in again]
