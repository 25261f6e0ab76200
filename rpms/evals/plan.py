"""What a run consists of: arms, tasks, and one job for each pair of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from rpms.envs import Task, get_environment
from rpms.evals.records import Episode, EpisodeLine, JobKey
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.limits import MOST_TASKS, MOST_TIMES

# A trial has a seed far from those of the repeats, so that no two episodes of a task share one.
TRIAL_STRIDE = 1000

T = TypeVar("T")


class Job(NamedTuple):
    """One episode to be played.

    ``before`` is the line of the trial before this one, from which something may be learned
    first; ``carried`` is what that trial was played with.
    """

    condition: str
    task: Task
    repeat: int = 1
    trial: int = 1
    carried: Mapping[str, Any] = {}
    before: EpisodeLine | None = None

    @property
    def key(self) -> JobKey:
        """What names the episode within its run."""
        return JobKey(self.condition, self.task["id"], self.repeat, self.trial)

    def seeded(self, context: RunContext) -> RunContext:
        """The arm's settings with a seed of this repeat's and trial's own."""
        shift = self.repeat - 1 + TRIAL_STRIDE * (self.trial - 1)
        return context.with_(seed=context.seed + shift) if shift else context


@dataclass(frozen=True)
class RunPlan:
    """Everything that decides the results of a run.

    Attributes:
        env: the environment.
        split: the list the tasks come from.
        tasks: the tasks, in their order.
        conditions: settings by label; every task is played under each of them.
        nodes: by label, the import paths of stages that the arm swaps.
        truth: whether every step's belief is compared with the simulator's true facts.
        cache: file of replies that need no new model call; empty for none.
        trials: how often a task may be tried until it is won, with memory carried along.
        repeats: how often everything is played independently, with other seeds.
    """

    env: str
    split: str
    tasks: list[Task]
    conditions: dict[str, RunContext]
    truth: bool = True
    cache: str = ""
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    trials: int = 1
    repeats: int = 1

    @property
    def context(self) -> RunContext:
        """The settings of the first arm."""
        return next(iter(self.conditions.values()))

    def jobs(self) -> list[Job]:
        """The first trial of everything. The arms of a task lie together: pairs fill up early."""
        return [
            Job(label, task, repeat)
            for repeat in range(1, self.repeats + 1)
            for task in self.tasks
            for label in self.conditions
        ]

    def following(self, job: Job, episode: Episode) -> Job | None:
        """The next trial after an episode, where there is one: until the task is won."""
        if episode.success or episode.is_error or job.trial >= self.trials:
            return None
        assert isinstance(episode, EpisodeLine)  # what further trials need of a line is read
        return job._replace(trial=job.trial + 1, carried=episode.carried, before=episode)


def choose_tasks(
    env: str,
    split: str,
    limit: int = 0,
    spread: bool = False,
    ids: Sequence[str] = (),
    types: Sequence[str] = (),
) -> list[Task]:
    """The tasks of a split that are asked for; refused where one is not there.

    Args:
        env: the world.
        split: the list.
        limit: how many; 0 for all of them.
        spread: evenly from the whole split rather than its first ones. Splits are sorted by task
            type, so this is what keeps a small sample from being all of one type.
        ids: only these.
        types: only those of these goal types.
    """
    if not 0 <= limit <= MOST_TASKS:
        raise RpmsError(f"--limit {limit} is not possible: 0 to {MOST_TASKS} tasks")
    world = get_environment(env)
    plain = not (spread or ids or types)
    tasks = world.tasks(split, (limit or None) if plain else None)
    if ids:
        known = {task["id"]: task for task in tasks}
        if unknown := [name for name in ids if name not in known]:
            raise RpmsError(f"no task '{unknown[0]}' in split '{split}' of {env}")
        tasks = sorted((known[name] for name in {*ids}), key=lambda task: task["index"])
    if types:
        if unknown := sorted({*types} - {*world.goal_types()}):
            known_types = ", ".join(world.goal_types())
            raise RpmsError(f"unknown goal type '{unknown[0]}'; {env} has {known_types}")
        tasks = [task for task in tasks if world.parse_goal(task["goal"])["type"] in types]
    if spread:
        tasks = evenly(tasks, limit)
    if not tasks:
        raise RpmsError(f"split '{split}' of {env} has no such tasks")
    return tasks[: limit or None]


def make_plan(
    env: str,
    split: str,
    conditions: dict[str, RunContext],
    limit: int = 0,
    *,
    spread: bool = False,
    tasks: Sequence[str] = (),
    types: Sequence[str] = (),
    **options: Any,
) -> RunPlan:
    """List the tasks and check that there is something to do; ``options`` are ``RunPlan``'s."""
    if not conditions:
        raise RpmsError("no conditions given; choose from A,B,C,D or give a --preset")
    # As they are played: a manifest says of the baseline that it showed all turns.
    conditions = {
        label: context.with_(history=context.turns_shown) for label, context in conditions.items()
    }
    chosen = choose_tasks(env, split, limit, spread, tasks, types)
    plan = RunPlan(env, split, chosen, conditions, **options)
    if not (1 <= plan.trials <= MOST_TIMES and 1 <= plan.repeats <= MOST_TIMES):
        raise RpmsError(f"--trials and --repeats must be 1 to {MOST_TIMES}")
    return plan


def evenly(tasks: list[T], count: int) -> list[T]:
    """That many at equal distances, in their order; all of them for 0 or too high a count."""
    if not 0 < count < len(tasks):
        return tasks
    return [tasks[number * len(tasks) // count] for number in range(count)]


def remaining(
    plan: RunPlan, finished: Mapping[JobKey, Episode], keep_failed: bool = False
) -> tuple[list[Job], list[Episode]]:
    """What is still to do, and the episodes that settle all else, each task by its last trial.

    To do is everything not finished, what ended in an error, and later trials.
    """
    jobs: list[Job] = []
    settled: list[Episode] = []
    for first in plan.jobs():
        job: Job | None = first
        while job is not None and (episode := finished.get(job.key)):
            if episode.is_error and not keep_failed:
                break
            if (job := plan.following(job, episode)) is None:
                settled.append(episode)
        if job is not None:
            jobs.append(job)
    return jobs, settled
