"""``rpms learn`` and ``rpms memory``, end to end on generated homes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paper_entries import refusals

pytestmark = pytest.mark.engine


def rpms(*words: str | Path) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-m", "rpms", *map(str, words)],
        cwd=root, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("learn") / "memory.jsonl"
    done = rpms("learn", "--split", "generated_seen", "--limit", "6", "--rounds", "2", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_rounds_leave_growing_snapshots(learned: Path) -> None:
    sizes = []
    for number in (1, 2):
        done = rpms("memory", "stats", learned.with_suffix(f".round{number}.jsonl"), "--json")
        stats = json.loads(done.stdout)
        assert stats["rounds"] == number and stats["env"] == "alfworld"
        often = "1 round" if number == 1 else "2 rounds"
        told = f"sim, alfworld generated_seen, 6 tasks, {often} of condition B, commit "
        assert stats["sources"][0].startswith(told) and len(stats["sources"]) == 1
        assert stats["learned_by"] == ["sim"]
        sizes.append(stats["entries"])
    assert sizes[0] <= sizes[1]
    assert learned.read_bytes() == learned.with_suffix(".round2.jsonl").read_bytes()


def test_learning_from_the_recorded_runs_gives_the_same_entries(learned: Path) -> None:
    again = learned.with_name("again.jsonl")
    done = rpms("learn", "--from-runs", f"{learned}.runs", "--out", again)
    assert done.returncode == 0, done.stderr
    assert again.read_text().splitlines()[1:] == learned.read_text().splitlines()[1:]


def test_a_finished_round_is_not_played_again_and_never_overwritten(learned: Path) -> None:
    runs = sorted(Path(f"{learned}.runs").rglob("episodes.jsonl"))
    before = [file.read_bytes() for file in (*runs, learned)]
    assert len(runs) == 2
    words = ("learn", "--split", "generated_seen", "--rounds", "2", "--out", learned)
    other = rpms(*words, "--limit", "6", "--max-steps", "9")
    assert other.returncode == 2 and "max_steps: 0 before, 9 now" in other.stderr
    assert len(other.stderr.splitlines()) == 1
    assert rpms(*words, "--limit", "6").returncode == 0
    # A folder grows and never shrinks: with fewer tasks it is learned from as it is.
    assert "from 12 episodes" in rpms(*words, "--limit", "1").stdout
    assert [file.read_bytes() for file in (*runs, learned)] == before


def test_a_round_is_an_ordinary_run(learned: Path) -> None:
    done = rpms("report", f"{learned}.runs/round2", "--json")
    report = json.loads(done.stdout)
    assert report["played"] == report["planned"] == 6
    (row,) = report["tables"]["main"]["rows"]
    assert row["condition"] == "B rules" and row["errors"] == 0


def test_show_and_check(learned: Path) -> None:
    shown = rpms("memory", "show", learned, "--type", "success", "--limit", "3").stdout.splitlines()
    assert [json.loads(line)["type"] for line in shown] == ["success"] * 3
    assert rpms("memory", "check", learned).stdout.startswith(f"{learned}: ok,")


def test_a_damaged_file_is_one_line_with_its_number(learned: Path) -> None:
    broken = learned.with_name("broken.jsonl")
    lines = learned.read_text().splitlines()
    lines[4] = lines[4][:40]
    broken.write_text("\n".join(lines) + "\n")
    for command in (("memory", "check", broken), ("run", "--memory", broken)):
        done = rpms(*command)
        assert done.returncode == 2 and f"{broken}:5:" in done.stderr
        assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr


def test_every_memorys_fate_is_shown_on_request(tmp_path: Path) -> None:
    fates = {
        ("mug 1", "look"): "dropped in scf: recorded while holding something",
        ("none", "go to fridge 1"): "warned by O-ACT-001: 'go to fridge 1' failed then, but",
        ("none", "open fridge 1"): "used",
    }
    memory = refusals(tmp_path / "memory.jsonl", 9, *fates)
    done = rpms("run", "--task", "9", "--condition", "D", "--memories", "--max-steps", "1",
                "--memory", memory)  # fmt: skip
    assert done.returncode == 0
    shown = " ".join(done.stdout.split())
    for (_, action), fate in fates.items():
        assert f"failure 1.00 {action} {fate}" in shown
