"""Outcomes of planted advice: counted in logs made to measure, and in real episodes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from rpms.evals.analysis.report import read_report
from rpms.evals.records.run_folder import read_run
from tests.evals.sample_runs import write_run
from tests.real_runs import Play

PLANTED = "D memory_control=conflict"


def rows_of(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    rows = read_report(folder).as_json()["tables"]["conflict"]["rows"]
    return {(row["condition"], row["advice"]): row for row in rows}


def recall(entry: str, dropped_by: str = "", warning: str = "", kind: str = "success") -> Any:
    return {"entry": {"id": entry, "type": kind}, "score": 1.0, "dropped_by": dropped_by,
            "reason": "", "warning": warning, "rule": ""}  # fmt: skip


STEPS = [
    [recall("planted_rule_s1", "arbitration"), recall("planted_goal_s1"),
     recall("s1"), recall("s2", "scf"), recall("s3", "not groundable"), recall("x", kind="schema")],
    [recall("planted_rule_s1", "arbitration"), recall("planted_rule_s2", warning="may be"),
     recall("planted_goal_s1", "arbitration"), recall("s1", "arbitration")],
    [recall("planted_rule_s2", "over token budget"), recall("s1", "duplicate"),
     recall("s4", "over top-k")],
]  # fmt: skip


def test_only_advice_that_reached_arbitration_counts(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"B": [True, False], PLANTED: [True]}))
    (episode,) = run.judged(PLANTED)
    log = json.loads(gzip.decompress(run.log_file(episode).read_bytes()))
    log["steps"] = [{**log["steps"][0], "recalls": recalls} for recalls in STEPS]
    run.log_file(episode).write_bytes(gzip.compress(json.dumps(log).encode()))
    rows = rows_of(tmp_path)
    figures = {
        advice: (
            row["candidates"],
            *(round(row[name]["share"], 3) for name in ("removed", "warned", "shown")),
            row["entries"],
            row["always caught"]["share"],
        )
        for (condition, advice), row in rows.items()
        if condition == PLANTED
    }
    assert figures == {
        "planted: rule": (4, 0.5, 0.25, 0.25, 2, 0.5),
        "planted: goal": (2, 0.5, 0, 0.5, 1, 0),
        "learned": (4, 0.25, 0, 0.25, 2, 0),
    }
    assert rows["B rules", ""]["success rate"]["share"] == 0.5
    assert rows["B rules", ""]["candidates"] == 0


def test_without_plants_there_is_no_such_table(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {"C": [True], "D": [True]})
    assert "conflict" not in read_report(folder).as_json()["tables"]


def test_no_rule_is_broken_under_a_hard_arbiter(play_once: Play) -> None:
    """In real homes, by the plan's own arms: all that was planted against a rule is caught."""
    words = ["--plan", "conflict", "--split", "generated_unseen", "--limit", "1"]
    rows = rows_of(play_once("conflict", *words, "--types", "look_at_obj_in_light"))
    for mode, (removed, warned) in {
        "none": (0, 0), "soft": (0, 1), "hard": (1, 0), "hard+soft": (1, 0),
    }.items():  # fmt: skip
        condition = f"D conflict arbitration={mode}"
        planted, learned = (rows[condition, name] for name in ("planted: rule", "learned"))
        assert planted["candidates"] > 0
        assert (planted["removed"]["share"], planted["warned"]["share"]) == (removed, warned)
        assert planted["shown"]["share"] <= 1 - removed
        assert learned["candidates"] > 0 and learned["removed"]["share"] < 0.2
