"""Running a whole plan: hands out jobs, writes what comes back, survives what dies."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any

from rpms.envs import Task, get_environment
from rpms.evals.records.protocol_card import types_missing
from rpms.evals.records.run_folder import RunWriter
from rpms.evals.records.schema import Episode, EpisodeLine, JobKey, Manifest, Session, Spending
from rpms.evals.running.costs import NO_LIMIT, Budget, Meter, Tokens, spent_before
from rpms.evals.running.episode import EpisodeRecorder, EpisodeResult, never_played
from rpms.evals.running.manifest import (
    arm_label,
    commit,
    make_manifest,
    merge_manifest,
    now,
    relabelled,
)
from rpms.evals.running.plan import Job, RunPlan, remaining
from rpms.evals.running.progress import RunProgress, Tally, Watch
from rpms.evals.running.workers import InlinePool, Pool, ProcessPool, WorkerEvent, WorkerSettings
from rpms.models.prices import rates_for
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from rpms.vocabulary.limits import MOST_TIMES
from rpms.vocabulary.output import quantity

ATTEMPTS = 3
"""How often an episode may lose its worker before it counts as an infrastructure error."""
ALONE_AFTER = 2
"""From this many lost workers on an episode gets a worker to itself: it may be the culprit."""
HOPELESS = 3
"""At least this many episodes in a row with one and the same model error stop the run."""
POLL_S = 0.25
WAIT_S = 10.0
"""So long an agent waits for another one that writes the same folder."""
_DIGIT = re.compile(r"\d")

Played = tuple[Job, EpisodeResult]


class Dispatcher:
    """Gives every job to a worker until each has a result."""

    def __init__(self, pool: Pool, capacity: int, jobs: Iterable[Job]) -> None:
        """``capacity`` is how many episodes one worker plays at a time."""
        self._pool = pool
        self._capacity = capacity
        self._queue = deque(jobs)
        self._held: dict[int, dict[JobKey, Job]] = {}
        self._lost: Counter[JobKey] = Counter()
        self._useless = 0

    def play(self, watch: Callable[[], None] = lambda: None) -> Iterator[Played]:
        """Results as they come; ``watch`` is called a few times a second."""
        if not self._queue:
            return
        self._held = {worker: {} for worker in self._pool.start()}
        while self._queue or any(self._held.values()):
            self._hand_out()
            for event in self._pool.poll(POLL_S):
                yield from self._handle(event)
            watch()

    def add(self, job: Job) -> None:
        """One more job, which follows from a result."""
        self._queue.append(job)

    def _hand_out(self) -> None:
        """One job at a time to the least busy worker, so that all of them fill up evenly."""
        while self._queue:
            job = self._queue[0]
            free = [w for w, held in self._held.items() if self._has_room(held, job)]
            if not free:
                return
            worker = min(free, key=lambda w: len(self._held[w]))
            self._held[worker][job.key] = self._queue.popleft()
            self._pool.submit(worker, job)

    def _has_room(self, held: dict[JobKey, Job], job: Job) -> bool:
        if self._is_suspect(job.key):
            return not held
        return len(held) < self._capacity and not any(map(self._is_suspect, held))

    def _is_suspect(self, key: JobKey) -> bool:
        return self._lost[key] >= ALONE_AFTER

    def _handle(self, event: WorkerEvent) -> Iterator[Played]:
        if event.result is None:
            yield from self._bury(event)
            return
        self._useless = 0
        if event.key in self._held[event.worker]:
            yield self._held[event.worker].pop(event.key), event.result

    def _bury(self, event: WorkerEvent) -> Iterator[Played]:
        """A worker died: its episodes are played again by others, but not for ever."""
        orphans = self._held[event.worker]
        self._held[event.worker] = {}
        self._useless += 1
        if self._useless > ATTEMPTS * len(self._held) + ATTEMPTS:
            raise RpmsError(f"workers keep dying before they finish anything: {event.reason}")
        self._pool.replace(event.worker)
        for job in orphans.values():
            self._lost[job.key] += 1
            if self._lost[job.key] < ATTEMPTS:
                # Suspects wait until the others are through: they need a worker for themselves.
                self._queue.append(job)
            else:
                reason = f"lost its worker {ATTEMPTS} times: {event.reason}"
                yield job, never_played(job, EnvironmentFault(reason))


class RunSession:
    """One session on a run folder: opened, played as far as it gets, closed."""

    def __init__(
        self, plan: RunPlan, folder: Path, *, keep_failed: bool = False, budget: Budget = NO_LIMIT,
        **informative: Any,
    ) -> None:  # fmt: skip
        """Take the folder; arms that were played there with other settings are refused."""
        self.plan = plan
        for context in plan.conditions.values():
            budget.check(context.model, context.base_url)
        self._writer = RunWriter(folder)
        try:
            finished = self._open(make_manifest(plan, **informative))
            before = spent_before(self._writer.lines(Episode), self._manifest.sessions)
            self.damaged = self._writer.damaged
        except BaseException:
            self._writer.close()
            raise
        self.jobs, settled = remaining(plan, finished, keep_failed)
        self.meter = Meter(budget, before)
        standings = {label: Tally() for label in plan.conditions}
        self.types_missing = types_missing(self._manifest)
        self.progress = RunProgress(total=len(plan.jobs()), standings=standings)
        for episode in settled:
            self.progress.count(episode)

    def _open(self, fresh: Manifest) -> Mapping[JobKey, Episode]:
        """Write the manifest; what is finished. An arm without results may have other code now."""
        old, finished = self._writer.manifest(), self._finished()
        played = {key.condition for key, episode in finished.items() if not episode.is_error}
        anew = self.plan.conditions.keys() - played
        session = Session(started=fresh.created, commit=commit())
        self._manifest = merge_manifest(self._writer.folder, old, fresh, anew) if old else fresh
        self._manifest.sessions = [*(old.sessions if old else ()), session]
        self._writer.write_manifest(self._manifest)
        return finished

    def play(self, pool: Pool, capacity: int, watch: Watch) -> None:
        """Play what is left; the files are whole whenever this is interrupted."""
        dispatcher = Dispatcher(pool, capacity, self.jobs)

        def look() -> None:
            watch(self.progress)
            if self.progress.done < self.progress.total:
                self.meter.stop_if_spent()

        try:
            look()
            at_once = max(HOPELESS, capacity * pool.size)
            for job, (line, steps) in dispatcher.play(look):
                self._writer.append(line, steps)
                if following := self.plan.following(job, line):
                    dispatcher.add(following)
                self.progress.add(line, last=following is None)
                if pool.settings.meter is None:  # else the workers add each call themselves
                    spent = line.spent_prompt_tokens, line.spent_cached_tokens
                    self.meter.add(Tokens(*spent, line.spent_output_tokens), line.cost_usd)
                self.progress.judge(line, self.meter.session.tokens)
                watch(self.progress)
                stop_if_hopeless(self.progress, at_once)
            self._manifest.finished = now()
        finally:
            pool.close()
            self._note_spending()

    def _note_spending(self) -> None:
        """Episodes know their own calls; the session also those of episodes it cut short."""
        tokens, usd = self.meter.session
        priced = rates_for(self.plan.context.model, self.plan.context.base_url) is not None
        spent = Spending(tokens=tokens, usd=round(usd, 6) if priced else None)
        self._manifest.sessions[-1].spent = spent
        self._writer.write_manifest(self._manifest)

    def finished(self) -> int:
        """How many are done; an interrupt may come before they are counted."""
        return len(remaining(self.plan, self._finished(), keep_failed=True)[1])

    def _finished(self) -> Mapping[JobKey, Episode]:
        """Whole lines only where another trial may follow."""
        return self._writer.finished(EpisodeLine if self.plan.trials > 1 else Episode)

    def close(self) -> None:
        """Let the folder go."""
        self._writer.close()


def check_recording(folder: Path, env: str) -> None:
    """Refuse a folder into which no episodes of somebody's own agent can be written."""
    with closing(RunWriter(folder, WAIT_S)) as writer:
        writer.try_out()
        manifest = writer.manifest()
        others = sorted(file.name for file in folder.iterdir() if file.name[0] != ".")
        if manifest is None and others:
            named = ", ".join(others[:3]) + (", ..." if others[3:] else "")
            raise RpmsError(f"{folder} holds other files ({named}); give a new or an empty folder")
        if manifest and not manifest.recorded:
            raise RpmsError(f"{folder} holds a run of 'rpms eval'; give another folder")
        if manifest and manifest.env != env:
            held = f"{folder} holds episodes of {manifest.env}, not of {env}"
            raise RpmsError(f"{held}; give another folder")


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
    """Write an episode that nobody planned, as that ``repeat`` of its task or as one more.

    Args:
        folder: the run, which may be new.
        task: what was played.
        context: the settings it was played with.
        ended: the episode.
        repeat: which repeat of the task it is; 0 for the next.
        name: what the arm is called. Other settings, rules or memories than those of the arm of
            that name make an arm of its own, and its label says what differs (``arm_label``).
        rules: the checksum of its manual, if that is not the one at hand.
    """
    with closing(RunWriter(folder, WAIT_S)) as writer:
        old, name = writer.manifest(), name or context.name
        known = {planned.id: planned.index for planned in old.tasks} if old else {}
        task = {**task, "index": known.get(task["id"], len(known))}
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
                "folder, or name the tasks"
            )
        fresh.settings["repeats"] = job.repeat
        fresh = relabelled(fresh, name, label)
        manifest = merge_manifest(folder, old, fresh) if old else fresh
        writer.write_manifest(manifest.model_copy(update={"finished": fresh.created}))
        writer.append(*ended.result())
    return job


