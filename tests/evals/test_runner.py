from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from rpms.evals import runner
from rpms.evals.conditions import letters
from rpms.evals.episode import EpisodeResult
from rpms.evals.plan import Job, RunPlan, make_plan
from rpms.evals.progress import RunProgress
from rpms.evals.records import Episode, EpisodeLine, JobKey
from rpms.evals.run_folder import EPISODES, step_log_file
from rpms.evals.runner import Dispatcher, Run, Watch, capacity_of, local_pool, stop_if_hopeless
from rpms.evals.workers import Event, InlinePool, Pool, ProcessPool, WorkerSettings
from rpms.graph import run_episode
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals import sample_runs


def plan(conditions: str = "AB", limit: int = 4, **settings: Any) -> RunPlan:
    contexts = letters(list(conditions), RunContext(**settings))
    return make_plan("alfworld", "generated_unseen", contexts, limit)


def play(
    folder: Path,
    what: RunPlan,
    pool: Pool,
    capacity: int = 4,
    watch: Watch = lambda progress: None,
) -> RunProgress:
    run = Run(what, folder)
    try:
        run.play(pool, capacity, watch)
    finally:
        run.close()
    return run.progress


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / EPISODES).read_text().splitlines()]


class Scripted(Pool):
    """A pool without processes: each worker dies or answers as its script says."""

    def __init__(self, workers: int, deadly: str = "", killed: int = 0) -> None:
        super().__init__(WorkerSettings.of(plan()), workers)
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

    def poll(self, timeout: float) -> list[Event]:
        worker = max(self.held, key=lambda n: len(self.held[n]))
        jobs = self.held[worker]
        if self.kills or any(job.task["id"] == self.deadly for job in jobs):
            self.kills = max(0, self.kills - 1)
            self.together.append({job.task["id"] for job in jobs})
            self.held[worker] = []
            return [Event(worker, reason="exit code -9")]
        job = jobs.pop(0)
        return [
            Event(
                worker,
                job.key,
                EpisodeResult(EpisodeLine.model_construct(task=job.task["id"]), b""),
            )
        ]

    def replace(self, worker: int) -> None:
        self.held[worker] = []

    def close(self) -> None:
        self.closed = True


def dispatch(pool: Scripted, count: int, capacity: int = 4) -> list[dict[str, Any]]:
    dispatcher = Dispatcher(pool, capacity, plan("A", count).jobs())
    return [result.line.data() for _, result in dispatcher.play()]


def test_every_job_is_played_once_and_no_worker_gets_too_many() -> None:
    pool = Scripted(2)
    found = dispatch(pool, 20, capacity=3)
    assert len({line["task"] for line in found}) == len(found) == 20
    assert pool.most == 3


def test_the_episodes_of_a_dead_worker_are_played_again() -> None:
    found = dispatch(Scripted(2, killed=1), 12)
    assert len({line["task"] for line in found}) == len(found) == 12
    assert not any("failure_mode" in line for line in found)


def test_an_episode_that_kills_its_workers_is_given_up_and_the_others_are_not() -> None:
    culprit = plan("A", 12).tasks[1]["id"]
    pool = Scripted(2, deadly=culprit)
    found = dispatch(pool, 12)
    assert len({line["task"] for line in found}) == len(found) == 12
    failed = [line for line in found if line.get("failure_mode")]
    assert [line["task"] for line in failed] == [culprit]
    assert failed[0]["failure_mode"] == "infrastructure_error"
    assert "lost its worker 3 times: exit code -9" in failed[0]["error"]
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


def test_the_same_model_error_and_nothing_that_works_stops_the_run() -> None:
    stop_if_hopeless(ended(["401"] * 2, [0, 0]), 3)
    with pytest.raises(RpmsError, match=r"nothing works: 3 .* error: 401; .* command again$"):
        stop_if_hopeless(ended(["401"] * 3, [0, 0, 0]), 3)


def test_a_short_run_stops_too_unless_it_is_over() -> None:
    with pytest.raises(RpmsError, match="nothing works"):
        stop_if_hopeless(ended(["401"] * 4, [0] * 4, total=5), 4)
    stop_if_hopeless(ended(["401"] * 2, [0, 0], total=2), 32)


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [
        (("401", "401", "500"), (0, 0, 0)),
        (("401", "401", ""), (0, 0, 0)),
        # Others in flight were answered meanwhile: these are a few bad calls.
        (("400", "400", "400", "400"), (0, 10, 20, 30)),
    ],
)
def test_a_few_bad_calls_go_on(texts: tuple[str, ...], tokens: tuple[int, ...]) -> None:
    progress = ended(texts, tokens)
    stop_if_hopeless(progress, 3)
    assert progress.done == len(texts)


def test_nothing_is_hopeless_before_all_that_is_in_flight_has_ended() -> None:
    stop_if_hopeless(ended(["401"] * 31, [0] * 31), 32)
    with pytest.raises(RpmsError, match="nothing works: 32"):
        stop_if_hopeless(ended(["401"] * 32, [0] * 32), 32)


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


@pytest.fixture(scope="module")
def one_by_one() -> dict[JobKey, list[Any]]:
    """What a plain sequential loop gives."""
    what = plan()
    return {
        job.key: run_episode(job.task["index"], context=what.conditions[job.condition])["history"]
        for job in what.jobs()
    }  # type: ignore[return-value]


@pytest.mark.engine
@pytest.mark.parametrize("workers", [0, 2])
def test_parallel_runs_give_what_a_plain_loop_gives(
    workers: int, tmp_path: Path, one_by_one: dict[JobKey, list[Any]]
) -> None:
    what = plan()
    pool = local_pool(what, workers)
    assert isinstance(pool, ProcessPool if workers else InlinePool)
    progress = play(tmp_path / "run", what, pool)
    found = lines(tmp_path / "run")
    assert {Episode(**line).key: line["history"] for line in found} == one_by_one
    assert len(found) == progress.done == 8
    assert all(
        step_log_file(tmp_path / "run", line["condition"], line["task"]).is_file() for line in found
    )
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["finished"] >= manifest["created"]


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    made = ProcessPool(WorkerSettings.of(plan()), 2)
    yield made
    made.close()


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
            assert 0 < len(lines(tmp_path / "run")) < 8, "it was not in the middle"

    play(tmp_path / "run", plan(), pool, capacity=2, watch=kill)
    assert killed
    found = lines(tmp_path / "run")
    assert Counter(Episode(**line).key for line in found) == Counter(list(one_by_one))
    assert {Episode(**line).key: line["history"] for line in found} == one_by_one


@pytest.mark.engine
def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    what = plan("B", 2)
    play(tmp_path / "run", what, local_pool(what, 0))
    before = (tmp_path / "run" / EPISODES).read_bytes()
    never = Scripted(1)
    progress = play(tmp_path / "run", what, never)
    assert progress.done == progress.total == 2 and progress.standings["B"].played == 2
    assert never.held == {} and never.closed
    assert (tmp_path / "run" / EPISODES).read_bytes() == before
