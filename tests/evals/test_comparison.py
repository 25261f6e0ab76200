from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.evals.comparison import compare_runs
from rpms.evals.run_files import Run, read_run
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import task_id, write_run


def run_of(folder: Path, wins: dict[str, list[bool]], **changes: Any) -> Run:
    return read_run(write_run(folder, wins, logs=False, **changes))


def test_two_models_are_paired_task_by_task(tmp_path: Path) -> None:
    one = run_of(tmp_path / "1", {"A": [True] * 2 + [False] * 8, "D": [True] * 10})
    two = run_of(
        tmp_path / "2", {"A": [False] + [True] * 9, "D": [True] * 10},
        model="openai:m", model_label="openai:m", commit="fff0000",
    )  # fmt: skip
    found = compare_runs(one, two)
    assert found.differences == [
        "model: sim (built-in planner, not a language model) -> openai:m",
        "commit: abc1234 -> fff0000",
    ]
    first, second = found.as_json()["tables"]["summary"]["rows"]
    assert (first["only first won"], first["only second won"]) == (1, 8)
    assert first["McNemar p"] == pytest.approx(2 * 10 / 2**9)
    assert first["second - first"]["points"] == pytest.approx(70)
    assert second["McNemar p"] == 1.0
    changes = found.as_json()["tables"]["changes"]["rows"]
    assert [row["task"] for row in changes] == [task_id(i) for i in (0, *range(2, 10))]
    assert changes[0]["first"]["success"] and not changes[0]["second"]["success"]
    assert "openai:m" in found.tables[0].source and "sim (built-in" in found.tables[0].source


def test_a_run_compared_with_itself(tmp_path: Path) -> None:
    run = run_of(tmp_path, {"A": [True, False]})
    found = compare_runs(run, run)
    assert found.differences == [] and found.tables[1].rows == []


def test_only_tasks_that_both_finished_are_paired(tmp_path: Path) -> None:
    broken = {("A", 1): {"failure_mode": "model_error"}}
    one = run_of(tmp_path / "1", {"A": [True, False, True]}, lines=broken)
    two = run_of(tmp_path / "2", {"A": [False, True]})
    found = compare_runs(one, two)
    (row,) = found.as_json()["tables"]["summary"]["rows"]
    assert row["tasks"] == 1 and row["first"]["n"] == 1
    assert "1 episodes of the first run ended in an error and are left out." in (
        found.tables[0].notes
    )
    assert len(found.tables[1].rows) == 1


def test_settings_and_knowledge_that_differ_are_named(tmp_path: Path) -> None:
    one = run_of(tmp_path / "1", {"A": [True]})
    hashes = {"rules": "x" * 64, "memory": {"shipped": "y" * 64}}
    two = run_of(tmp_path / "2", {"A": [True]}, hashes=hashes, settings={"max_steps": 30})
    told = compare_runs(one, two).differences
    assert {
        "the rule manual differs",
        "the memory of shipped differs",
        "max_steps: 50 -> 30",
    } <= set(told)


@pytest.mark.parametrize(
    ("wins", "changes", "message"),
    [
        ({"A": [True]}, {"env": "scienceworld"}, "two environments"),
        ({"B": [True]}, {}, "no condition in common"),
        ({"A": [True]}, {"tasks": [{"id": "x", "index": 0}], "split": "s"}, "no task in common"),
    ],
)
def test_runs_with_nothing_in_common_are_refused(
    tmp_path: Path, wins: dict[str, list[bool]], changes: dict[str, Any], message: str
) -> None:
    one = run_of(tmp_path / "1", {"A": [True]})
    write_run(tmp_path / "2", wins, logs=False, **changes)
    (tmp_path / "2" / "episodes.jsonl").write_text("")
    with pytest.raises(RpmsError, match=message):
        compare_runs(one, read_run(tmp_path / "2"))
