"""Run folders: written so that a kill loses nothing, read whatever happened to them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.report.page import render_page, step_pages
from rpms.evals.records.run_folder import (
    EPISODES,
    MANIFEST,
    RunWriter,
    read_log,
    read_records,
    read_run,
    step_log_file,
)
from rpms.evals.records.schema import Episode, EpisodeLine, Manifest
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import slug
from tests.evals import sample_runs
from tests.evals.sample_runs import add_lines, episode, manifest, step_log, task_id, write_run


def test_a_run_comes_back_in_order(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"A": [True, False], "D scf=off": [False, True]}))
    assert run.conditions == ["A", "D scf=off"]
    assert run.complete and not run.torn and run.planned == 4
    assert [e.success for e in run.judged("D scf=off")] == [False, True]
    assert all(run.log_file(e).is_file() for e in run.episodes.values())


@given(st.text(min_size=1))
@example("..")
@example("x" * 301)
@example("D arbitration=hard+soft")
def test_slugs_are_those_of_the_format(text: str) -> None:
    assert slug(text) == sample_runs.slug(text) and json.dumps(slug(text)).isascii()
    assert "/" not in slug(text) and len(slug(text)) <= 89 and slug(text) != slug(text + "_")
    assert step_log_file(Path("run"), text, "t").parts[:2] == ("run", "steps")


PART = b'{"condition": "A", "task": "c"}'


@pytest.mark.parametrize(
    ("lost", "added", "episodes", "torn", "damaged"),
    [
        (40, b"", 1, True, 0), (1, b"", 1, True, 0), (0, b"{", 2, True, 0), (0, PART, 2, True, 0),
        (0, PART[:-9], 2, True, 0), (0, PART + b"\n", 2, False, 1), (0, b"nonsense\n", 2, False, 1),
        (0, b"[]\n", 2, False, 1), (0, b"\0\n", 2, False, 1), (0, b"\n", 2, False, 0),
    ],
)  # fmt: skip
def test_a_line_that_a_kill_tore_or_that_is_damaged_tells_of_no_episode(
    lost: int, added: bytes, episodes: int, torn: bool, damaged: int, tmp_path: Path
) -> None:
    """Whoever reads a run and whoever goes on with it say the same; the latter cuts off the end."""
    file = write_run(tmp_path, {"A": [True, True]}, logs=False) / EPISODES
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - lost] + added)
    run = read_run(tmp_path)
    assert (len(run.episodes), run.torn, len(run.damaged)) == (episodes, torn, damaged)
    assert len(read_records(run, ["A"])) == episodes and run.complete == (episodes == 2)
    writer = RunWriter(tmp_path)
    assert len(writer.finished(Episode)) == episodes and writer.damaged == damaged
    assert not torn or file.read_bytes() == b"".join(whole.splitlines(keepends=True)[:episodes])
    writer.append(line("c"), b"")
    assert len(writer.finished(Episode)) == episodes + 1


def test_a_damaged_line_is_named_and_a_line_of_another_run_refused(tmp_path: Path) -> None:
    file = write_run(tmp_path, {"A": [True, True, True]}) / EPISODES
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:50], lines[2]]) + "\n")
    run = read_run(tmp_path)
    assert run.damaged == (2,) and len(run.episodes) == 2 and not run.complete
    report = read_report(tmp_path).as_markdown()
    assert "Left out: 1 damaged line of episodes.jsonl (the first is line 2)" in report
    file.write_text(lines[0] + "\n" + json.dumps(episode("B", 1, True)) + "\n")
    with pytest.raises(RpmsError, match=r"episodes\.jsonl:2: condition 'B'"):
        read_run(tmp_path)


def test_what_is_counted_as_a_run_is_read(tmp_path: Path) -> None:
    """Errors are not judged, and scores floored."""
    broken = {"failure_mode": "model_error", "error": "401"}
    wrong = {"score": -100.0, "failure_mode": "wrong_termination"}
    lines = {("A", 0): broken, ("A", 1): wrong}
    run = read_run(write_run(tmp_path, {"A": [False] * 3}, lines=lines))
    assert len(run.played("A")) == 3
    first, second = run.judged("A")
    assert [first.task, second.task] == [task_id(1), task_id(2)]
    assert (first.floored, first.score) == (0.0, -100.0)


def test_a_foreign_folder_and_a_foreign_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=r"no manifest\.json"):
        read_run(tmp_path)
    folder = write_run(tmp_path, {"A": [True]}, format=3)
    with pytest.raises(RpmsError, match=r"manifest\.json: format: "):
        read_run(folder)
    write_run(tmp_path, {"A": [True]}, format=1)
    with pytest.raises(RpmsError, match=r"manifest\.json: format: .* commit [0-9a-f]{8}$"):
        read_run(folder)
    writer = RunWriter(folder)
    for text in ("", "[]", '{"format": 99}', "{"):
        (folder / MANIFEST).write_text(text)
        with pytest.raises(RpmsError, match="not a valid manifest"):
            writer.manifest()


def line(task: str, condition: str = "A", mode: str | None = None) -> EpisodeLine:
    return EpisodeLine(**episode(condition, 0, mode is None, task=task, failure_mode=mode))


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return RunWriter(tmp_path / "run")


def test_a_folder_has_one_writer_at_a_time(writer: RunWriter) -> None:
    (writer.folder / "file").write_text("")
    with pytest.raises(RpmsError, match="cannot write to"):
        RunWriter(writer.folder / "file" / "run")
    with pytest.raises(RpmsError, match="being written by another"):
        RunWriter(writer.folder)
    writer.close()
    RunWriter(writer.folder).close()


def test_the_manifest_is_replaced_whole(writer: RunWriter) -> None:
    assert writer.manifest() is None
    for count in (1, 2):
        writer.write_manifest(Manifest(**manifest(["A"], count, later="kept")))
    assert writer.manifest() == Manifest(**manifest(["A"], 2, later="kept"))
    assert json.loads((writer.folder / MANIFEST).read_text()) == manifest(["A"], 2, later="kept")
    assert sorted(p.name for p in writer.folder.iterdir()) == [".lock", MANIFEST]


TURN = {"action": "look", "observation": "a room", "failed": False, "reply": "is not asked for"}


def test_what_is_learned_from_an_episode(tmp_path: Path) -> None:
    """Its texts; those that a later line supersedes or that ended in an error teach nothing."""
    lines = {("B", 0): {"failure_mode": "model_error"}, ("B", 1): {"history": [TURN]}}
    folder = write_run(tmp_path, {"A": [True], "B": [False, False, True]}, lines=lines, logs=False)
    record, _ = read_records(read_run(folder), ["B"])
    assert record["goal"] == "put a mug in shelf 1." and not record["success"]
    assert record["first_observation"].startswith("You are in the middle of a room.")
    assert record["history"] == [{"action": "look", "observation": "a room", "failed": False}]
    second = episode("B", 1, False, goal="second")
    run = add_lines(folder, second, episode("B", 2, False, failure_mode="infrastructure_error"))
    assert [r["goal"] for r in read_records(run, ["B"])] == ["second"]
    run = add_lines(folder, episode("B", 0, True, goal="at last"))
    assert [r["goal"] for r in read_records(run, ["B"])] == ["at last", "second"]
    run = add_lines(folder, {name: value for name, value in second.items() if name != "history"})
    with pytest.raises(RpmsError, match=rf"{EPISODES}:8: history: "):
        read_records(run, ["B"])
    (folder / EPISODES).unlink()
    begun = read_run(folder)
    assert begun.episodes == {} and read_records(begun, ["A"]) == [], "it has just begun"


LOG = step_log(episode("D", 1, True))


def packed(file: Path, log: Any) -> Path:
    file.write_bytes(gzip.compress(json.dumps(log).encode(), mtime=0))
    return file


def test_a_log_comes_back_as_it_is(tmp_path: Path) -> None:
    file = packed(tmp_path / "log.json.gz", LOG)
    assert read_log(file) == LOG
    assert read_log(tmp_path / "none") is None


def test_any_damaged_byte_is_found(tmp_path: Path) -> None:
    whole = packed(tmp_path / "log.json.gz", LOG).read_bytes()
    chance = Random(1)
    for number in range(60):
        at = chance.randrange(10, len(whole))  # the first ten bytes say nothing about the log
        file = tmp_path / f"{number}.json.gz"
        flipped = bytes([whole[at] ^ (1 << chance.randrange(8))])
        file.write_bytes(whole[:at] + flipped + whole[at + 1 :])
        assert read_log(file) is None


@pytest.mark.parametrize(
    "change",
    [
        {"messages": "x"}, {"messages": []}, {"steps": {}}, {"steps": [{}]},
        {"steps": [{**LOG["steps"][0], "seconds": 1e300}]},
        {"steps": [{**LOG["steps"][0], "usage": {"prompt_tokens": 10**40}}]},
        {"steps": [{**LOG["steps"][0], "prompt": [["system", 999]]}]},
        {"steps": [{**LOG["steps"][0], "recalls": [None]}]},
    ],
    ids=str,
)  # fmt: skip
def test_a_log_of_another_form_is_none(change: dict[str, Any], tmp_path: Path) -> None:
    assert read_log(packed(tmp_path / "log.json.gz", {**LOG, **change})) is None


def test_a_report_says_how_many_logs_cannot_be_read(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"A": [True, False], "D": [True, True]})
    run = read_run(folder)
    broken = next(iter(run.episodes.values()))
    file = run.log_file(broken)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    report = read_report(folder)
    assert report.run.done == 4
    assert "Missing or damaged: 1 step log. Such an episode counts" in report.as_markdown()
    page = render_page(report)
    assert "Missing or damaged: 1 step log." in page
    pages = [page for _, page in step_pages(report, "report.html")]
    assert 'id="log-0"' not in pages[0] and 'id="log-1"' in pages[0]
    assert all(f'id="log-{number}"' in pages[1] for number in range(2))
