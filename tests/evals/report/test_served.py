"""Pages of runs as their files change."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rpms.evals.analysis.report.served import ServedRun, ServedRuns
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import contexts, episode, manifest, task_id, write_log, write_run


def growing(folder: Path, planned: int = 4) -> Path:
    """A run of which the first episode has ended."""
    tasks = manifest(["A"], planned)["tasks"]
    return write_run(folder, {"A": [True]}, tasks=tasks, finished=None)


def add(folder: Path, number: int, won: bool, condition: str = "A") -> None:
    line = episode(condition, number, won)
    write_log(folder, line)
    with (folder / "episodes.jsonl").open("a") as out:
        out.write(json.dumps(line) + "\n")


def test_the_page_is_made_anew_once_the_run_has_grown(tmp_path: Path) -> None:
    run = ServedRun(growing(tmp_path))
    before = run.page()
    assert run.page() is before and "This run is not finished: 1 of 4 episodes" in before
    assert 'id="log-0"' in before and 'href="../../">All runs' in before
    add(tmp_path, 1, False)
    after = run.page()
    assert run.page() is after and "This run is not finished: 2 of 4 episodes" in after
    assert task_id(1) in after and 'id="log-1"' in after


def test_runs_are_found_below_folders_and_as_they_begin(tmp_path: Path) -> None:
    write_run(tmp_path / "b", {"A": [True]}, logs=False)
    served = ServedRuns([tmp_path, tmp_path / "b"])
    assert [run.folder.name for run in served.runs().values()] == ["b"]
    first = next(iter(served.runs().values()))
    write_run(tmp_path / "a", {"A": [True]}, logs=False)
    assert [run.folder.name for run in served.runs().values()] == ["a", "b"]
    assert first in served.runs().values(), "a run that was read is kept"
    with pytest.raises(RpmsError, match=r"no manifest\.json in .*empty or below it"):
        ServedRuns([tmp_path / "empty"])


def test_the_newest_run_is_listed_first_with_its_date_and_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, day in (("a", "01"), ("b/c", "03"), ("d", "02")):
        created = f"2030-01-{day}T03:04:05+00:00"
        write_run(tmp_path / name, {"A": [True]}, logs=False, created=created)
    links = re.findall(r'title="(.+?)">(.+?)</a>', ServedRuns([tmp_path]).index())
    assert links == [(str(tmp_path / name), name) for name in ("b/c", "d", "a")]
    page = ServedRuns([tmp_path / "d", tmp_path / "a"]).index()
    assert f">{tmp_path / 'd'}</a>" in page, "of several folders each in full"
    assert (
        '<time datetime="2030-01-02T03:04:05+00:00">2 Jan 2030<span class="clock">, 03:04' in page
    )
    monkeypatch.chdir(tmp_path / "d")
    assert ">d</a>" in ServedRuns([Path()]).index()


def test_a_damaged_run_is_told_in_the_list_of_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "good", {"A": [True, False]}, conditions=contexts("A"), logs=False)
    bad = write_run(tmp_path / "bad", {"A": [True]}, logs=False)
    (bad / "manifest.json").write_text("{}\n")
    page = ServedRuns([tmp_path]).index()
    assert "A 1/2" in page and "2 of 2" in page
    assert "manifest.json: format: Field required" in page