def stop_if_hopeless(progress: RunProgress, at_once: int) -> None:
    """A wrong key fails every call alike: say so before all episodes have.

    A few bad calls are no reason: nothing may have worked since before as many episodes ended as
    are in flight at once, all of them for one and the same reason.
    """
    errors = progress.hopeless
    if len(errors) < min(at_once, progress.total) or progress.done >= progress.total:
        return
    if len(set(map(kind_of, errors))) == 1:
        raise RpmsError(
            f"stopped: nothing works: {quantity(len(errors), 'episode')} in a row ended with the "
            f"same model error: {errors[0]}; when that is mended, run the same command again"
        )


def kind_of(error: str) -> str:
    """An error without what differs from call to call: token counts, names of requests."""
    head, dash, rest = error.partition(" - ")
    return head + dash + " ".join("#" if _DIGIT.search(word) else word for word in rest.split())


def capacity_of(env: str, workers: int, concurrency: int) -> int:
    """How many episodes each worker may have in flight."""
    if workers < 0 or concurrency < 1:
        raise RpmsError("--workers must not be negative, and --concurrency at least 1")
    share = ceil(concurrency / max(workers, 1))
    return min(share, get_environment(env).max_live or share)


def local_pool(plan: RunPlan, workers: int, meter: Meter | None = None) -> Pool:
    """Worker processes on this machine, or with 0 workers this process itself."""
    settings = WorkerSettings.of(plan, meter)
    return ProcessPool(settings, workers) if workers else InlinePool(settings)
