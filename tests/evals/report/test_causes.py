"""The table of causes, from run folders made to measure and from real episodes in both worlds."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms.evals.causes import Cause
from rpms.evals.report.causes import cause_of, cause_table
from rpms.evals.run_folder import Run, read_run
from tests.command_line import in_process
from tests.evals.sample_runs import write_run


def causes(run: Run) -> list[Cause]:
    return [found for e in run.episodes.values() if (found := cause_of(run, e))]


def test_every_episode_that_was_not_won_is_counted_once(tmp_path: Path) -> None:
    lines = {("A", 0): {"failure_mode": "model_error", "error": "401: no key"}}
    run = read_run(write_run(tmp_path, {"B": [True, False], "A": [False, False]}, lines=lines))
    table = cause_table(run)
    assert table and [*table.columns] == ["cause", "B rules", "A baseline"]
    rows = {row[0].text: [cell.value for cell in row[1:]] for row in table.rows}
    assert rows == {"drift": [1, 1], "model error": [0, 1], "not won": [1, 2]}
    behind = [key for row in table.rows[:-1] for cell in row for key in cell.behind]
    lost = [e.key for e in run.episodes.values() if not e.success]
    assert sorted(behind) == sorted(lost)


def test_a_run_without_losses_has_no_such_table(tmp_path: Path) -> None:
    assert cause_table(read_run(write_run(tmp_path, {"A": [True]}))) is None


@pytest.mark.parametrize("damage", ["gone", "torn", "other"])
def test_a_log_that_cannot_be_read_leaves_the_cause_open(tmp_path: Path, damage: str) -> None:
    run = read_run(write_run(tmp_path, {"A": [False]}))
    file = run.log_file(next(iter(run.episodes.values())))
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:40] if damage == "torn" else b"[]")
    assert [found.kind for found in causes(run)] == ["not recorded"]


def test_a_log_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"A": [False]}))
    before = causes(run)
    assert [found.kind for found in before] == ["drift"]
    run.log_file(next(iter(run.episodes.values()))).unlink()
    assert causes(run) != before


@pytest.mark.parametrize(
    ("env", "split", "words"),
    [
        ("alfworld", "generated_unseen", ("--model", "sim")),
        ("alfworld", "generated_unseen", ("--model", "random")),
        ("scienceworld", "train_mini", ("--model", "sim", "--max-steps", "40")),
    ],
)
def test_real_episodes_are_explained_by_their_own_steps(
    env: str,
    split: str,
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rpms = in_process(monkeypatch, capsys)
    given = ["--env", env, "--split", split, "--conditions", "A", "--limit", "3", *words]
    assert rpms("eval", *given, "--workers", "0", "--out", tmp_path / "run").code == 0
    run = read_run(tmp_path / "run")
    lost = [e for e in run.episodes.values() if not e.success]
    assert lost, "nothing was lost, so nothing was tested"
    for episode in lost:
        found = cause_of(run, episode)
        assert found and found.kind != "not recorded"
        assert 1 <= found.step <= episode.steps and f"step {found.step}" in found.text
