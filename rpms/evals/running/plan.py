"""The plan of a run: arms, tasks, and one job for each pair of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import sqrt
from typing import Any, NamedTuple, TypeVar

from rpms.envs import Environment, Task, world_with_tasks
from rpms.evals.records.schema import Episode, EpisodeLine, JobKey
from rpms.graph.compiled import GraphSource
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.limits import MOST_TASKS, MOST_TIMES

# The distance between the seeds of trials, so that no two episodes of a task share a seed.
TRIAL_STRIDE = 1000

# The fractional parts of its multiples are spread evenly over the interval from 0 to 1.
GOLDEN = (sqrt(5) - 1) / 2

T = TypeVar("T")


class Job(NamedTuple):
    """One episode to be run.

    ``before`` is the line of the previous trial, from which the memory may learn first;
    ``cross_trial_memory`` is the memory of that trial.
    """

    condition: str
    task: Task
    repeat: int = 1
    trial: int = 1
    cross_trial_memory: Mapping[str, Any] = {}
    before: EpisodeLine | None = None

    @property
    def key(self) -> JobKey:
        return JobKey(self.condition, self.task["id"], self.repeat, self.trial)

    def seeded(self, context: RunContext) -> RunContext:
        """The arm's settings with the seed of this repeat and trial."""
        shift = self.repeat - 1 + TRIAL_STRIDE * (self.trial - 1)
        return context.with_(seed=context.seed + shift) if shift else context


@dataclass(frozen=True)
class RunPlan:
    """Everything that decides the results of a run.

    Attributes:
        env: the environment.
        split: the split of the tasks.
        tasks: the tasks, in their order.
        conditions: settings by label; every task is run under each of them.
        truth: compare the belief with the simulator's true state at every step.
        cache: the file of cached replies; empty for none.
        graphs: graphs of the user's own, by label; import paths where worker processes run them.
        trials: the maximal number of trials of a task, with cross-trial memory.
        repeats: the number of independent repeats, with different seeds.
        compare: the pairs of arms that the report tests.
        name: the name of the plan that the run follows, as ``--plan`` takes it; empty for none.
    """

    env: str
    split: str
    tasks: list[Task]
    conditions: dict[str, RunContext]
    truth: bool = True
    cache: str = ""
    graphs: Mapping[str, GraphSource] = field(default_factory=dict)
    trials: int = 1
    repeats: int = 1
    compare: Sequence[tuple[str, str]] = ()
    name: str = ""

    @property
    def context(self) -> RunContext:
        """The settings of the first arm."""
        return next(iter(self.conditions.values()))

    def jobs(self) -> list[Job]:
        """The first trials. The arms of a task are together, so that pairs are complete early."""
        return [
            Job(label, task, repeat)
            for repeat in range(1, self.repeats + 1)
            for task in self.tasks
            for label in self.conditions
        ]

    def following(self, job: Job, episode: Episode) -> Job | None:
        """The next trial after an episode; None if the task is won or has no trial left."""
        if episode.success or episode.is_error or job.trial >= self.trials:
            return None
        assert isinstance(episode, EpisodeLine)  # runs with trials read full lines
        return job._replace(
            trial=job.trial + 1, cross_trial_memory=episode.cross_trial_memory, before=episode
        )


