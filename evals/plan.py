"""What a run consists of: conditions, tasks, and one job for each pair of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from envs import Task, get_environment
from nodes.context import RunContext
from vocabulary.errors import RpmsError
from vocabulary.turn import ERRORS, FailureMode

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
) -> RunPlan:
    """List the tasks and check that there is something to do."""
    if limit < 0:
        raise RpmsError("--limit must not be negative")
    if not conditions:
        raise RpmsError("no conditions given; choose from A,B,C,D or give a --preset")
    tasks = get_environment(env).tasks(split, limit or None)
    tasks = tasks[:limit] if limit else tasks
    if not tasks:
        raise RpmsError(f"split '{split}' of {env} has no tasks")
    return RunPlan(env, split, tasks, conditions, limit, truth, cache)


def remaining(
    plan: RunPlan, finished: Mapping[JobKey, FailureMode | None], retry_failed: bool
) -> list[Job]:
    """What is still to do: everything not finished, and on request what ended in an error."""
    again: Collection[FailureMode] = ERRORS if retry_failed else ()
    return [job for job in plan.jobs() if job.key not in finished or finished[job.key] in again]
