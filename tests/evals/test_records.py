from __future__ import annotations

import json
from pathlib import Path

import pytest

from rpms.evals.records import FILE, append_record, read_records, record_of
from rpms.graph import run_episode
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError


@pytest.mark.engine
def test_an_episode_survives_the_trip_to_disk(tmp_path: Path) -> None:
    result = run_episode(0, context=RunContext.for_condition("B"))
    append_record(tmp_path / "round1" / FILE, record_of(result, "alfworld", "generated_unseen"))
    append_record(tmp_path / "round2" / FILE, record_of(result, "alfworld", "generated_unseen"))
    first, second = read_records(tmp_path)
    assert first == second
    assert first["task"] == result["task_id"] and first["success"] is result["success"]
    assert first["goal"] == result["goal"]["sentence"]
    assert [t["action"] for t in first["history"]] == [t["action"] for t in result["history"]]
    assert first["first_observation"].startswith("You are in the middle of a room.")


def test_damaged_records_are_refused_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(json.dumps({"env": "alfworld"}) + "\n")
    with pytest.raises(RpmsError, match=rf"{FILE}:1: .*required"):
        read_records(tmp_path)
    with pytest.raises(RpmsError, match=f"no {FILE}"):
        read_records(tmp_path / "elsewhere")


def written(folder: Path, *rows: tuple[str, str, str | None]) -> Path:
    """A run folder's file: condition, task and how each episode ended."""
    file = folder / FILE
    lines = [
        json.dumps(
            {
                "env": "alfworld", "split": "s", "task": task, "goal": f"line {number}",
                "first_observation": "", "success": mode is None, "history": [],
                "condition": condition, "failure_mode": mode, "more": "is ignored",
            }
        )
        for number, (condition, task, mode) in enumerate(rows, start=1)
    ]  # fmt: skip
    file.write_text("".join(line + "\n" for line in lines))
    return file


def test_superseded_and_errored_episodes_teach_nothing(tmp_path: Path) -> None:
    written(
        tmp_path,
        ("A", "t1", "model_error"), ("B", "t1", "timeout"), ("A", "t2", "infrastructure_error"),
        ("A", "t3", None), ("A", "t1", None), ("A", "t3", "model_error"),
    )  # fmt: skip
    assert [(r["task"], r["goal"]) for r in read_records(tmp_path)] == [
        ("t1", "line 5"), ("t1", "line 2")
    ]  # fmt: skip


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    file = written(tmp_path, ("A", "t1", None), ("A", "t2", "timeout"))
    with file.open("a") as out:
        out.write('{"env": "alfworld", "spl')
    assert [record["task"] for record in read_records(tmp_path)] == ["t1", "t2"]
    with file.open("a") as out:
        out.write("\n")
    with pytest.raises(RpmsError, match=f"{FILE}:3"):
        read_records(tmp_path)
