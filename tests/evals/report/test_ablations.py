"""Settings varied one at a time, and what episodes tell besides who won."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.report import build_report
from rpms.evals.report.ablations import varied
from rpms.evals.report.prefix import repeated_share, shared_start
from rpms.evals.run_folder import read_run
from tests.evals.sample_runs import contexts, episode, step_log, write_run


def tables_of(folder: Path, **wins: Any) -> dict[str, Any]:
    found: dict[str, Any] = build_report(read_run(folder)).as_json()["tables"]
    return found


def test_conditions_are_grouped_by_what_they_change(tmp_path: Path) -> None:
    labels = ["A", "B", "C", "D", "D arbitration=none", "D scf=off", "C scf=off", "round 2",
              "round 1", "B layout=cache_friendly"]  # fmt: skip
    run = read_run(write_run(tmp_path, {label: [True] for label in labels}, logs=False))
    assert varied(run, "arbitration") == [["D arbitration=none", "D"]]
    assert varied(run, "scf") == [["C scf=off", "C"], ["D scf=off", "D"]]
    assert varied(run, "layout") == [["B", "B layout=cache_friendly"]]
    assert varied(run, "memory_file") == [["B", "round 1", "round 2", "D"]]
    ids = [table.id for table in build_report(run).tables]
    assert {"arbitration", "scf", "scf-2", "layout", "memory_file"} <= set(ids)
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


def test_layouts_show_how_much_of_a_prompt_repeats(tmp_path: Path) -> None:
    wins = {"B": [True] * 2, "B layout=cache_friendly": [True] * 2}
    tables = tables_of(write_run(tmp_path, wins))
    first = tables["layout"]["rows"][0]
    assert 0.9 < first["repeated prefix"]["share"] < 1
    assert first["cached by the provider"]["share"] == pytest.approx(0.4)
    assert first["prompt tokens per step"]["value"] == 1000


def test_the_shared_start_of_prompts() -> None:
    one = [("system", "rules"), ("user", "look around")]
    assert shared_start(one, [*one, ("assistant", "go")]) == 16
    assert shared_start(one, [("system", "rules"), ("user", "look at it")]) == 11
    assert shared_start(one, [("user", "rules")]) == 0


def test_the_repeated_share_of_a_log(tmp_path: Path) -> None:
    file = tmp_path / "log.json.gz"
    assert repeated_share(file) is None
    file.write_bytes(b"no gzip")
    assert repeated_share(file) is None
    known = step_log(episode("A", 0, True))["steps"][0]
    prompts = [[["system", 0]], [["system", 0], ["user", 1]], []]
    log = {"messages": ["abcde", "fgh"], "steps": [{**known, "prompt": one} for one in prompts]}
    file.write_bytes(gzip.compress(json.dumps(log).encode()))
    assert repeated_share(file) == pytest.approx(5 / 8)


def test_failures_steps_and_rates(tmp_path: Path) -> None:
    lines = {
        ("A", 0): {"failure_mode": "wrong_termination", "steps": 4, "invalid_actions": 2,
                   "drift_steps": 3, "checked_steps": 4},
        ("A", 1): {"failure_mode": "format", "steps": 16, "invalid_actions": 10,
                   "format_errors": 9, "drift_steps": 0, "checked_steps": 0},
        ("A", 3): {"failure_mode": "model_error", "steps": 99, "invalid_actions": 99},
    }  # fmt: skip
    folder = write_run(tmp_path, {"A": [False, False, True, False]}, lines=lines, logs=False)
    tables = tables_of(folder)
    failures = {row[""].split(" (")[0]: row["A baseline"] for row in tables["failures"]["rows"]}
    assert failures == {
        "timeout": 0, "wrong termination": 1, "format": 1, "lost by the agent": 2,
        "model error": 1, "infrastructure error": 0,
    }  # fmt: skip
    (steps,) = tables["steps"]["rows"]
    assert steps["steps, all"]["value"] == pytest.approx(26 / 3)
    assert steps["steps, won"]["value"] == 6 and steps["steps, lost"]["value"] == 10
    (rates,) = tables["reliability"]["rows"]
    assert rates["invalid actions (P1)"]["share"] == pytest.approx(13 / 26)
    assert rates["unreadable replies"]["share"] == pytest.approx(9 / 26)
    assert rates["belief drift (P2)"]["share"] == pytest.approx(4 / 10)


def test_memories_and_money(tmp_path: Path) -> None:
    priced = {"cost_usd": 0.02, "recalled": 10, "dropped_scf": 4, "dropped_arbitration": 1}
    lines = {("D", 0): {**priced, "warned": 2}, ("D", 1): {"recalled": 0, "dropped_scf": 0,
             "dropped_arbitration": 0}}  # fmt: skip
    folder = write_run(tmp_path, {"A": [True] * 2, "D": [True] * 2}, lines=lines, logs=False)
    tables = tables_of(folder)
    (memory,) = tables["memory"]["rows"]
    assert memory["recalled"] == 10 and memory["dropped by SCF"]["share"] == 0.4
    assert memory["dropped by arbiter"]["share"] == 0.1 and memory["warned"]["share"] == 0.2
    unknown, known = tables["tokens"]["rows"]
    assert unknown["cost (USD)"] == {"value": None}
    assert known["cost (USD)"] == {"value": 0.02, "per_win": 0.01}
    assert known["prompt tokens per episode"]["value"] == 6000
