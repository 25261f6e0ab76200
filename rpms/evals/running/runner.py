"""Runs a plan: gives jobs to workers, writes their results, and replaces workers that die."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import count
from math import ceil, inf
from pathlib import Path

from rpms.envs import Task, get_environment
from rpms.evals.records.protocol_card import types_missing
from rpms.evals.records.run_folder import RunWriter
from rpms.evals.records.schema import Episode, EpisodeLine, JobKey, Manifest, Session, Spending
from rpms.evals.running.costs import (
    NO_COST,
    NO_LIMIT,
    Budget,
    Meter,
    Tokens,
    Total,
    spent_before,
)
from rpms.evals.running.episode import EpisodeRecorder, EpisodeResult, never_played
from rpms.evals.running.manifest import (
    arm_label,
    commit,
    make_manifest,
    merge_manifest,
    relabelled,
    timestamp,
)
from rpms.evals.running.plan import Job, RunPlan, remaining
from rpms.evals.running.progress import ENOUGH, ConditionTally, RunProgress, Watch
from rpms.evals.running.workers import InlinePool, Pool, ProcessPool, WorkerEvent, WorkerSettings
from rpms.models.prices import rates_for
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.limits import MOST_TIMES
from rpms.vocabulary.output import quantity

ATTEMPTS = 3
"""An episode that lost its worker this often counts as an infrastructure error."""
ALONE_AFTER = 2
"""An episode that lost this many workers runs alone in a worker, because it may be the cause."""
HOPELESS = 3
"""The least number of episodes in a row with the same model error that stop the run."""
POLL_S = 0.25
WAIT_S = 10.0
"""The time that a recorder waits for another process that writes the same folder."""
_DIGIT = re.compile(r"\d")

JobResult = tuple[Job, EpisodeResult]


class Dispatcher:
    """Gives every job to a worker until each has a result."""

    def __init__(
        self, pool: Pool, capacity: int, jobs: Iterable[Job], untried: Iterable[str] = (),
        at_once: float = inf,
    ) -> None:  # fmt: skip
        """Prepare the jobs.

        Args:
            pool: the workers.
            capacity: the number of episodes that one worker runs at a time.
            jobs: the episodes to be run.
            untried: arms with custom code that has not run yet. Each starts with ENOUGH episodes;
                the others wait until one ends without an error (``release``) or all have ended.
            at_once: the number of episodes that all workers together run at a time.
        """
        self._pool = pool
        self._capacity = capacity
        self._at_once = at_once
        self._queue = deque(jobs)
        self._untried = {*untried}
        self._ended: Counter[str] = Counter()
        self._running: dict[int, dict[JobKey, Job]] = {}
        self._lost: Counter[JobKey] = Counter()
        self._deaths = 0

    def play(self, watch: Callable[[], None] = lambda: None) -> Iterator[JobResult]:
        """Yield results as they come; ``watch`` is called a few times a second."""
        if not self._queue:
            return
        self._running = {worker: {} for worker in self._pool.start()}
        while self._queue or any(self._running.values()):
            self._submit_jobs()
            for event in self._pool.poll(POLL_S):
                for job, result in self._handle(event):
                    self._ended[job.condition] += 1
                    yield job, result
            watch()

    def add(self, job: Job) -> None:
        self._queue.append(job)

    def drop(self, condition: str) -> None:
        """Forget the jobs of an arm that no worker has yet."""
        self._queue = deque(job for job in self._queue if job.condition != condition)

    def release(self, condition: str) -> None:
        """Let all jobs of an arm start: its code works."""
        self._untried.discard(condition)

    def _next_job(self) -> Job | None:
        """The first job whose arm need not wait for its first episodes."""
        running = Counter(job.condition for jobs in self._running.values() for job in jobs.values())
        waiting = {
            arm for arm in self._untried
            if self._ended[arm] < ENOUGH <= self._ended[arm] + running[arm]
        }  # fmt: skip
        return next((job for job in self._queue if job.condition not in waiting), None)

    def _submit_jobs(self) -> None:
        """Give jobs one at a time to the least busy worker, so that all fill up evenly."""
        while sum(map(len, self._running.values())) < self._at_once and (job := self._next_job()):
            free = [w for w, jobs in self._running.items() if self._has_room(jobs, job)]
            if not free:
                return
            worker = min(free, key=lambda w: len(self._running[w]))
            self._queue.remove(job)
            self._running[worker][job.key] = job
            self._pool.submit(worker, job)

    def _has_room(self, jobs: dict[JobKey, Job], job: Job) -> bool:
        if self._is_suspect(job.key):
            return not jobs
        return len(jobs) < self._capacity and not any(map(self._is_suspect, jobs))

    def _is_suspect(self, key: JobKey) -> bool:
        return self._lost[key] >= ALONE_AFTER

    def _handle(self, event: WorkerEvent) -> Iterator[JobResult]:
        if event.result is None:
            yield from self._replace(event)
            return
        self._deaths = 0
        if event.key in self._running[event.worker]:
            yield self._running[event.worker].pop(event.key), event.result

    def _replace(self, event: WorkerEvent) -> Iterator[JobResult]:
        """Replace a worker that died; its episodes are run again, up to ATTEMPTS times."""
        orphans = self._running[event.worker]
        self._running[event.worker] = {}
        self._deaths += 1
        if self._deaths > ATTEMPTS * len(self._running) + ATTEMPTS:
            raise RpmsError(f"workers keep dying before they finish an episode: {event.reason}")
        self._pool.replace(event.worker)
        for job in orphans.values():
            self._lost[job.key] += 1
            if self._lost[job.key] < ATTEMPTS:
                # Suspects run last, because each needs a worker of its own.
                self._queue.append(job)
            else:
                reason = f"lost its worker {ATTEMPTS} times: {event.reason}"
                yield job, never_played(job, EnvironmentFault(reason))


class RunSession:
    """One session on a run folder, from opening to closing it."""

    def __init__(
        self, plan: RunPlan, folder: Path, budget: Budget = NO_LIMIT, elsewhere: Total = NO_COST
    ) -> None:
        """Open the folder; an error if it has results of an arm with other settings.

        ``elsewhere`` is what other folders have cost under the same budget.
        """
        self.plan = plan
        for context in plan.conditions.values():
            budget.check(context.model, context.base_url)
        self._writer = RunWriter(folder)
        try:
            finished = self._open(make_manifest(plan))
            before = spent_before(self._writer.lines(Episode), self._manifest.sessions)
            self.damaged = self._writer.damaged
        except BaseException:
            self._writer.close()
            raise
        self.jobs, settled = remaining(plan, finished)
        self.meter = Meter(budget, before.plus(elsewhere))
        tallies = {label: ConditionTally() for label in plan.conditions}
        self.types_missing = types_missing(self._manifest)
        self.progress = RunProgress(total=len(plan.jobs()), tallies=tallies)
        for episode in settled:
            self.progress.count(episode)

    def _open(self, fresh: Manifest) -> Mapping[JobKey, Episode]:
        """Write the manifest and return the finished episodes.

        An arm with results may have other code than in an earlier session: the manifest has both
        checksums, and ``code_changed`` names the arm.
        """
        old, finished = self._writer.manifest(), self._finished()
        begun = {key.condition for key, episode in finished.items() if not episode.is_error}
        unstarted = self.plan.conditions.keys() - begun
        session = Session(started=fresh.created, commit=commit())
        self._manifest = (
            merge_manifest(self._writer.folder, old, fresh, unstarted) if old else fresh
        )
        before = old.swapped if old else {}
        self.code_changed = [
            label
            for label, code in self._manifest.swapped.items()
            if label not in unstarted and code != before.get(label, code)
        ]
        self._manifest.sessions = [*(old.sessions if old else ()), session]
        self._writer.write_manifest(self._manifest)
        return finished

    def play(self, pool: Pool, capacity: int, at_once: int, watch: Watch) -> None:
        """Run the remaining jobs; the files stay consistent if this is interrupted."""
        decided = {arm for arm, tally in self.progress.tallies.items() if tally.decided}
        untried = self._manifest.swapped.keys() - decided
        dispatcher = Dispatcher(pool, capacity, self.jobs, untried, at_once)

        def check() -> None:
            watch(self.progress)
            if self.progress.done < self.progress.total:
                self.meter.stop_if_spent()

        try:
            check()
            in_flight = max(HOPELESS, min(at_once, capacity * pool.size))
            for job, (line, steps) in dispatcher.play(check):
                self._writer.append(line, steps)
                if following := self.plan.following(job, line):
                    dispatcher.add(following)
                self.progress.add(line, last=following is None)
                if pool.settings.meter is None:  # else the workers add each call themselves
                    spent = line.spent_prompt_tokens, line.spent_cached_tokens
                    self.meter.add(Tokens(*spent, line.spent_output_tokens), line.cost_usd)
                self.progress.judge(line, self.meter.session.tokens)
                if place := self.progress.line_of_all(line.condition):
                    self.progress.stopped[line.condition] = place
                    dispatcher.drop(line.condition)
                elif not line.is_error:
                    dispatcher.release(line.condition)
                watch(self.progress)
                stop_if_hopeless(self.progress, in_flight)
            if not self.progress.stopped:
                self._manifest.finished = timestamp()
        finally:
            pool.close()
            self._record_spending()

    def _record_spending(self) -> None:
        """Write the session's cost, which includes the calls of interrupted episodes."""
        tokens, usd = self.meter.session
        priced = rates_for(self.plan.context.model, self.plan.context.base_url) is not None
        spent = Spending(tokens=tokens, usd=round(usd, 6) if priced else None)
        self._manifest.sessions[-1].spent = spent
        self._writer.write_manifest(self._manifest)

    def finished(self) -> int:
        """The number of finished tasks, read from the file: an interrupt may precede the count."""
        return len(remaining(self.plan, self._finished(), keep_failed=True)[1])

    def _finished(self) -> Mapping[JobKey, Episode]:
        """The finished episodes, with their texts if another trial may follow."""
        return self._writer.finished(EpisodeLine if self.plan.trials > 1 else Episode)

    def close(self) -> None:
        self._writer.close()


