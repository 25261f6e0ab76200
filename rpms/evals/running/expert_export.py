"""Runs the expert on tasks of a learning split and exports its decisions as chat messages."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from pathlib import Path
from shutil import rmtree

from rpms.envs import Task, get_environment
from rpms.evals.records.run_folder import read_log, read_run
from rpms.evals.records.schema import Episode
from rpms.evals.running.arms import make_arm, parse_arm
from rpms.evals.running.evaluate import ExecutionOptions, play_plan
from rpms.evals.running.expert import graph as expert_graph
from rpms.evals.running.export_chat import (
    DECISIONS,
    EXPERT,
    ChatFormat,
    ExportCounts,
    lesson_of,
    write_chat,
)
from rpms.evals.running.learning_data import refuse_judging
from rpms.evals.running.plan import Job, RunPlan, choose_tasks, one_of_each_stretch, remaining
from rpms.vocabulary.context import ABLATION, RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.imports import path_of

AT_ONCE = 2
"""Episodes in flight per worker: the expert waits for no model, only for the next job."""
TRIES = 4
"""The maximal number of episodes for one place in a type's share."""


@dataclass(frozen=True)
class ExpertTasks:
    """What the expert runs.

    Attributes:
        env: the environment.
        split: the split; by default the environment's learning split.
        limit: the number of tasks; 0 for all.
        spread: a sample of the whole split, stratified over its task types.
        won: stop after this many won episodes, balanced over task types; 0 runs each task once.
        conditions: the conditions, in turn; one that is given twice gets twice as many tasks.
        arms: additional arms, as ``LABEL:SETTING=VALUE,...``.
        settings: the settings of all arms; their seed is also that of the mistakes.
        mistakes: the rate of mistakes, 0 to 1.
    """

    env: str
    split: str = ""
    limit: int = 0
    spread: bool = False
    won: int = 0
    conditions: Sequence[str] = ()
    arms: Sequence[str] = ()
    settings: RunContext = field(default_factory=RunContext)
    mistakes: float = 0.0

    def plan(self, form: ChatFormat) -> LessonPlan:
        """The episodes; an error if they could not be exported in this form."""
        split = self.split or get_environment(self.env).learning_split
        refuse_judging(self.env, split)
        parsed = map(parse_arm, [*self.conditions, *self.arms] or ABLATION)
        arms = [(label, make_arm(fields, self.settings, f"--arm '{label}'"))
                for label, fields in parsed]  # fmt: skip
        for label, arm in arms:
            if arm.graph:
                raise RpmsError(f"--arm '{label}': the expert acts in our graph, not in another")
        form.check_turns(arm.settings().turns_shown for _, arm in arms)
        tasks = choose_tasks(self.env, split, self.limit, self.spread)
        if not self.limit and len(tasks) < self.won:  # a generated split has any number of tasks
            tasks = choose_tasks(self.env, split, self.won)
        return LessonPlan(
            self.env,
            split,
            tasks,
            {label: arm.settings().with_(temperature=self.mistakes) for label, arm in arms},
            truth=False,
            graphs={label: path_of(expert_graph, "") for label, _ in arms},
            labels=tuple(label for label, _ in arms),
            won=self.won,
        )


def export_expert(
    tasks: ExpertTasks,
    out: Path,
    form: ChatFormat = DECISIONS,
    *,
    workers: int | None = None,
    show: bool = False,
) -> ExportCounts:
    """Run the expert and export its decisions; called again after an interrupt, it resumes.

    Args:
        tasks: what it runs.
        out: the file to write; a run folder beside it keeps the episodes until it is written.
        form: the form of the lines.
        workers: worker processes; 0 runs in this process, None takes one per processor.
        show: print progress on standard error.
    """
    plan = tasks.plan(form)
    processes = min(workers if workers is not None else os.cpu_count() or 1, len(plan.jobs()))
    execution = ExecutionOptions(processes, concurrency=AT_ONCE * max(processes, 1))
    folder = out.with_name(f"{out.name}.run")
    play_plan(plan, str(folder), execution, show=show, summary=False)
    run = read_run(folder)
    settled = remaining(plan, run.episodes, keep_failed=True)[1]
    logs = ((episode, read_log(run.log_file(episode))) for episode in settled)
    lessons = (lesson_of(e, log, plan.env, plan.split, EXPERT) for e, log in logs if log)
    counts = write_chat(lessons, out, form)
    rmtree(folder)
    return counts._replace(short=plan.lost(settled))


@dataclass(frozen=True)
class LessonPlan(RunPlan):
    """One arm for each task, in turn within each task type; or ``won`` successful episodes.

    With ``won`` every type has an equal share; a type with few tasks repeats them with other seeds.
    The n-th place of a share belongs to the type's n-th episode or, if that is lost, to the one a
    whole share further on. So the episodes do not depend on order or interruptions.

    Attributes:
        labels: the arms, in turn. Splits repeat their types in a fixed order, so that arms by the
            task's number would give each type only some of the arms.
        won: the number of successful episodes; 0 for every task once, won or lost.
    """

    labels: tuple[str, ...] = ()
    won: int = 0

    @cached_property
    def by_type(self) -> dict[str, list[Task]]:
        """The tasks of each type; first a sample that is spread over all of them."""
        kinds: defaultdict[str, list[Task]] = defaultdict(list)
        for task in self.tasks:
            kinds[get_environment(self.env).task_name(task)].append(task)
        share = ceil(self.won / len(kinds))
        first = {
            task["id"]
            for tasks in kinds.values()
            for task in one_of_each_stretch(tasks, min(share, len(tasks)))
        }
        for tasks in kinds.values():
            tasks.sort(key=lambda task: task["id"] not in first)
        return kinds

    @property
    def share(self) -> int:
        """The number of episodes of each type that must be won."""
        return ceil(self.won / len(self.by_type))

    def jobs(self) -> list[Job]:
        """The types alternate, so that an interrupted export is balanced, too."""
        ranks = [
            (number, rank, kind)
            for rank, (kind, tasks) in enumerate(self.by_type.items())
            for number in range(self.share or len(tasks))
        ]
        chosen = sorted(ranks)[: self.won or None]
        return [self._episode(kind, number) for number, _, kind in chosen]

    def following(self, job: Job, episode: Episode) -> Job | None:
        """The next episode for the place of a lost one, up to TRIES in all."""
        if not self.won or episode.success or episode.is_error:
            return None
        kind = get_environment(self.env).task_name(job.task)
        tasks = self.by_type[kind]
        number = tasks.index(job.task) + (job.repeat - 1) * len(tasks) + self.share
        return self._episode(kind, number) if number < TRIES * self.share else None

    def lost(self, settled: Iterable[Episode]) -> Counter[str]:
        """The number of missing episodes of each type's share."""
        kinds = {task["id"]: kind for kind, tasks in self.by_type.items() for task in tasks}
        return Counter(kinds[episode.task] for episode in settled if not episode.success)

    def _episode(self, kind: str, number: int) -> Job:
        """The episode of this number: the tasks in turn, each time under another arm."""
        tasks = self.by_type[kind]
        repeats, position = divmod(number, len(tasks))
        turn = number + repeats + [*self.by_type].index(kind)
        return Job(self.labels[turn % len(self.labels)], tasks[position], repeats + 1)
