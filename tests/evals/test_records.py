"""Run folders as learning reads them, with their texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.run_folder import EPISODES, read_records, read_run
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import episode, write_run

TURN = {"action": "look", "observation": "a room", "failed": False, "reply": "is not asked for"}


def appended(folder: Path, *lines: dict[str, Any]) -> Path:
    with (folder / EPISODES).open("a") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    return folder


def test_an_episode_comes_with_what_was_done_and_seen(tmp_path: Path) -> None:
    lines = {("B", 0): {"history": [TURN]}}
    run = read_run(write_run(tmp_path, {"A": [True], "B": [False]}, lines=lines, logs=False))
    (record,) = read_records(run, ["B"])
    assert record["goal"] == "put a mug in shelf 0." and not record["success"]
    assert record["first_observation"].startswith("You are in the middle of a room.")
    assert record["history"] == [{"action": "look", "observation": "a room", "failed": False}]
    assert len(read_records(run, ["A", "B"])) == 2


def test_superseded_and_errored_episodes_teach_nothing(tmp_path: Path) -> None:
    lines = {("B", 0): {"failure_mode": "model_error"}, ("B", 1): {"goal": "first"}}
    folder = write_run(tmp_path, {"B": [False, False, True]}, lines=lines, logs=False)
    appended(
        folder,
        episode("B", 1, False, goal="second"),
        episode("B", 2, False, failure_mode="infrastructure_error"),
    )
    assert [one["goal"] for one in read_records(read_run(folder), ["B"])] == ["second"]
    appended(folder, episode("B", 0, True, goal="at last"))
    assert [one["goal"] for one in read_records(read_run(folder), ["B"])] == ["at last", "second"]


def test_a_torn_line_and_damaged_ones_are_passed_over(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"B": [True, True]}, logs=False)
    with (folder / EPISODES).open("a") as out:
        out.write('{"env": "alfworld", "spl')
    assert len(read_records(read_run(folder), ["B"])) == 2
    with (folder / EPISODES).open("a") as out:
        out.write("\n")
    assert len(read_records(read_run(folder), ["B"])) == 2


def test_an_episode_without_its_texts_is_refused_with_its_place(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"B": [True]}, logs=False)
    line = {name: value for name, value in episode("B", 0, True).items() if name != "history"}
    appended(folder, line)
    with pytest.raises(RpmsError, match=rf"{EPISODES}:2: history: "):
        read_records(read_run(folder), ["B"])


def test_a_run_that_has_not_begun_has_nothing_to_tell(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"B": [True]}, logs=False)
    (folder / EPISODES).unlink()
    assert read_records(read_run(folder), ["B"]) == []
