from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.evals.comparison import compare_runs, read_mapping, row_names
from rpms.evals.run_folder import Run, read_run
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import contexts, task_id, write_run


def run_of(folder: Path, wins: dict[str, list[bool]], **changes: Any) -> Run:
    return read_run(write_run(folder, wins, logs=False, **changes))


def test_two_models_are_paired_task_by_task(tmp_path: Path) -> None:
    one = run_of(tmp_path / "1", {"A": [True] * 2 + [False] * 8, "D": [True] * 10})
    two = run_of(
        tmp_path / "2", {"A": [False] + [True] * 9, "D": [True] * 10},
        model="openai:m", model_label="openai:m", commit="fff0000",
    )  # fmt: skip
    found = compare_runs([one, two])
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
    found = compare_runs([run, run])
    assert found.differences == [] and found.tables[1].rows == []


def test_only_tasks_that_both_finished_are_paired(tmp_path: Path) -> None:
    broken = {("A", 1): {"failure_mode": "model_error"}}
    one = run_of(tmp_path / "1", {"A": [True, False, True]}, lines=broken)
    two = run_of(tmp_path / "2", {"A": [False, True]})
    found = compare_runs([one, two], allow_differences=True)
    (row,) = found.as_json()["tables"]["summary"]["rows"]
    assert row["tasks"] == 1 and row["first"]["n"] == 1
    assert "1 episodes of the first run ended in an error and are left out." in (
        found.tables[0].notes
    )
    assert len(found.tables[1].rows) == 1


def test_settings_and_knowledge_that_differ_are_named(tmp_path: Path) -> None:
    one = run_of(tmp_path / "1", {"D": [True]}, hashes={"rules": "a" * 64, "memory": {"D": "b"}})
    two = run_of(
        tmp_path / "2", {"D": [True]}, hashes={"rules": "x" * 64, "memory": {"D": "y" * 64}},
        settings={"max_steps": 30, "truth": False},
        conditions={"D": {**contexts("D")["D"], "scf": "off"}},
    )  # fmt: skip
    assert compare_runs([one, two], allow_differences=True).differences == [
        "steps: 50 -> 30",
        "memory: b -> yyyyyyyy",
        "rules: aaaaaaaa -> xxxxxxxx",
        "truth: None -> False",
        "D, scf: occupancy -> off",
    ]


DIFFERENT = [
    ("split", {"split": "generated_seen"}),
    ("wording", {"wording": "another"}),
    ("steps", {"settings": {"max_steps": 30}}),
    ("trials", {"settings": {"max_steps": 50, "trials": 10}}),
    ("repeats", {"settings": {"max_steps": 50, "repeats": 3}}),
    ("examples", {"examples": 2}),
    ("action list", {"action_list": True}),
    ("decoding", {"temperature": 0.7}),
    ("decoding", {"max_tokens": 100}),
    ("decoding", {"seed": 3}),
    ("decoding", {"constrain": "grammar"}),
    ("learning data", {"memories": {"m": {"sources": ["elsewhere"]}}}),
    ("memory", {"hashes": {"rules": "r", "memory": {"D": "n"}}}),
    ("rules", {"hashes": {"rules": "s", "memory": {"D": "m"}}}),
]


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
    one = run_of(tmp_path / "1", {"D": [True]}, **known)
    other = {"conditions": {"D": {**contexts("D")["D"], **settings}}}
    two = run_of(tmp_path / "2", {"D": [True]}, **{**known, **other, **rest})
    with pytest.raises(RpmsError) as refused:
        compare_runs([one, two])
    message = str(refused.value)
    assert f"{tmp_path / '2'}: {point}: " in message and "\n" not in message
    assert "--allow-differences" in message and message.count(" -> ") == 1
    allowed = compare_runs([one, two], allow_differences=True)
    assert [line.partition(":")[0] for line in allowed.differences[:1]] == [point]
    for table in allowed.tables:
        assert "The protocols DIFFER" in table.protocol and f"{point}: " in table.as_markdown()
    assert len(compare_runs([one, one]).tables) == 3


def test_what_an_older_run_did_not_record_is_no_difference(tmp_path: Path) -> None:
    one = run_of(tmp_path / "1", {"A": [True]})
    two = run_of(tmp_path / "2", {"A": [True]}, wording="the paper's")
    assert compare_runs([one, two]).differences == []


def test_any_number_of_runs_make_the_table_of_the_paper(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path / name, {"A": [False] * 6, letter: [True] * 6}, model_label=f"model {name}")
        for name, letter in (("1", "B"), ("2", "D"), ("3", "B"))
    ]
    found = compare_runs(runs)
    models, pairs = found.tables
    assert models.columns == ["", "A baseline", "B rules", "D full"]
    rows = found.as_json()["tables"]["models"]["rows"]
    assert [row[""] for row in rows] == ["model 1", "model 2", "model 3"]
    assert rows[0]["B rules"]["share"] == 1.0 and rows[1]["B rules"] == "-"
    assert "[61.0, 100.0]" in models.as_markdown()
    assert [(row[0].text, row[1].text) for row in pairs.rows] == [
        ("model 2", "A baseline"), ("model 3", "A baseline"), ("model 3", "B rules"),
    ]  # fmt: skip
    assert found.differences == ["model 2: model: model 1 -> model 2",
                                 "model 3: model: model 1 -> model 3"]  # fmt: skip
    assert "## Models x conditions" in found.as_markdown()


def test_runs_of_one_model_are_called_by_their_folders(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, {"A": [True]}) for name in ("x", "y", "z")]
    assert compare_runs(runs).names == ("x", "y", "z")
    deep = [run_of(tmp_path / name / "run", {"A": [True]}) for name in ("x", "y")]
    assert row_names(deep) == [str(run.folder) for run in deep]


def test_labels_are_mapped(tmp_path: Path) -> None:
    one = run_of(tmp_path / "1", {"A": [True], "D": [True, False]})
    two = run_of(tmp_path / "2", {"D scf=off": [False, False], "A": [True]})
    mapping = read_mapping(["D scf=off=D"], [one, two])
    assert mapping == {"D scf=off": "D"}
    found = compare_runs([one, two], mapping)
    assert found.differences == ["D, scf: occupancy -> off"]
    rows = found.as_json()["tables"]["summary"]["rows"]
    assert [row["condition"] for row in rows] == ["A baseline", "D full"]
    assert rows[1]["only first won"] == 1
    with pytest.raises(RpmsError, match=r"give OLD=NEW .* there are: A, D, D scf=off"):
        read_mapping(["E=D"], [one, two])
    with pytest.raises(RpmsError, match="no run has a condition 'E'"):
        compare_runs([one, two], {"E": "D"})
    with pytest.raises(RpmsError, match=r"two conditions of .* one name"):
        compare_runs([one, two], {"A": "D"})


def test_one_run_is_not_enough(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match="at least two runs"):
        compare_runs([run_of(tmp_path, {"A": [True]})])


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
        compare_runs([one, read_run(tmp_path / "2")])
