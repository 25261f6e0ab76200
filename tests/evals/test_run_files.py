from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rpms
from rpms.evals.records import EpisodeLine, Step
from rpms.evals.report import build_report
from rpms.evals.run_folder import RunWriter, read_log, read_records, read_run, slug, step_log_file
from rpms.vocabulary.errors import RpmsError
from tests.evals import sample_runs
from tests.evals.sample_runs import episode, task_id, write_run


def test_a_run_comes_back_in_order(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"A": [True, False], "D scf=off": [False, True]}))
    assert run.conditions == ["A", "D scf=off"]
    assert run.complete and not run.torn and run.planned == 4
    assert [e.success for e in run.judged("D scf=off")] == [False, True]
    assert all(run.log_file(e).is_file() for e in run.episodes.values())


@given(st.text(min_size=1))
def test_slugs_are_those_of_the_format(text: str) -> None:
    assert slug(text) == sample_runs.slug(text)
    assert "/" not in slug(text) and len(slug(text)) <= 89
    assert step_log_file(Path("run"), text, "t").parts[:2] == ("run", "steps")


def test_the_last_line_of_an_episode_counts(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"A": [False]})
    with (folder / "episodes.jsonl").open("a") as out:
        out.write(json.dumps(episode("A", 0, True)) + "\n")
    run = read_run(folder)
    assert [e.success for e in run.judged("A")] == [True] and len(run.episodes) == 1


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"A": [True, True]})
    file = folder / "episodes.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    run = read_run(folder)
    assert run.torn and not run.complete and len(run.episodes) == 1


def test_a_line_without_its_end_does_not_count_yet(tmp_path: Path) -> None:
    """The runner cuts it off and plays the episode again; until then both say the same."""
    folder = write_run(tmp_path, {"A": [True, True]})
    file = folder / "episodes.jsonl"
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    assert read_run(folder).torn and len(read_run(folder).episodes) == 1


def test_a_damaged_line_is_left_out_and_counted(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"A": [True, True, True]})
    file = folder / "episodes.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:50], lines[2]]) + "\n")
    run = read_run(folder)
    assert run.damaged == (2,) and len(run.episodes) == 2 and not run.complete
    report = build_report(run).as_markdown()
    assert "1 damaged lines of episodes.jsonl are left out (the first is line 2)" in report


def test_a_line_of_another_run_is_refused_with_its_place(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"A": [True, True, True]})
    file = folder / "episodes.jsonl"
    lines = file.read_text().splitlines()
    file.write_text(lines[0] + "\n" + json.dumps(episode("B", 1, True)) + "\n")
    with pytest.raises(RpmsError, match=r"episodes\.jsonl:2: condition 'B'"):
        read_run(folder)


def test_errors_are_not_judged_and_scores_are_floored(tmp_path: Path) -> None:
    broken = {"failure_mode": "model_error", "error": "401"}
    wrong = {"score": -100.0, "failure_mode": "wrong_termination"}
    run = read_run(
        write_run(tmp_path, {"A": [False] * 3}, lines={("A", 0): broken, ("A", 1): wrong})
    )
    assert len(run.played("A")) == 3
    assert [e.task for e in run.judged("A")] == [task_id(1), task_id(2)]
    assert run.judged("A")[0].floored == 0.0 and run.judged("A")[0].score == -100.0


def test_a_foreign_folder_and_a_foreign_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=r"no manifest\.json"):
        read_run(tmp_path)
    folder = write_run(tmp_path, {"A": [True]}, format=2)
    with pytest.raises(RpmsError, match=r"manifest\.json: format: "):
        read_run(folder)


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"A": [True]})
    (folder / "episodes.jsonl").unlink()
    assert read_run(folder).episodes == {}


def test_cycles_are_counted_as_a_run_is_read(tmp_path: Path) -> None:
    history = [{"action": "go", "failed": True}] * 3
    folder = write_run(tmp_path, {"A": [False]}, lines={("A", 0): {"history": history}})
    assert [e.repeated for e in read_run(folder).judged("A")] == [2]


OLD_RUN = Path(__file__).with_name("old_run")
"""Two trials of a task under three conditions, as an earlier version wrote them."""


def test_a_run_of_an_earlier_version_is_read_and_written_alike(tmp_path: Path) -> None:
    run, records = read_run(OLD_RUN), read_records(read_run(OLD_RUN), ["A", "A+verify", "D"])
    assert run.complete and not run.damaged and len(run.episodes) == len(records) == 5
    writer, old = RunWriter(tmp_path), OLD_RUN / "episodes.jsonl"
    for text in old.read_text().splitlines():
        line = EpisodeLine.model_validate_json(text)
        assert not {*json.loads(text)} - {*EpisodeLine.model_fields}
        # The turns are kept as they are: of a line that is read, only what is learned from.
        writer.append(line.model_copy(update={"history": json.loads(text)["history"]}), b"")
        log = read_log(run.log_file(run.episodes[line.key]))
        assert log and not {name for step in log["steps"] for name in step} - {
            *Step.__annotations__
        }
    writer.write_manifest(run.manifest)
    writer.close()
    for name in ("episodes.jsonl", "manifest.json"):
        assert (tmp_path / name).read_bytes().replace(b'"repeated": 0, ', b"") == (
            OLD_RUN / name
        ).read_bytes()
    assert len(rpms.load(OLD_RUN).steps) == sum(e.steps for e in run.episodes.values())
