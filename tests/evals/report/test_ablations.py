"""Settings varied one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.evals.report import build_report
from rpms.evals.report.ablations import varied
from rpms.evals.run_folder import read_run
from tests.evals.sample_runs import contexts, write_run


def tables_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = build_report(read_run(folder)).as_json()["tables"]
    return found


def test_conditions_are_grouped_by_what_they_change(tmp_path: Path) -> None:
    labels = ["A", "B", "C", "D", "D arbitration=none", "D scf=off", "C scf=off", "round 2",
              "round 1"]  # fmt: skip
    run = read_run(write_run(tmp_path, {label: [True] for label in labels}, logs=False))
    assert varied(run, "arbitration") == [["D arbitration=none", "D"]]
    assert varied(run, "scf") == [["C scf=off", "C"], ["D scf=off", "D"]]
    assert varied(run, "memory_file") == [["B", "round 1", "round 2", "D"]]
    ids = [table.id for table in build_report(run).tables]
    assert {"arbitration", "scf", "scf-2", "memory_file"} <= set(ids)
    titles = [table.title for table in build_report(run).tables if table.id.startswith("scf")]
    told = [title.partition(", ")[2] for title in titles]
    assert told == ["rules off, memory on", "rules on, memory on"]


def test_idle_settings_do_not_split_a_group(tmp_path: Path) -> None:
    """Without memory the arbiter has nothing to do, whatever its mode says."""
    made = contexts("A", "B")
    made["B"]["arbitration"] = "none"
    made["A"]["memory_file"] = "elsewhere.jsonl"
    run = read_run(
        write_run(tmp_path, {"A": [True], "B": [True]}, logs=False, conditions=made)
    )  # fmt: skip
    assert varied(run, "arbitration") == varied(run, "memory_file") == []


def test_the_arbitration_table(tmp_path: Path) -> None:
    wins = {"D": [True] * 8, "D arbitration=none": [True] * 2 + [False] * 6}
    tables = tables_of(write_run(tmp_path, wins, logs=False))
    none, both = tables["arbitration"]["rows"]
    assert (none["arbitration"], both["arbitration"]) == ("none", "hard+soft")
    assert both["gain over none"]["points"] == 75
    assert both["McNemar p"] == pytest.approx(2 / 2**6)


def test_memory_controls_are_paired_with_the_memory_itself(tmp_path: Path) -> None:
    wins = {
        "D": [True] * 8,
        "D memory_control=filler": [True] * 3 + [False] * 5,
        "D memory_control=empty": [True] * 2 + [False] * 6,
    }
    (table,) = [
        table for table in tables_of(write_run(tmp_path, wins, logs=False)).values()
        if table["title"] == "Memory controls"
    ]  # fmt: skip
    whole, empty, text = table["rows"]
    assert [row["memory controls"] for row in (whole, empty, text)] == ["none", "empty", "filler"]
    assert empty["McNemar p"] == pytest.approx(2 / 2**6)
    assert empty["gain over none"]["points"] == -75
    assert (empty["won by D full alone"], empty["won by the control alone"]) == (6, 0)
    assert text["McNemar p"] == pytest.approx(2 / 2**5)


def test_the_memory_only_learning_curve_begins_with_the_baseline(tmp_path: Path) -> None:
    made = contexts("A", "C")
    conditions = {"C round 0": made["A"]} | {
        f"C round {number}": {**made["C"], "memory_file": f"m.round{number}.jsonl"}
        for number in (1, 2)
    }
    wins = {label: [True] for label in conditions}
    run = read_run(write_run(tmp_path, wins, logs=False, conditions=conditions))
    assert varied(run, "memory_file") == [["C round 0", "C round 1", "C round 2"]]
