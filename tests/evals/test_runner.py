"""Handing out jobs, surviving what dies, stopping if no call works."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.records.run_folder import EPISODES, step_log_file
from rpms.evals.records.schema import Episode, EpisodeLine, JobKey
from rpms.evals.running import runner
from rpms.evals.running.episode import EpisodeResult
from rpms.evals.running.plan import Job
from rpms.evals.running.progress import RunProgress
from rpms.evals.running.runner import Dispatcher, capacity_of, stop_if_hopeless
from rpms.evals.running.workers import Pool, ProcessPool, WorkerEvent, WorkerSettings
from rpms.graph import run_episode
from rpms.vocabulary.errors import RpmsError
from tests.evals import sample_runs
from tests.evals.sample_runs import lines_of, play_short, short_plan


class Scripted(Pool):
    """A pool without processes: each worker dies or answers as its script says."""

    def __init__(self, workers: int, deadly: str = "", killed: int = 0) -> None:
        super().__init__(WorkerSettings.of(short_plan()), workers)
        self.deadly, self.kills = deadly, killed
        self.held: dict[int, list[Job]] = {}
        self.most = 0
        self.together: list[set[str]] = []
        self.closed = False

    def start(self) -> Sequence[int]:
        self.held = {n: [] for n in range(self.size)}
        return range(self.size)

    def submit(self, worker: int, job: Job) -> None:
        self.held[worker].append(job)
        self.most = max(self.most, len(self.held[worker]))

    def poll(self, timeout: float) -> list[WorkerEvent]:
        worker = max(self.held, key=lambda n: len(self.held[n]))
        jobs = self.held[worker]
        if self.kills or any(job.task["id"] == self.deadly for job in jobs):
            self.kills = max(0, self.kills - 1)
            self.together.append({job.task["id"] for job in jobs})
            self.held[worker] = []
            return [WorkerEvent(worker, reason="exit code -9")]
        job = jobs.pop(0)
        line = EpisodeLine.model_construct(task=job.task["id"])
        return [WorkerEvent(worker, job.key, EpisodeResult(line, b""))]

    def replace(self, worker: int) -> None:
        self.held[worker] = []

    def close(self) -> None:
        self.closed = True


def dispatch(pool: Scripted, count: int, capacity: int = 4) -> list[dict[str, Any]]:
    dispatcher = Dispatcher(pool, capacity, short_plan("A", count).jobs())
    return [result.line.data() for _, result in dispatcher.play()]


@pytest.mark.parametrize("killed", [0, 1])
def test_every_job_is_played_once_and_no_worker_gets_too_many(killed: int) -> None:
    """Those of a dead worker are played again by others."""
    pool = Scripted(2, killed=killed)
    lines = dispatch(pool, 20, capacity=3)
    assert len({line["task"] for line in lines}) == len(lines) == 20
    assert pool.most == 3 and not any("failure_mode" in line for line in lines)


@pytest.mark.parametrize(("workers", "at_once"), [(2, 1), (2, 3), (4, 6)])
def test_no_more_episodes_run_at_once_than_asked_for(workers: int, at_once: int) -> None:
    pool = Scripted(workers, killed=1)
    jobs = short_plan("A", 20).jobs()
    capacity = capacity_of("alfworld", workers, at_once)
    most, ended = 0, 0
    for _ in Dispatcher(pool, capacity, jobs, at_once=at_once).play():
        most = max(most, sum(map(len, pool.held.values())) + 1)  # and the one that just ended
        ended += 1
    assert (most, ended) == (at_once, 20)


def test_an_untried_arm_starts_with_three_episodes_and_the_others_do_not_wait() -> None:
    plan = short_plan("AB", 20)
    dispatcher = Dispatcher(pool := Scripted(2, killed=1), 15, plan.jobs(), untried=["B"])
    results, most = dispatcher.play(), list[int]()
    for number, (job, _) in enumerate(results):
        arms = [held.condition for jobs in pool.held.values() for held in jobs]
        most.append(arms.count("B") + (job.condition == "B"))
        if number == 0:
            assert len(arms) > 15  # the other arm fills the workers
        if job.condition == "B":
            break
    assert max(most) == 3
    dispatcher.release("B")
    assert len(most) + len([*results]) == 40 and pool.most == 15


def test_an_episode_that_kills_its_workers_is_given_up_and_the_others_are_not() -> None:
    culprit = short_plan("A", 12).tasks[1]["id"]
    pool = Scripted(2, deadly=culprit)
    lines = dispatch(pool, 12)
    assert len({line["task"] for line in lines}) == len(lines) == 12
    (failed,) = [line for line in lines if line.get("failure_mode")]
    assert (failed["task"], failed["failure_mode"]) == (culprit, "infrastructure_error")
    assert "lost its worker 3 times: exit code -9" in failed["error"]
    assert len(pool.together) == 3
    assert pool.together[-1] == {culprit}  # by then it had a worker to itself


def test_workers_that_never_get_anywhere_stop_the_run() -> None:
    with pytest.raises(RpmsError, match=r"workers keep dying .*: exit code -9"):
        dispatch(Scripted(1, killed=1000), 60, capacity=1)


def ended(texts: Sequence[str], tokens: Sequence[int], total: int = 40) -> RunProgress:
    progress = RunProgress(total=total)
    for text, so_far in zip(texts, tokens, strict=True):
        episode = sample_runs.line(
            "A", 0, False, error=text, failure_mode="model_error" if text else None
        )
        progress.add(episode)
        progress.judge(episode, so_far)
    return progress


@pytest.mark.parametrize(("texts", "tokens", "total", "at_once", "stops"), [
    (["401"] * 2, [0] * 2, 40, 3, 0), (["401"] * 3, [0] * 3, 40, 3, 3),
    # A short run stops too, unless it is over.
    (["401"] * 4, [0] * 4, 5, 4, 4), (["401"] * 2, [0] * 2, 2, 32, 0),
    # A few bad calls go on, also where others in flight were answered meanwhile.
    (["401", "401", "500"], [0] * 3, 40, 3, 0), (["401", "401", ""], [0] * 3, 40, 3, 0),
    (["400"] * 4, [0, 10, 20, 30], 40, 3, 0),
    # Nothing is hopeless before all that is in flight has ended.
    (["401"] * 31, [0] * 31, 40, 32, 0), (["401"] * 32, [0] * 32, 40, 32, 32),
])  # fmt: skip
def test_the_same_model_error_and_nothing_that_works_stops_the_run(
    texts: list[str], tokens: list[int], total: int, at_once: int, stops: int
) -> None:
    progress = ended(texts, tokens, total)
    assert progress.done == len(texts)
    if not stops:
        stop_if_hopeless(progress, at_once)
        return
    with pytest.raises(RpmsError, match=rf"no call works: {stops} .* error: 401; .* again$"):
        stop_if_hopeless(progress, at_once)


def test_capacity_is_shared_and_bounded_by_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    assert capacity_of("alfworld", 2, 60) == 30
    assert capacity_of("alfworld", 4, 6) == 2
    assert capacity_of("alfworld", 0, 5) == 5
    assert capacity_of("alfworld", 1, 1000) == 1000
    monkeypatch.setattr(runner.get_environment("scienceworld"), "max_live", 1)
    assert capacity_of("scienceworld", 2, 60) == 1
    with pytest.raises(RpmsError, match="--workers"):
        capacity_of("alfworld", -1, 4)
    with pytest.raises(RpmsError, match="--concurrency"):
        capacity_of("alfworld", 1, 0)


HOMES: dict[str, Any] = {"conditions": "AB", "limit": 3, "max_steps": 8}


@pytest.fixture(scope="module")
def one_by_one() -> dict[JobKey, list[Any]]:
    """What a plain sequential loop gives."""
    plan = short_plan(**HOMES)
    return {
        job.key: run_episode(job.task["index"], context=plan.conditions[job.condition])["history"]
        for job in plan.jobs()
    }  # type: ignore[return-value]


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    pool = ProcessPool(WorkerSettings.of(short_plan(**HOMES)), 2)
    yield pool
    pool.close()


@pytest.mark.engine
def test_a_run_gives_what_a_plain_loop_gives_and_then_has_nothing_left_to_do(
    tmp_path: Path, one_by_one: dict[JobKey, list[Any]]
) -> None:
    plan = short_plan(**HOMES)
    progress = play_short(plan, tmp_path).progress
    lines = lines_of(tmp_path)
    assert {Episode(**line).key: line["history"] for line in lines} == one_by_one
    assert len(lines) == progress.done == progress.total == 6
    assert all(step_log_file(tmp_path, *Episode(**line).key).is_file() for line in lines)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["finished"] >= manifest["created"]
    before, never = (tmp_path / EPISODES).read_bytes(), Scripted(1)
    progress = play_short(plan, tmp_path, never).progress
    assert progress.done == progress.total and progress.tallies["B"].decided == 3
    assert never.held == {} and never.closed
    assert (tmp_path / EPISODES).read_bytes() == before


@pytest.mark.engine
def test_a_worker_killed_in_the_middle_loses_nothing(
    tmp_path: Path, pool: ProcessPool, one_by_one: dict[JobKey, list[Any]]
) -> None:
    killed: list[int] = []

    def kill(progress: RunProgress) -> None:
        """As soon as an episode is on disk, while the run waits for this to return."""
        if progress.done and not killed:
            killed.append(active_children()[0].pid or 0)
            os.kill(killed[0], signal.SIGKILL)
            assert 0 < len(lines_of(tmp_path)) < 6, "it was not in the middle"

    play_short(short_plan(**HOMES), tmp_path, pool, capacity=2, watch=kill)
    lines = lines_of(tmp_path)
    assert killed and len(lines) == 6
    assert {Episode(**line).key: line["history"] for line in lines} == one_by_one