def check_recording(folder: Path, env: str) -> None:
    """Raise an error if the episodes of a custom agent cannot be recorded in this folder."""
    with closing(RunWriter(folder, WAIT_S)) as writer:
        writer.try_out()
        manifest = writer.manifest()
        files = sorted(file.name for file in folder.iterdir() if file.name[0] != ".")
        if manifest is None and files:
            names = ", ".join(files[:3]) + (", ..." if files[3:] else "")
            raise RpmsError(f"{folder} holds other files ({names}); give a new or an empty folder")
        if manifest and not manifest.recorded:
            raise RpmsError(f"{folder} holds a run of 'rpms eval'; give another folder")
        if manifest and manifest.env != env:
            raise RpmsError(
                f"{folder} holds episodes of {manifest.env}, not of {env}; give another folder"
            )


def join_run(
    folder: Path,
    task: Task,
    context: RunContext,
    ended: EpisodeRecorder,
    *,
    repeat: int = 0,
    name: str = "",
    rules: str = "",
) -> Job:
    """Add an episode of a custom agent to a run folder.

    Args:
        folder: the run folder, which may be new.
        task: the task.
        context: the settings.
        ended: the recorder of the finished episode.
        repeat: the number of the repeat; 0 for the next.
        name: the name of the arm. If its settings, rules or memory differ from those of the arm of
            that name, it becomes an arm of its own, whose label lists the differences
            (``arm_label``).
        rules: the checksum of its manual, if that is not the current one.
    """
    with closing(RunWriter(folder, WAIT_S)) as writer:
        old, name = writer.manifest(), name or context.name
        indices = {planned.id: planned.index for planned in old.tasks} if old else {}
        task = {**task, "index": indices.get(task["id"], len(indices))}
        plan = RunPlan(task["env"], task["split"], [task], {name: context}, False)
        fresh = make_manifest(plan, recorded=True)
        fresh.hashes.rules_of = {name: rules or fresh.hashes.rules_of.get(name, fresh.hashes.rules)}
        label = arm_label(name, old, fresh) if old else name
        finished = writer.finished(Episode)
        free = (n for n in count(1) if JobKey(label, task["id"], n) not in finished)
        ended.job = job = Job(label, task, repeat or next(free))
        if job.repeat > MOST_TIMES:
            raise RpmsError(
                f"{folder} holds {MOST_TIMES} episodes of the task '{task['id']}'; give another "
                "folder, or give the tasks names"
            )
        fresh.settings["repeats"] = job.repeat
        fresh = relabelled(fresh, name, label)
        manifest = merge_manifest(folder, old, fresh) if old else fresh
        writer.write_manifest(manifest.model_copy(update={"finished": fresh.created}))
        writer.append(*ended.result())
    return job


