"""The analyses of a large run are kept on disk, and made anew if anything behind them changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.analysis import kept_analyses, step_analysis
from rpms.evals.analysis.kept_analyses import prepare_analyses
from rpms.evals.analysis.step_analysis import analyses
from rpms.evals.records.run_folder import read_run
from tests.evals.sample_runs import episode, write_log, write_run

WINS = {"A": [False, False], "D": [True, True]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_analyses, "MANY", 1)
    return write_run(tmp_path / "run", WINS)


def rejected(folder: Path, processes: int = 1) -> list[int]:
    """The rejected actions of every episode, as a new process would count them."""
    step_analysis._ANALYSES.clear()
    run = read_run(folder)
    prepare_analyses(run, processes)
    return [each.invalid_actions for each in analyses(run, run.episodes.values()).values()]


def kept(folder: Path) -> tuple[Path, dict[str, Any]]:
    (file,) = (folder.parent / "cache" / "analyses").iterdir()
    return file, json.loads(file.read_text())


def test_a_kept_analysis_is_used_until_its_log_changes(folder: Path) -> None:
    assert rejected(folder) == [1, 1, 1, 1]
    file, data = kept(folder)
    for analysis in data["analyses"].values():
        analysis["invalid_actions"] = 5
    file.write_text(json.dumps(data))
    assert rejected(folder) == [5, 5, 5, 5]
    write_log(folder, episode("A", 0, False), {3: {"failed": True}, 4: {"failed": True}})
    assert sorted(rejected(folder)) == [3, 5, 5, 5]
    assert len(kept(folder)[1]["analyses"]) == 4


def test_a_damaged_file_and_one_of_another_version_are_made_anew(folder: Path) -> None:
    assert rejected(folder) == [1, 1, 1, 1]
    file, data = kept(folder)
    for text in ("{", json.dumps({**data, "version": "older", "analyses": {}})):
        file.write_text(text)
        assert rejected(folder) == [1, 1, 1, 1]
        assert json.loads(file.read_text()) == data


def test_a_folder_that_cannot_be_written_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (blocked := folder.parent / "file").touch()
    monkeypatch.setenv("RPMS_CACHE", str(blocked))
    assert rejected(folder) == [1, 1, 1, 1]


def test_several_processes_read_the_same(folder: Path) -> None:
    assert rejected(folder, processes=2) == [1, 1, 1, 1]
    assert rejected(folder) == [1, 1, 1, 1]


def test_small_runs_are_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_analyses, "MANY", 5)
    assert rejected(folder) == [1, 1, 1, 1]
    assert not (folder.parent / "cache").exists()
