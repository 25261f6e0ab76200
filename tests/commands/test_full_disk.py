"""A disk without room: one line, nothing that was finished is lost, and the run goes on later."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rpms.evals.records.run_folder import read_run
from tests.command_line import Done, Rpms
from tests.evals.sample_runs import write_run

TASKS = 3
PLAY = ("eval", "--conditions", "A,B", "--limit", str(TASKS), "--max-steps", "8", "--workers",
        "0")  # fmt: skip


@contextmanager
def largest(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def refusal(done: Done) -> str:
    """What it said in the end, after the lines that told how far it was."""
    assert done.code == 2 and "Traceback" not in done.err, done.err
    (line,) = [line for line in done.err.splitlines() if line.startswith("rpms: ")]
    return line


@pytest.mark.engine
def test_a_run_stops_and_goes_on_when_there_is_room(tmp_path: Path, rpms: Rpms) -> None:
    assert rpms("tasks", "--limit", str(TASKS)).code == 0  # on disk while there is room for them
    folder = tmp_path / "run"
    with largest(12_000):
        line = refusal(rpms(*PLAY, "--out", folder))
    assert f"stopped: cannot write to {folder}: File too large. Finished episodes are kept" in line
    stopped = read_run(folder)
    assert 0 < len(stopped.episodes) < 2 * TASKS and not stopped.damaged
    before = (folder / "episodes.jsonl").read_bytes()
    again = rpms(*PLAY, "--out", folder)
    assert again.code == 0, again.err
    assert f"{len(stopped.episodes)} of {2 * TASKS} episodes are finished already" in again.err
    whole = before[: before.rfind(b"\n") + 1]
    assert (folder / "episodes.jsonl").read_bytes().startswith(whole)
    assert read_run(folder).complete


def test_reports_and_exports_say_so_and_leave_the_old_files(tmp_path: Path, rpms: Rpms) -> None:
    folder = write_run(tmp_path / "run", {"A": [True] * 4, "B": [True] * 4},
                       split="generated_seen")  # fmt: skip
    (folder / "report.html").write_text("old")
    out = tmp_path / "out.jsonl"
    with largest(30_000):
        assert "cannot write" in refusal(rpms("report", folder))
    assert (folder / "report.html").read_text() == "old"
    with largest(9_000):
        done = rpms("export", folder, "--out", out)
    assert "cannot write" in refusal(done)
    assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_an_output_without_room_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rpms", "worlds", "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=600, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        2,
        "rpms: cannot write the output: No space left on device\n",
    )
