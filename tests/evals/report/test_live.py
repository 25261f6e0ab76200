"""What a page that follows runs is given, as the files change under it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rpms.evals.costs import Total
from rpms.evals.progress import FlightNotes
from rpms.evals.records import JobKey
from rpms.evals.report import live
from rpms.evals.report.live import Aging, Followed, Shelf
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import contexts, episode, manifest, task_id, write_log, write_run


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to wait for a report to be made anew."""
    monkeypatch.setattr(live, "PATIENCE", -1.0)


def growing(folder: Path, planned: int = 4) -> Path:
    """A run of which the first episode has ended."""
    tasks = manifest(["A"], planned)["tasks"]
    return write_run(folder, {"A": [True]}, tasks=tasks, finished=None)


def add(folder: Path, number: int, won: bool, condition: str = "A") -> None:
    line = episode(condition, number, won)
    write_log(folder, line)
    with (folder / "episodes.jsonl").open("a") as out:
        out.write(json.dumps(line) + "\n")


def test_state_and_page_follow_the_files(tmp_path: Path, at_once: None) -> None:
    run = Followed(growing(tmp_path))
    before = run.state()
    assert (before["done"], before["planned"], before["going"]) == (1, 4, False)
    assert run.state() == before and f'"live":"{before["version"]}"' in run.page()
    assert "log-0" not in run.page() and "connect-src 'self'" in run.page()
    add(tmp_path, 1, False)
    after = run.state()
    assert after["done"] == 2 and after["version"] != before["version"]
    assert f'"live":"{after["version"]}"' in run.page() and task_id(1) in run.page()


def test_what_is_in_flight_and_spent(tmp_path: Path) -> None:
    sessions = [{"started": "", "commit": "c", "spent": {"tokens": 70, "usd": 0.25}}, {}]
    write_run(tmp_path, {"A": [True]}, sessions=sessions)
    run = Followed(tmp_path)
    assert (run.state()["tokens"], run.state()["usd"]) == (70, 0.25)
    FlightNotes(tmp_path).note([JobKey("A", "here")], Total(90, 0.5))
    now = run.state()
    assert (now["going"], now["tokens"], now["usd"]) == (True, 90, 0.5)
    assert [(job["c"], job["task"]) for job in now["flying"]] == [("A", "here")]
    assert Followed(write_run(tmp_path / "old", {"A": [True]})).state()["tokens"] is None


def test_a_report_is_not_made_more_often_than_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 2.0, 3.0, 9.9, 10.0, 11.0, 12.0])
    monkeypatch.setattr(live.time, "monotonic", lambda: next(clock))
    letters = Aging(iter("abc").__next__)
    assert letters.get("1") == ("a", "1")  # takes from 0 to 2, so the next one comes at 10
    assert letters.get("2") == ("a", "1")
    assert letters.version("2") == "1"
    assert letters.get("3") == ("b", "3")


def test_runs_are_found_below_folders_and_as_they_begin(tmp_path: Path) -> None:
    write_run(tmp_path / "b", {"A": [True]}, logs=False)
    shelf = Shelf([tmp_path, tmp_path / "b"])
    assert [run.folder.name for run in shelf.runs().values()] == ["b"]
    first = next(iter(shelf.runs().values()))
    write_run(tmp_path / "a", {"A": [True]}, logs=False)
    assert [run.folder.name for run in shelf.runs().values()] == ["a", "b"]
    assert first in shelf.runs().values(), "a run that was read is kept"
    with pytest.raises(RpmsError, match=r"no manifest\.json in .*empty or below it"):
        Shelf([tmp_path / "empty"])


def test_the_newest_run_is_listed_first_with_its_date_and_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, day in (("a", "01"), ("b/c", "03"), ("d", "02")):
        created = f"2030-01-{day}T03:04:05+00:00"
        write_run(tmp_path / name, {"A": [True]}, logs=False, created=created)
    links = re.findall(r'title="(.+?)">(.+?)</a>', Shelf([tmp_path]).index())
    assert links == [(str(tmp_path / name), name) for name in ("b/c", "d", "a")]
    page = Shelf([tmp_path / "d", tmp_path / "a"]).index()
    assert f">{tmp_path / 'd'}</a>" in page, "of several folders each in full"
    assert (
        '<time datetime="2030-01-02T03:04:05+00:00">2 Jan 2030<span class="clock">, 03:04' in page
    )
    monkeypatch.chdir(tmp_path / "d")
    assert ">d</a>" in Shelf([Path()]).index()


def test_a_damaged_run_is_told_in_the_list_of_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "good", {"A": [True, False]}, conditions=contexts("A"), logs=False)
    bad = write_run(tmp_path / "bad", {"A": [True]}, logs=False)
    (bad / "manifest.json").write_text("{}\n")
    page = Shelf([tmp_path]).index()
    assert "A 1/2" in page and "2 of 2" in page
    assert "manifest.json: format: Field required" in page
