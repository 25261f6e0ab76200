"""The same run on a real Ray on this machine, with two workers, one of them killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.records.run_folder import EPISODES, step_log_file
from rpms.evals.records.schema import Episode, JobKey
from rpms.evals.running.plan import RunPlan
from rpms.evals.running.progress import RunProgress
from rpms.evals.running.runner import RunSession, local_pool
from rpms.evals.running.workers import LOCAL, RayPool
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import lines_of, play_short, short_plan

ray: Any = pytest.importorskip("ray")
pytestmark = pytest.mark.engine


def plan() -> RunPlan:
    return short_plan("AB", 4, max_steps=8)


@pytest.fixture
def pool() -> Iterator[RayPool]:
    pool = RayPool(plan(), 2, LOCAL)
    yield pool
    pool.close()


def actions(folder: Path) -> dict[JobKey, list[str]]:
    lines = lines_of(folder)
    played = {Episode(**line).key: [turn["action"] for turn in line["history"]] for line in lines}
    assert len(played) == len(lines), "something ran twice"
    return played


def test_a_run_begun_here_goes_on_on_a_cluster_and_a_killed_worker_loses_nothing(
    tmp_path: Path, pool: RayPool
) -> None:
    folder, killed = tmp_path / "run", list[int]()
    begun = RunSession(plan(), folder)
    begun.jobs = begun.jobs[:2]
    begun.play(local_pool(begun.plan, 0), 4, 4, lambda progress: None)
    begun.close()
    before = (folder / EPISODES).read_bytes()
    assert before.count(b"\n") == 2

    def kill(progress: RunProgress) -> None:
        """As soon as an episode is on disk, while the run waits for this to return."""
        if progress.done > 2 and not killed:
            killed.append(ray.get(pool._actors[0].pid.remote()))
            os.kill(killed[0], signal.SIGKILL)
            assert 2 < len(lines_of(folder)) < 8, "it was not in the middle"

    play_short(plan(), folder, pool, 2, kill)
    assert killed and (folder / EPISODES).read_bytes().startswith(before)
    assert {line["failure_mode"] for line in lines_of(folder)} <= {None, "timeout"}
    assert all(step_log_file(folder, *key).is_file() for key in actions(folder))
    play_short(plan(), tmp_path / "local")
    assert actions(folder) == actions(tmp_path / "local")


def test_no_cluster_there_is_one_clear_error() -> None:
    with pytest.raises(RpmsError, match=r"no Ray cluster answers at '127\.0\.0\.1:9'"):
        RayPool(plan(), 1, "127.0.0.1:9")