def choose_tasks(
    env: str,
    split: str,
    limit: int = 0,
    spread: bool = False,
    ids: Sequence[str] = (),
    types: Sequence[str] = (),
) -> list[Task]:
    """The chosen tasks of a split; an error if one does not exist.

    Args:
        env: the environment.
        split: the split.
        limit: the number of tasks; 0 for all.
        spread: a stratified sample of the whole split instead of its first tasks (``stratified``).
        ids: only the tasks with these ids.
        types: only tasks of these goal types.
    """
    if not 0 <= limit <= MOST_TASKS:
        raise RpmsError(f"--limit {limit} is out of range; give 0 to {MOST_TASKS} tasks")
    world = world_with_tasks(env)
    plain = not (spread or ids or types)
    tasks = world.tasks(split, limit or None) if plain else world.tasks_with(split, ids)
    if spread and len(tasks) < limit:  # a generated split has any number of tasks
        tasks = world.tasks(split, limit)
    if ids:
        by_id = {task["id"]: task for task in tasks}
        if unknown := [name for name in ids if name not in by_id]:
            raise RpmsError(
                f"no task '{unknown[0]}' in split '{split}' of {env}; 'rpms tasks' lists them"
            )
        tasks = sorted((by_id[name] for name in {*ids}), key=lambda task: task["index"])
    if types:
        if unknown := sorted({*types} - {*world.goal_types()}):
            goal_types = ", ".join(world.goal_types())
            raise RpmsError(f"unknown goal type '{unknown[0]}'; {env} has {goal_types}")
        tasks = [task for task in tasks if world.parse_goal(task["goal"])["type"] in types]
    if spread:
        tasks = stratified(world, tasks, limit)
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
        raise RpmsError("no arms given; give conditions such as A,B,C,D, or a plan")
    # The manifest records the effective history: the baseline shows all turns.
    conditions = {
        label: context.with_(history=context.turns_shown) for label, context in conditions.items()
    }
    chosen = choose_tasks(env, split, limit, spread, tasks, types)
    plan = RunPlan(env, split, chosen, conditions, **options)
    if not (1 <= plan.trials <= MOST_TIMES and 1 <= plan.repeats <= MOST_TIMES):
        raise RpmsError(f"--trials and --repeats must be 1 to {MOST_TIMES}")
    return plan


def stratified(world: Environment, tasks: list[Task], count: int) -> list[Task]:
    """A sample of ``count`` tasks in their order; all of them for 0 or too high a count.

    Every task type gets a share in proportion to its number of tasks, but at least one task, so
    that the sample's success rate estimates that of all tasks. If the count is too small for that,
    every task is of another type. Within a type the sample is spread over all of its tasks. The
    sample is deterministic.
    """
    if not 0 < count < len(tasks):
        return tasks
    strata: dict[str, list[Task]] = {}
    for task in tasks:
        strata.setdefault(world.task_name(task), []).append(task)
    sizes = {name: len(strata[name]) for name in _by_turns(world, strata)}
    chosen: set[str] = set()
    for name, share in apportioned(sizes, count).items():
        chosen |= {task["id"] for task in one_of_each_stretch(strata[name], share, len(chosen))}
    return [task for task in tasks if task["id"] in chosen]


def _by_turns(world: Environment, strata: Mapping[str, Sequence[Task]]) -> list[str]:
    """Task types in an order that alternates goal types, so that small samples have many."""
    families: dict[str, list[str]] = {}
    for name, tasks in strata.items():
        families.setdefault(world.parse_goal(tasks[0]["goal"])["type"], []).append(name)
    rounds = zip_longest(*families.values())
    return [name for names in rounds for name in names if name is not None]


def apportioned(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """The number of sampled tasks of each stratum: one, then in proportion to its size.

    After the first of each, Sainte-Lague's method gives the next one to the stratum with the fewest
    for its size; of equals, to the first in the order of ``sizes``.
    """
    places = {name: int(number < count) for number, name in enumerate(sizes)}
    for _ in range(min(count, sum(sizes.values())) - sum(places.values())):
        free = (name for name, size in sizes.items() if places[name] < size)
        places[max(free, key=lambda name: sizes[name] / (2 * places[name] + 1))] += 1
    return places


def one_of_each_stretch(items: Sequence[T], count: int, before: int = 0) -> list[T]:
    """One item of each of ``count`` equal stretches, in order.

    The position within a stretch varies, also from stratum to stratum: ``before`` is the number of
    items from earlier strata. With equal distances the sample could miss one of two kinds that
    alternate, as the wordings of a goal do in generated splits.
    """
    positions = []
    for number in range(count):
        start, end = (n * len(items) // count for n in (number, number + 1))
        positions.append(start + int((end - start) * (GOLDEN * (before + number + 1) % 1)))
    return [items[position] for position in positions]


def evenly(items: list[T], count: int) -> list[T]:
    """``count`` items at equal distances; all of them for 0 or too high a count.

    Used for the steps of an episode; samples of tasks are ``stratified``.
    """
    if not 0 < count < len(items):
        return items
    return [items[number * len(items) // count] for number in range(count)]


def remaining(
    plan: RunPlan, finished: Mapping[JobKey, Episode], keep_failed: bool = False
) -> tuple[list[Job], list[Episode]]:
    """The remaining jobs, and the finished episodes, each task by its last trial.

    Jobs remain for unfinished tasks, episodes that ended in an error, and later trials.
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
