"""The same run on a real Ray on this machine, with two workers, one of them killed."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.conditions import letters
from rpms.evals.plan import RunPlan, make_plan
from rpms.evals.progress import RunProgress
from rpms.evals.ray_backend import LOCAL, RayPool
from rpms.evals.records import Episode, JobKey
from rpms.evals.run_folder import EPISODES, step_log_file
from rpms.evals.runner import Run, Watch, local_pool
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError

ray: Any = pytest.importorskip("ray")
pytestmark = pytest.mark.engine


def plan() -> RunPlan:
    contexts = letters(["A", "B"], RunContext())
    return make_plan("alfworld", "generated_unseen", contexts, 6)


@pytest.fixture
def pool() -> Iterator[RayPool]:
    made = RayPool(plan(), 2, LOCAL)
    yield made
    made.close()


def lines(folder: Path) -> list[dict[str, Any]]:
    file = folder / EPISODES
    return [json.loads(text) for text in file.read_text().splitlines()] if file.exists() else []


def actions(folder: Path) -> dict[JobKey, list[str]]:
    return {
        Episode(**line).key: [turn["action"] for turn in line["history"]] for line in lines(folder)
    }


def play(folder: Path, pool: Any, watch: Watch = lambda progress: None) -> None:
    run = Run(plan(), folder)
    try:
        run.play(pool, 2, watch)
    finally:
        run.close()


def test_a_worker_killed_in_the_middle_loses_nothing_and_nothing_runs_twice(
    tmp_path: Path, pool: RayPool
) -> None:
    killed: list[int] = []

    def kill(progress: RunProgress) -> None:
        """As soon as an episode is on disk, while the run waits for this to return."""
        if progress.done and not killed:
            killed.append(ray.get(pool._actors[0].pid.remote()))
            os.kill(killed[0], signal.SIGKILL)
            assert 0 < len(lines(tmp_path / "run")) < 12, "it was not in the middle"

    play(tmp_path / "run", pool, kill)
    assert killed
    found = Counter(Episode(**line).key for line in lines(tmp_path / "run"))
    assert found == Counter(job.key for job in plan().jobs())
    assert {line["failure_mode"] for line in lines(tmp_path / "run")} <= {None, "timeout"}
    assert all(step_log_file(tmp_path / "run", *key).is_file() for key in found)
    what = plan()
    run = Run(what, tmp_path / "local")
    run.play(local_pool(what, 0), 4, lambda progress: None)
    run.close()
    assert actions(tmp_path / "run") == actions(tmp_path / "local")


def test_a_run_begun_here_goes_on_on_a_cluster(tmp_path: Path, pool: RayPool) -> None:
    what = plan()
    run = Run(what, tmp_path / "run")
    run.jobs = run.jobs[:7]
    run.play(local_pool(what, 0), 4, lambda progress: None)
    run.close()
    before = (tmp_path / "run" / EPISODES).read_bytes()
    assert before.count(b"\n") == 7
    play(tmp_path / "run", pool)
    assert (tmp_path / "run" / EPISODES).read_bytes().startswith(before)
    assert Counter(map(tuple, actions(tmp_path / "run"))) == Counter(job.key for job in what.jobs())
    assert len(lines(tmp_path / "run")) == 12


def test_no_cluster_there_is_one_clear_error() -> None:
    with pytest.raises(RpmsError, match=r"no Ray cluster answers at '127\.0\.0\.1:9'"):
        RayPool(plan(), 1, "127.0.0.1:9")
