"""The tables about how it went, from run folders made to measure and from real episodes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.comparison import compare_runs
from rpms.evals.report import build_report, read_report
from rpms.evals.report.behaviour import cause_of, cause_table, guard_table
from rpms.evals.run_folder import Run, read_run
from rpms.evals.step_analysis import Cause, decision_counts
from rpms.vocabulary.turn import Decision, Verdict
from tests.evals.sample_runs import write_run

ANALYSIS = Path(__file__).parents[3] / "docs" / "analysis.md"


def tables_of(folder: Path) -> dict[str, Any]:
    tables: dict[str, Any] = read_report(folder).as_json()["tables"]
    return tables


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
    assert steps["invalid actions (P1)"]["share"] == pytest.approx(13 / 26)
    assert steps["unreadable replies"]["share"] == pytest.approx(9 / 26)
    assert steps["belief drift (P2)"]["share"] == pytest.approx(4 / 10)


def test_tokens_and_money(tmp_path: Path) -> None:
    wins = {"A": [True] * 2, "D": [True] * 2}
    spent = {"tokens": 660, "usd": 0.06}
    sessions = [{"started": "2030-01-02", "commit": "abc1234", "spent": spent} for _ in range(2)]
    lines = {("D", 0): {"cost_usd": 0.02}}
    tables = tables_of(write_run(tmp_path, wins, lines=lines, logs=False, sessions=sessions))
    (note,) = tables["tokens"]["notes"][1:]
    assert note.startswith("All 2 sessions together spent 1,320 tokens and $0.1200, episodes that")
    unknown, known = tables["tokens"]["rows"]
    assert unknown["cost (USD)"] == {"value": None}
    assert known["cost (USD)"] == {"value": 0.02, "per_win": 0.01}
    assert known["prompt tokens per episode"]["value"] == 6000


def causes(run: Run) -> list[Cause]:
    return [cause for e in run.episodes.values() if (cause := cause_of(run, e))]


def test_every_episode_that_was_not_won_is_counted_once(tmp_path: Path) -> None:
    lines = {("A", 0): {"failure_mode": "model_error", "error": "401: no key"}}
    run = read_run(write_run(tmp_path, {"B": [True, False], "A": [False, False]}, lines=lines))
    table = cause_table(run)
    assert table and [*table.columns] == ["cause", "B rules", "A baseline"]
    rows = {row[0].text: [cell.value for cell in row[1:]] for row in table.rows}
    assert rows == {"belief_errors": [1, 1], "model error": [0, 1], "not won": [1, 2]}
    behind = [key for row in table.rows[:-1] for cell in row for key in cell.behind]
    lost = [e.key for e in run.episodes.values() if not e.success]
    assert sorted(behind) == sorted(lost)


@pytest.mark.parametrize("damage", ["gone", "torn", "other"])
def test_a_log_that_cannot_be_read_leaves_the_cause_open(tmp_path: Path, damage: str) -> None:
    """Also one that was read before: what is written anew is read anew."""
    run = read_run(write_run(tmp_path, {"A": [False]}))
    assert [cause.kind for cause in causes(run)] == ["belief_errors"]
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
            cause = cause_of(run, episode)
            assert cause and cause.kind != "not recorded"
            assert 1 <= cause.step <= episode.steps and f"step {cause.step}" in cause.text


def decision(proposal: str, verdict: Verdict, rule: str = "", step: int = 1) -> Decision:
    played = "" if verdict == "retried" else proposal
    reason = "" if verdict == "accepted" else "so it is"
    return Decision(step=step, proposal=proposal, verdict=verdict, rule=rule, reason=reason,
                    repair="", played=played)  # fmt: skip


DECISIONS = [
    decision("open box", "retried", "R-1"),
    decision("open box", "fallback", "R-1"),
    decision("open box", "retried", "R-1", 2),
    decision("go to box", "accepted", step=2),
    decision("", "retried", step=3),
    decision("sing", "retried", "R-2", 3),
    decision("look", "accepted", step=3),
    decision("look", "accepted", step=4),
]


def test_what_a_guard_made_of_proposals_is_counted() -> None:
    counts = decision_counts(DECISIONS)
    assert (counts["proposals"], counts["retries"], counts["fallback"]) == (8, 4, 1)
    assert counts["vetoes"] == {"R-1": 3, "R-2": 1, "procedure": 1}


def test_what_rules_made_of_actions(tmp_path: Path) -> None:
    lines: dict[Any, Any] = {("D+verify", n): decision_counts(DECISIONS) for n in range(2)}
    wins = {"D": [True, True], "D+verify": [True, True]}
    run = read_run(write_run(tmp_path, wins, lines=lines, logs=False))
    table = guard_table(run)
    assert table is not None and "guard" in {table.id for table in build_report(run).tables}
    (row,) = table.as_json()["rows"]
    assert (row["condition"], row["proposals"]) == ("D+verify", 16)
    assert row["asked again"]["share"] == 0.5
    assert row["vetoes by rule"] == "R-1 37.5%, R-2 12.5%, procedure 12.5%"
    assert cause_table(run) is None, "nothing was lost"


@pytest.mark.parametrize(
    ("old", "new"), [("reask", "verify"), ("shortlist", "offer"), ("constrain", "policy")]
)
def test_a_run_of_earlier_names_is_read_by_the_new_ones(old: str, new: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "old", {"D": [True, False]}, logs=False)
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    label = f"D guard={old}"
    manifest["conditions"] = {label: {**manifest["conditions"]["D"], "guard": old}}
    del manifest["conditions"][label]["max_retries"]
    file.write_text(json.dumps(manifest))
    lines = (folder / "episodes.jsonl").read_text()
    (folder / "episodes.jsonl").write_text(lines.replace('"D"', json.dumps(label)))
    run = read_run(folder)
    assert run.manifest.conditions[label]["guard"] == new
    assert run.manifest.conditions[label]["max_retries"] == 1
    assert "guard" in {table.id for table in read_report(folder).tables}
    assert compare_runs([run, run]).differences == []


def test_why_actions_and_episodes_failed(tmp_path: Path) -> None:
    """Two episodes each: A was shown nothing, D ignored most of what it was shown."""

    def refused(missing: int, wrong: int, ignored: int, lost_by: str) -> dict[str, Any]:
        return {
            "refused": {"missing": missing, "wrong": wrong, "ignored": ignored},
            "lost_by": lost_by,
        }

    lines = {
        ("A", 0): refused(3, 0, 0, "missing"), ("A", 1): refused(0, 0, 0, "nothing refused"),
        ("D", 0): refused(1, 1, 2, ""), ("D", 1): refused(0, 1, 3, "ignored"),
    }  # fmt: skip
    wins = {"A": [False, False], "D": [True, False]}
    a, d = tables_of(write_run(tmp_path / "new", wins, lines=lines))["lacking"]["rows"]
    assert (a["actions refused"], d["actions refused"]) == (3, 8)
    assert (a["missing"]["share"], d["ignored"]["share"]) == (1.0, 0.625)
    assert (a["episodes lost"], d["episodes lost"]) == (2, 1)
    assert a["missing (episodes)"]["share"] == a["nothing refused"]["share"] == 0.5
    assert d["ignored (episodes)"]["share"] == 1.0
    assert "lacking" not in tables_of(write_run(tmp_path / "old", wins)), "an earlier version's run"


@pytest.mark.engine
def test_refusals_of_a_real_run(real_run: Path) -> None:
    report = read_report(real_run)
    refused = {row["condition"][0]: row for row in report.as_json()["tables"]["lacking"]["rows"]}
    for name in report.run.conditions:
        readable = sum(e.invalid_actions - e.format_errors for e in report.run.judged(name))
        assert refused[name]["actions refused"] == readable
    # Who is shown neither rules nor memories can ignore nothing but the list of actions.
    assert all(refused[name]["wrong"]["share"] in (0.0, None) for name in "AS")


@pytest.mark.engine
def test_what_no_table_answers_is_a_line_of_pandas(real_run: Path) -> None:
    """The lines of the documentation, in place of tables that reports once had."""
    code = re.search(r"```py\n(import rpms.*?)```", ANALYSIS.read_text(), re.S)
    assert code
    answers: dict[str, Any] = {}
    exec(code[1].replace("runs/mine", str(real_run)), answers)
    judged = answers["judged"]
    known = judged[judged.rule == "known action"].groupby("condition").size()
    for name in "AB":
        episodes = read_run(real_run).judged(name)
        assert known[name] == sum(e.steps - e.format_errors for e in episodes)
    assert set(answers["shown"].condition) == {"C", "D"}