def stop_if_hopeless(progress: RunProgress, in_flight: int) -> None:
    """Stop a run in which every call fails, for example because of a wrong key.

    This takes as many episodes in a row with the same model error as are in flight at once, and no
    call that worked in between.
    """
    errors = progress.hopeless
    if len(errors) < min(in_flight, progress.total) or progress.done >= progress.total:
        return
    if len(set(map(kind_of, errors))) == 1:
        raise RpmsError(
            f"stopped: no call works: {quantity(len(errors), 'episode')} in a row ended with the "
            f"same model error: {errors[0]}; solve the problem and run the same command again"
        )


def kind_of(error: str) -> str:
    """An error without the parts that differ between calls: token counts, names of requests."""
    head, dash, rest = error.partition(" - ")
    return head + dash + " ".join("#" if _DIGIT.search(word) else word for word in rest.split())


def capacity_of(env: str, workers: int, concurrency: int) -> int:
    """The number of episodes that each worker may have in flight."""
    if workers < 0 or concurrency < 1:
        raise RpmsError("--workers must be at least 0, and --concurrency at least 1")
    share = ceil(concurrency / max(workers, 1))
    return min(share, get_environment(env).max_live or share)


def local_pool(plan: RunPlan, workers: int, meter: Meter | None = None) -> Pool:
    """Worker processes on this machine; with 0 workers episodes run in this process."""
    settings = WorkerSettings.of(plan, meter)
    return ProcessPool(settings, workers) if workers else InlinePool(settings)
