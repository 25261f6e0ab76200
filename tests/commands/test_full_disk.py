"""A disk without room: one line, nothing that was finished is lost, and the run goes on later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.evals.run_folder import read_run
from tests.evals.sample_runs import write_run

TASKS = 4
PLAY = ["eval", "--conditions", "A,B", "--limit", str(TASKS), "--max-steps", "8", "--workers", "0",
        "--no-cache"]  # fmt: skip
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from rpms.commands.main import main
main()
"""


def rpms(*words: str | Path, most: int = -1) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, no file of which may grow beyond ``most`` bytes."""
    command = [sys.executable, "-c", LIMITED, str(most), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module", autouse=True)
def games() -> None:
    """On disk before there is no room for them."""
    assert rpms("tasks", "--limit", str(TASKS)).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real one, of the size of a few episodes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "none", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """What it said in the end, after the lines that told how far it was."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("rpms: ")]
    return line


def test_a_run_stops_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    line = one_line(rpms(*PLAY, "--out", folder, most=16_000))
    assert f"stopped: cannot write to {folder}: File too large; what is finished is kept" in line
    kept = read_run(folder)
    assert 0 < len(kept.episodes) < 2 * TASKS and not kept.damaged
    before = (folder / "episodes.jsonl").read_bytes()
    again = rpms(*PLAY, "--out", folder)
    assert again.returncode == 0, again.stderr
    assert f"{len(kept.episodes)} of {2 * TASKS} episodes were finished before" in again.stderr
    whole = before[: before.rfind(b"\n") + 1]
    assert (folder / "episodes.jsonl").read_bytes().startswith(whole)
    assert read_run(folder).complete


def test_a_run_on_a_disk_that_is_really_full(small_disk: Path) -> None:
    line = one_line(rpms(*PLAY, "--out", small_disk / "run"))
    assert "No space left on device; what is finished is kept" in line
    assert read_run(small_disk / "run").episodes
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    assert rpms(*PLAY, "--out", small_disk / "run").returncode == 0
    assert read_run(small_disk / "run").complete


def test_reports_and_exports_say_so_and_leave_the_old_files(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"A": [True] * 4, "B": [True] * 4})
    (folder / "report.html").write_text("old")
    out = tmp_path / "out.jsonl"
    assert "cannot write" in one_line(rpms("report", folder, most=30_000))
    assert (folder / "report.html").read_text() == "old"
    assert "cannot write" in one_line(
        rpms("export", folder, "--format", "atif", "--out", out, most=9_000)
    )
    assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_training_data_keeps_its_whole_episodes(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"B": [True] * 6}, split="generated_seen")
    words = ["export", folder, "--format", "chat", "--out", tmp_path / "out.jsonl"]
    assert rpms(*words).returncode == 0
    whole = (tmp_path / "out.jsonl").read_bytes()
    assert "cannot write" in one_line(rpms(*words, most=len(whole) // 2))
    kept = (tmp_path / "out.jsonl").read_text()
    assert kept and whole.startswith(kept.encode()) and kept.endswith("\n")
    assert all(json.loads(line)["messages"] for line in kept.splitlines())


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
