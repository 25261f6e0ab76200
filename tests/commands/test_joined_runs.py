"""Runs of the same tasks in one table: labels tell what differs, and what does not fit is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import rpms as package
from rpms.evals.analysis.arm_differences import comparisons
from rpms.evals.analysis.joined_runs import read_joined
from rpms.vocabulary.errors import RpmsError
from tests.command_line import Rpms
from tests.evals.sample_runs import contexts, manifest, write_run

WINS = {"A": [False] * 6, "D": [True] * 6}


def other(folder: Path, **changes: Any) -> dict[str, Any]:
    """The arms of another run, with settings of their own."""
    return {name: {**context, **changes} for name, context in contexts(*WINS).items()}


def test_two_models_share_every_table_and_each_arm_keeps_its_logs(
    rpms: Rpms, tmp_path: Path
) -> None:
    first = write_run(tmp_path / "first", WINS)
    second = write_run(tmp_path / "second", {"A": [True] * 6, "D": [True] * 5 + [False]},
                       model="gpt", model_label="gpt", conditions=other(tmp_path, model="gpt",
                       base_url="http://elsewhere"))  # fmt: skip
    report = package.report([first, str(second)], separate=True)
    sim = report.run.parts[0].manifest.model_label
    arms = ["A (first)", "D (first)", "A (second)", "D (second)"]
    tables = report.as_json()["tables"]
    runs = tables["runs"]["rows"]
    assert [(row["run"], row["condition"], row["success rate"]["won"]) for row in runs] == [
        (sim, "A baseline", 0), (sim, "D rules+memory", 6),
        ("gpt", "A baseline", 6), ("gpt", "D rules+memory", 5),
    ]  # fmt: skip
    assert [row["gain"] == "-" or row["gain"]["points"] for row in runs] == [
        True, 100.0, True, pytest.approx(-100 / 6)
    ]  # fmt: skip
    assert [row["condition"] for row in tables["main"]["rows"]] == arms
    assert tables["failures"]["rows"][0] == {
        "failure mode": "timeout", **dict(zip(arms, (6, 0, 0, 1), strict=True))
    }  # fmt: skip
    pair = next(
        r for r in tables["pairs"]["rows"] if (r["first"], r["second"]) == (arms[0], arms[2])
    )
    assert pair["only second won"] == 6 and pair["differ in"] == "model"
    # The causes come from the step logs, which lie in two folders under other names.
    assert tables["causes"]["rows"][-1]["D (second)"] == 1
    assert not any(row["cause"] == "not recorded" for row in tables["causes"]["rows"])
    assert any(line.startswith("A (second)") and "6:0 discordant games" in line
               for line in report.verdict)  # fmt: skip
    assert f"first: the model is {sim}" in report.verdict[0]
    assert "6 tasks that both runs share, 24 episodes; first: sim" in tables["pairs"]["source"]
    for text in (report.as_csv(), report.as_latex(), report.as_markdown()):
        assert all(arm in text for arm in arms)
    page = tmp_path / "both.html"
    done = rpms("report", first, second, "--separate", "--table", "main", "--html", page)
    assert done.code == 0 and f"written: {page}" in " ".join(done.out.split())
    steps = [file.read_text() for file in (tmp_path / "both-steps").iterdir()]
    assert "D (second)" in done.out and sum(text.count(' id="log-') for text in steps) == 24
    assert "--html FILE writes one" in rpms("report", first, second, "--separate").out
    csv = rpms("report", first, second, "--separate", "--format", "csv").out
    assert csv == report.as_csv()
    assert not list(tmp_path.glob("*/report.*"))  # no folder is that of both


def test_other_arms_of_the_same_making_keep_their_labels(tmp_path: Path) -> None:
    """Each half of the ablation by itself says little; together they are the square."""
    halves = [{"A": [False] * 9, "C": [False] * 9}, {"B": [True] * 9, "D": [True] * 9}]
    folders = [write_run(tmp_path / f"half{n}", wins) for n, wins in enumerate(halves)]
    report = package.report(folders)
    assert report.run.conditions == ["A", "C", "B", "D"] and report.run.complete
    assert report.as_json()["tables"]["square"]["rows"][0]["gain of rules"]["points"] == 100.0
    assert any("better, +100.0 points" in line for line in report.verdict)


@pytest.mark.parametrize(
    "changes",
    [
        {"commit": "fff0000"},
        {"conditions": {"scf": "off"}},
        {"hashes": {"memory": {"D": "x" * 64}}},
        {"settings": {"max_steps": 30}},
    ],
)
def test_an_arm_of_two_runs_is_called_after_its_run_and_compared(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    first = write_run(tmp_path / "first", WINS, logs=False, hashes={"memory": {"D": "m" * 64}})
    changes = {"hashes": {"memory": {"D": "m" * 64}}, **changes}
    if "conditions" in changes:
        changes["conditions"] = other(tmp_path, **changes["conditions"])
    wins = {**WINS, "B": [True] * 6}
    pairs = {"compare": [("A", "B"), ("A", "no such arm")]}
    if "conditions" in changes:
        changes["conditions"] |= contexts("B")
    second = write_run(tmp_path / "second", wins, logs=False, **changes, **pairs)
    run = read_joined([first, second], separate=True)
    labels = ["A (first)", "D (first)", "A (second)", "D (second)", "B"]
    assert run.conditions == labels
    assert [pair[:2] for pair in comparisons(run)] == [
        (labels[0], labels[2]), (labels[1], labels[3]), (labels[2], "B")
    ]  # fmt: skip


def test_only_the_tasks_of_all_count(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", WINS, logs=False)
    second = write_run(tmp_path / "second", {"B": [True] * 4, "C": [True] * 3}, logs=False)
    with (second / "episodes.jsonl").open("a") as lines:
        lines.write("{}\n")
    report = package.report([first, second])
    assert [len(report.run.judged(name)) for name in report.run.conditions] == [4, 4, 4, 3]
    lines = "\n".join(report.verdict)
    assert "4 tasks that all runs share; left out: 2 of first." in lines
    assert "not finished: 15 of 16 episodes" in lines
    assert "1 damaged line of second/episodes.jsonl (the first is line 8)" in report.as_markdown()


def test_what_does_not_fit_together_is_one_line(rpms: Rpms, tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", WINS, logs=False, wording="ours")
    goals = [{**task, "goal": "?"} for task in manifest("A", 6)["tasks"]]
    refusals = {
        "split: alfworld generated_unseen -> alfworld valid_seen": {"split": "valid_seen"},
        "-> scienceworld test; wording": {"env": "scienceworld", "split": "test", "wording": "x"},
        "wording: ours -> theirs": {"wording": "theirs"},
        "trials: 1 -> 3; repeats: 1 -> 2": {"settings": {"trials": 3, "repeats": 2}},
        "no task in common": {},
    }
    for number, (words, changes) in enumerate(refusals.items()):
        misfit = write_run(tmp_path / str(number), {"A": []}, **{"tasks": goals, **changes})
        done = rpms("report", first, misfit)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), words
        assert f"{first} and {misfit} do not fit together: " in done.err and words in done.err
    copy = shutil.copytree(first, tmp_path / "damaged")
    (copy / "manifest.json").write_text("{")
    for folders, words in (([copy], "damaged/manifest.json"), ([first], "is given twice: ")):
        done = rpms("report", first, *folders)
        assert done.code == 2 and words in done.err and done.err.count("\n") == 1
    with pytest.raises(RpmsError, match="no folder was given"):
        package.report([])
    assert json.loads(rpms("report", first, "--json").out)["played"] == 12
