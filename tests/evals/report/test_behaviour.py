"""The tables of behaviour, from run folders made to measure and from real episodes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.analysis.causes import Cause
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.report.behaviour import cause_table
from rpms.evals.records.run_folder import Run, read_run
from tests.evals.sample_runs import analysis_of, write_run
from tests.evals.test_step_analysis import DECISIONS

PAGE = Path(__file__).parents[3] / "docs" / "evaluation.md"


def tables_of(folder: Path) -> dict[str, Any]:
    tables: dict[str, Any] = read_report(folder).as_json()["tables"]
    return tables


def test_failures_steps_and_rates(tmp_path: Path) -> None:
    lines = {
        ("A", 0): {"failure_mode": "wrong_termination", "steps": 4},
        ("A", 1): {"failure_mode": "format", "steps": 16},
        ("A", 3): {"failure_mode": "model_error", "steps": 99},
    }  # fmt: skip
    unread = {"failed": True, "action": ""}
    unchecked: dict[int, Any] = {
        number: {"truth": {}, "belief_errors": []} for number in range(1, 17)
    }
    steps = {
        ("A", 0): {1: {"failed": True, "belief_errors": ["x"]}, 3: {"belief_errors": ["x"]}},
        ("A", 1): {n: change | (unread if n > 7 else {}) for n, change in unchecked.items()},
        ("A", 3): {number: {"failed": True} for number in range(1, 100)},
    }
    wins = {"A": [False, False, True, False]}
    folder = write_run(tmp_path, wins, lines=lines, steps=steps)
    tables = tables_of(folder)
    failures = {row["failure mode"]: row["A baseline"] for row in tables["failures"]["rows"]}
    assert failures == {
        "timeout": 0, "stopped before the goal": 1, "format": 1, "lost by the agent": 2,
        "model error": 1, "infrastructure error": 0,
    }  # fmt: skip
    (steps,) = tables["steps"]["rows"]
    assert steps["steps, all"]["value"] == pytest.approx(26 / 3)
    assert steps["steps, won"]["value"] == 6 and steps["steps, lost"]["value"] == 10
    (errors,) = tables["errors"]["rows"]
    assert errors["rejected actions (P1)"]["share"] == pytest.approx(13 / 26)
    assert errors["format errors"]["share"] == pytest.approx(9 / 26)
    assert errors["belief errors (P2)"]["share"] == pytest.approx(4 / 10)


@pytest.mark.parametrize(("env", "ends"), [("alfworld", False), ("scienceworld", True)])
def test_a_failure_mode_that_cannot_happen_has_no_row(env: str, ends: bool, tmp_path: Path) -> None:
    tables = tables_of(write_run(tmp_path, {"A": [False]}, logs=False, env=env))
    modes = [row["failure mode"] for row in tables["failures"]["rows"]]
    assert ("stopped before the goal" in modes) == ends and "timeout" in modes


def test_tokens_and_money(tmp_path: Path) -> None:
    wins = {"A": [True] * 2, "D": [True] * 2}
    spent = {"tokens": 660, "usd": 0.06}
    sessions = [{"started": "2030-01-02", "commit": "abc1234", "spent": spent} for _ in range(2)]
    lines = {("D", 0): {"cost_usd": 0.02}}
    tables = tables_of(write_run(tmp_path, wins, lines=lines, logs=False, sessions=sessions))
    (note,) = tables["tokens"]["notes"][1:]
    assert note.startswith("All 2 sessions together spent 1,320 tokens and $0.1200")
    unknown, priced = tables["tokens"]["rows"]
    assert unknown["cost (USD)"] == {"value": None}
    assert priced["cost (USD)"] == {"value": 0.02, "per_win": 0.01}
    assert priced["prompt tokens"]["value"] == 6000


def causes(run: Run) -> list[Cause]:
    return [cause for e in run.episodes.values() if (cause := analysis_of(run, e).cause)]


def test_every_episode_that_was_not_won_is_counted_once(tmp_path: Path) -> None:
    lines = {("A", 0): {"failure_mode": "model_error", "error": "401: no key"}}
    run = read_run(write_run(tmp_path, {"B": [True, False], "A": [False, False]}, lines=lines))
    table = cause_table(Results(run))
    assert [*table.columns] == ["cause", "B rules", "A baseline"]
    rows = {row[0].text: [cell.value for cell in row[1:]] for row in table.rows}
    assert rows == {"belief error": [1, 1], "model error": [0, 1], "not won": [1, 2]}
    assert table.rows[1][2].link == (("c", "A"), ("cause", "model error"))


@pytest.mark.parametrize("damage", ["gone", "torn", "other"])
def test_a_log_that_cannot_be_read_leaves_the_cause_open(tmp_path: Path, damage: str) -> None:
    """Also one that was read before: what is written anew is read anew."""
    run = read_run(write_run(tmp_path, {"A": [False]}))
    assert [cause.kind for cause in causes(run)] == ["belief error"]
    file = run.log_file(next(iter(run.episodes.values())))
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:40] if damage == "torn" else b"[]")
    assert [cause.kind for cause in causes(run)] == ["not recorded"]


def test_real_episodes_are_explained_by_their_own_steps(
    real_run: Path, random_run: Path, science_run: Path
) -> None:
    for folder in (real_run, random_run, science_run):
        run = read_run(folder)
        lost = [e for e in run.episodes.values() if not e.success]
        assert lost, "nothing was lost, so nothing was tested"
        for episode in lost:
            cause = analysis_of(run, episode).cause
            assert cause and cause.kind != "not recorded"
            assert 1 <= cause.step <= episode.steps and f"step {cause.step}" in cause.text


def test_guard_decisions(tmp_path: Path) -> None:
    made = {number: {"decisions": each} for number, each in enumerate(DECISIONS, start=1)}
    wins = {"D": [True, True], "D+verify": [True, True]}
    steps = {("D+verify", 0): made, ("D+verify", 1): made}
    report = read_report(write_run(tmp_path, wins, steps=steps))
    (row,) = report.as_json()["tables"]["guard"]["rows"]
    assert (row["condition"], row["proposals"]) == ("D+verify", 16)
    assert row["retried"]["share"] == 0.5
    assert row["vetoes by rule"] == "R-1 37.5%, R-2 12.5%, procedure 12.5%"
    assert "causes" not in report.names, "nothing was lost"


@pytest.mark.engine
def test_what_no_table_answers_is_a_line_of_pandas(real_run: Path) -> None:
    """The lines of the documentation, in place of tables that reports once had."""
    blocks = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (code,) = [block for block in blocks if "rpms.load(" in block]
    answers: dict[str, Any] = {}
    exec(code.replace("runs/mine", str(real_run)), answers)
    judged = answers["judged"]
    known = judged[judged.rule == "known action"].groupby("condition").size()
    for name in "AB":
        episodes = read_run(real_run).judged(name)
        assert known[name] == sum(e.steps for e in episodes)
    assert set(answers["shown"].condition) == {"C", "D"}


def test_rules_are_broken_in_arms_without_rules_too(tmp_path: Path) -> None:
    kept = {"judged": [["known action", "kept"], ["O-ACT-001", "kept"]]}
    broken = {"judged": [["known action", "kept"], ["O-ACT-001", "broken"]]}
    forbidden = {"judged": [["known action", "kept"], ["O-ACT-004", "kept"], ["R-1", "broken"]]}
    silent: dict[str, Any] = {"judged": [], "action": "", "failed": True}
    steps = {
        ("A", 0): {1: broken, 2: broken, 3: silent, **dict.fromkeys((4, 5, 6), kept)},
        ("B", 0): {1: forbidden, **dict.fromkeys(range(2, 7), kept)},
    }
    report = read_report(write_run(tmp_path / "run", {"A": [True], "B": [True]}, steps=steps))
    (table,) = report.only(["rules"]).tables
    assert [row[0].text for row in table.rows] == ["O-ACT-001", "R-1"]
    assert table.rows[0][1].text == "go to <place>" and table.rows[1][1].text == ""
    assert table.rows[0][1].value.startswith("go to <place> | needs")
    assert [[cell.text for cell in row[2:]] for row in table.rows] == [
        ["40.0%", "0.0%"], ["0.0%", "16.7%"]
    ]  # fmt: skip
    assert dict(table.rows[0][2].link) == {"c": "A", "broken": "O-ACT-001"}
    assert not table.rows[0][3].link
    assert "rules" not in tables_of(write_run(tmp_path / "old", {"A": [True]})), "not recorded"
