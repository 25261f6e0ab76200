"""What rules made of proposals, and what the model made of what they said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.comparison import compare_runs
from rpms.evals.report import read_report
from rpms.evals.report.guard import guard_table, veto_table
from rpms.evals.run_folder import read_run
from rpms.evals.step_counts import UNREADABLE, decision_counts
from rpms.vocabulary.turn import Decision, Verdict
from tests.evals.sample_runs import write_run


def decision(proposal: str, verdict: Verdict, rule: str = "", step: int = 1) -> Decision:
    played = "" if verdict == "asked_again" else proposal
    reason = "" if verdict == "accepted" else "so it is"
    return Decision(step=step, proposal=proposal, verdict=verdict, rule=rule, reason=reason,
                    mend="", played=played)  # fmt: skip


DECISIONS = [
    decision("open box", "asked_again", "R-1"),
    decision("open box", "fell_back", "R-1"),
    decision("open box", "asked_again", "R-1", 2),
    decision("go to box", "accepted", step=2),
    decision("", "asked_again", step=3),
    decision("sing", "asked_again", "R-2", 3),
    decision("look", "accepted", step=3),
    decision("look", "accepted", step=4),
]


def test_only_vetoes_that_were_told_have_a_next_proposal() -> None:
    found = decision_counts(DECISIONS)
    assert (found["proposals"], found["asked_again"], found["fell_back"]) == (8, 4, 1)
    assert found["vetoes"] == {"R-1": 3, "R-2": 1, "procedure": 1}
    assert found["after_veto"] == {"R-1": [2, 1, 1], "R-2": [1, 1, 0], UNREADABLE: [1, 0, 0]}


def test_a_veto_at_the_very_end_was_never_answered() -> None:
    assert decision_counts(DECISIONS[:1])["after_veto"] == {}


@pytest.fixture
def guarded(tmp_path: Path) -> Path:
    counts = decision_counts(DECISIONS)
    lines: dict[Any, Any] = {("D+verify", n): counts for n in range(2)}
    wins = {"D": [True, False], "D+verify": [True, True]}
    return write_run(tmp_path / "new", wins, lines=lines, logs=False)


def test_per_rule_what_was_proposed_next(guarded: Path) -> None:
    run = read_run(guarded)
    table = veto_table(run)
    assert table is not None and table.id == "vetoes"
    rows = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows}
    assert [name.split()[0] for name in rows["R-1"]] == ["4", "50.0%", "50.0%"]
    assert [name.split()[0] for name in rows["R-2"]] == ["2", "100.0%", "0.0%"]
    assert {row[0].text for row in table.rows} == {"D+verify"}
    fates = guard_table(run)
    assert fates is not None and "fell back" in fates.columns
    assert {"guard", "vetoes"} <= {table.id for table in read_report(guarded).tables}


def test_without_a_guard_there_is_no_such_table(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"A": [True]}, logs=False))
    assert veto_table(run) is None and guard_table(run) is None


@pytest.mark.parametrize(
    ("old", "new"), [("reask", "verify"), ("shortlist", "offer"), ("constrain", "policy")]
)
def test_a_run_of_earlier_names_is_read_by_the_new_ones(old: str, new: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "old", {"D": [True, False]}, logs=False)
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    label = f"D guard={old}"
    manifest["conditions"] = {label: {**manifest["conditions"]["D"], "guard": old}}
    del manifest["conditions"][label]["reasks"]
    file.write_text(json.dumps(manifest))
    lines = (folder / "episodes.jsonl").read_text()
    (folder / "episodes.jsonl").write_text(lines.replace('"D"', json.dumps(label)))
    run = read_run(folder)
    assert run.manifest.conditions[label]["guard"] == new
    assert run.manifest.conditions[label]["reasks"] == 1
    assert "guard" in {table.id for table in read_report(folder).tables}
    assert compare_runs([run, run]).differences == []
