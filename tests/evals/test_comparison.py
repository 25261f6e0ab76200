from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.evals.comparison import compare_runs
from rpms.evals.run_folder import Run, read_run
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import contexts, task_id, write_repeats, write_run


def run_of(folder: Path, wins: dict[str, list[bool]], **changes: Any) -> Run:
    return read_run(write_run(folder, wins, logs=False, **changes))


def test_two_models_are_paired_task_by_task(tmp_path: Path) -> None:
    first = run_of(tmp_path / "1", {"A": [True] * 2 + [False] * 8, "D": [True] * 10})
    second = run_of(
        tmp_path / "2", {"A": [False] + [True] * 9, "D": [True] * 10},
        model="openai:m", model_label="openai:m", commit="fff0000",
    )  # fmt: skip
    comparison = compare_runs([first, second])
    assert comparison.differences == [
        "model: sim (built-in planner, not a language model) -> openai:m",
        "commit: abc1234 -> fff0000",
    ]
    baseline, full = comparison.as_json()["tables"]["summary"]["rows"]
    assert (baseline["only first won"], baseline["only second won"]) == (1, 8)
    assert baseline["McNemar p"] == pytest.approx(2 * 10 / 2**9)
    assert baseline["second - first"]["points"] == pytest.approx(70)
    assert full["McNemar p"] == 1.0
    changes = comparison.as_json()["tables"]["changes"]["rows"]
    assert [row["task"] for row in changes] == [task_id(i) for i in (0, *range(2, 10))]
    assert changes[0]["first"]["success"] and not changes[0]["second"]["success"]
    assert (
        "openai:m" in comparison.tables[0].source and "sim (built-in" in comparison.tables[0].source
    )


def test_only_tasks_that_both_finished_are_paired(tmp_path: Path) -> None:
    broken = {("A", 1): {"failure_mode": "model_error"}}
    first = run_of(tmp_path / "1", {"A": [True, False, True]}, lines=broken)
    second = run_of(tmp_path / "2", {"A": [False, True]})
    comparison = compare_runs([first, second], allow_differences=True)
    (row,) = comparison.as_json()["tables"]["summary"]["rows"]
    assert row["tasks"] == 1 and row["first"]["n"] == 1
    assert "Left out: 1 episode of the first run that ended in an error." in (
        comparison.tables[0].notes
    )
    assert len(comparison.tables[1].rows) == 1


def test_settings_and_knowledge_that_differ_are_named(tmp_path: Path) -> None:
    """What an older run did not record, here its wording, is no difference."""
    first = run_of(tmp_path / "1", {"D": [True]}, hashes={"rules": "a" * 64, "memory": {"D": "b"}})
    second = run_of(
        tmp_path / "2", {"D": [True]}, hashes={"rules": "x" * 64, "memory": {"D": "y" * 64}},
        settings={"max_steps": 30, "truth": False}, wording="the paper's",
        conditions={"D": {**contexts("D")["D"], "scf": "off"}},
    )  # fmt: skip
    assert compare_runs([first, second], allow_differences=True).differences == [
        "steps: 50 -> 30",
        "memory: b -> yyyyyyyy",
        "rules: aaaaaaaa -> xxxxxxxx",
        "truth: None -> False",
        "D, scf: occupancy -> off",
    ]


DIFFERENT = [
    ("split", {"split": "generated_seen"}), ("wording", {"wording": "another"}),
    ("steps", {"settings": {"max_steps": 30}}),
    ("trials", {"settings": {"max_steps": 50, "trials": 10}}),
    ("repeats", {"settings": {"max_steps": 50, "repeats": 3}}),
    ("examples", {"examples": 2}), ("history", {"history": 0}),
    ("action list", {"action_list": True}),
    ("decoding", {"temperature": 0.7}), ("decoding", {"max_tokens": 100}),
    ("decoding", {"seed": 3}), ("decoding", {"constrain": "grammar"}),
    ("learning data", {"memories": {"m": {"sources": ["elsewhere"]}}}),
    ("memory", {"hashes": {"rules": "r", "memory": {"D": "n"}}}),
    ("rules", {"hashes": {"rules": "s", "memory": {"D": "m"}}}),
]  # fmt: skip


@pytest.mark.parametrize(("point", "change"), DIFFERENT)
def test_each_point_of_the_protocol_keeps_runs_apart(
    tmp_path: Path, point: str, change: dict[str, Any]
) -> None:
    settings = {key: value for key, value in change.items() if key in RunContext().plain}
    rest = {key: value for key, value in change.items() if key not in settings}
    known: dict[str, Any] = {
        "wording": "the paper's",
        "hashes": {"rules": "r", "memory": {"D": "m"}},
        "memories": {"m": {"sources": ["here"]}, "n": {"sources": ["here"]}},
        "conditions": contexts("D"),
    }
    first = run_of(tmp_path / "1", {"D": [True]}, **known)
    other = {"conditions": {"D": {**contexts("D")["D"], **settings}}}
    second = run_of(tmp_path / "2", {"D": [True]}, **{**known, **other, **rest})
    with pytest.raises(RpmsError) as refused:
        compare_runs([first, second])
    message = str(refused.value)
    assert f"{tmp_path / '2'}: {point}: " in message and "\n" not in message
    assert "--allow-differences" in message and message.count(" -> ") == 1
    allowed = compare_runs([first, second], allow_differences=True)
    assert [line.partition(":")[0] for line in allowed.differences[:1]] == [point]
    for table in allowed.tables:
        assert "The protocols DIFFER" in table.protocol and f"{point}: " in table.as_markdown()
    itself = compare_runs([first, first])
    assert itself.differences == itself.tables[1].rows == [] and len(itself.tables) == 2


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
    first = run_of(tmp_path / "1", {"A": [True]})
    write_run(tmp_path / "2", wins, logs=False, **changes)
    (tmp_path / "2" / "episodes.jsonl").write_text("")
    with pytest.raises(RpmsError, match=message):
        compare_runs([first, read_run(tmp_path / "2")])
    with pytest.raises(RpmsError, match="give two runs"):
        compare_runs([first])


def test_all_repeats_of_two_runs_are_compared_and_code_is_named(tmp_path: Path) -> None:
    code = [{"D": {"nodes scf": {"path": "own:stages", "hash": digest * 12}}} for digest in "12"]
    first, second = (
        write_repeats(tmp_path / name, {"D": ends}, swapped=swapped)
        for name, ends, swapped in (
            ("1", [[True, False], [False, False], [True, True]], code[0]),
            ("2", [[False, True], [True, True], [True, True]], code[1]),
        )
    )
    comparison = compare_runs([first, second])
    assert comparison.differences == [
        "D, nodes: scf from own:stages 11111111 -> scf from own:stages 22222222"
    ]
    (row,) = comparison.as_json()["tables"]["summary"]["rows"]
    assert (row["first won more often"], row["second won more often"], row["tasks"]) == (0, 1, 3)
    assert row["second - first"]["points"] == pytest.approx(100 / 3)
    assert row["permutation p"] == 1.0
    # The first task was won once in both runs, in whichever repeat.
    (change,) = comparison.tables[1].rows
    assert [cell.text for cell in change[1:]] == [task_id(1), "won 0 of 2", "won 2 of 2"]
