from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.records import FILE, append_record, read_records, record_of
from graph import run_episode
from nodes.context import RunContext
from vocabulary.errors import RpmsError


@pytest.mark.engine
def test_an_episode_survives_the_trip_to_disk(tmp_path: Path) -> None:
    result = run_episode(0, context=RunContext.for_condition("B"))
    append_record(tmp_path / "round1" / FILE, record_of(result, "alfworld", "generated_unseen"))
    append_record(tmp_path / "round1" / FILE, record_of(result, "alfworld", "generated_unseen"))
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
