"""The tables about who won, on runs whose counts are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.evals.report import build_report, read_report
from rpms.evals.report.results import main_table, pair_table, square_table, type_table
from rpms.evals.run_folder import Run, read_run
from rpms.evals.tables import Table
from tests.evals.sample_runs import LABEL, write_run

# The paper's 2x2: how many of 134 each condition won, and alone against the baseline.
PAPER = {"A": 48, "C": 55, "B": 68, "D": 80}


def paired(won: int, gained: int, lost: int, base: int, n: int = 134) -> list[bool]:
    """Won tasks such that, against a base that wins the first ones, so many differ."""
    row = [i < base for i in range(n)]
    for i in range(lost):
        row[i] = False
    for i in range(base, base + gained):
        row[i] = True
    assert sum(row) == won
    return row


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Rules gain 36 and lose 16 against the baseline, as in the paper's appendix."""
    wins = {
        "A": [i < 48 for i in range(134)],
        "B": paired(68, 36, 16, 48),
        "C": paired(55, 28, 21, 48),
        "D": paired(80, 52, 20, 48),
    }
    return read_run(write_run(tmp_path_factory.mktemp("paper"), wins, logs=False))


def rows(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.as_json()["rows"]
    return found


def test_the_main_table_of_the_paper(paper: Run) -> None:
    found = {row["condition"][0]: row for row in rows(main_table(paper))}
    assert {name: row["won"] for name, row in found.items()} == PAPER
    assert found["D"]["success rate"]["share"] == pytest.approx(80 / 134)
    assert found["D"]["gain over A"]["points"] == pytest.approx(23.88, abs=0.01)
    assert [row["errors"] for row in found.values()] == [0, 0, 0, 0]


def test_the_mcnemar_test_of_rules_against_the_baseline(paper: Run) -> None:
    row = rows(pair_table(paper))[0]
    assert (row["first"], row["second"]) == ("A baseline", "B rules")
    assert (row["only first won"], row["only second won"]) == (16, 36)
    assert round(row["McNemar p"], 4) == 0.0078
    assert row["McNemar p"] < row["McNemar p, Holm"] <= 6 * row["McNemar p"]


def test_the_square_adds_up(paper: Run) -> None:
    table = square_table(paper)
    assert table is not None
    off, on, gain = rows(table)
    assert off["gain of rules"]["points"] == pytest.approx(100 * 20 / 134)
    assert gain["rules off"]["points"] == pytest.approx(100 * 7 / 134)
    both = gain["gain of rules"]
    assert both["points"] == pytest.approx(100 * (80 - 68 - 55 + 48) / 134)
    assert both["points"] == pytest.approx(
        on["gain of rules"]["points"] - off["gain of rules"]["points"]
    )
    assert both["low"] < both["points"] < both["high"]


def test_every_table_says_where_it_comes_from(paper: Run) -> None:
    report = build_report(paper)
    assert len(report.tables) >= 8
    for table in report.tables:
        assert LABEL in table.source and "generated_unseen" in table.source
        assert "commit abc1234" in table.source
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_types_sum_to_the_whole(paper: Run) -> None:
    found = rows(type_table(paper))
    assert sum(row["D full"]["won"] for row in found[:-1]) == 80 == found[-1]["D full"]["won"]
    assert sum(row["A baseline"]["n"] for row in found[:-1]) == 134


def test_errors_are_left_out_and_said(tmp_path: Path) -> None:
    """A lost three episodes to a bad key: its rate stands on the other seven, as do its pairs."""
    broken = {"failure_mode": "model_error", "error": "401"}
    gone = {"failure_mode": "infrastructure_error", "error": "java.lang"}
    wins = {"A": [False] * 3 + [True] * 7, "B": [True] * 10}
    lines = {("A", 0): broken, ("A", 1): broken, ("A", 2): gone}
    run = read_run(write_run(tmp_path, wins, lines=lines, logs=False))
    table = main_table(run)
    first = rows(table)[0]
    assert (first["played"], first["won"], first["errors"]) == (7, 7, 3)
    assert first["success rate"]["share"] == 1.0
    notes = " ".join(table.notes)
    assert "2 of 20 episodes ended in a model error" in notes
    assert "1 of 20 episodes ended in a infrastructure error" not in notes
    assert "1 of 20 episodes ended in an infrastructure error" in notes
    pair = rows(pair_table(run))[0]
    assert (pair["tasks"], pair["only second won"], pair["McNemar p"]) == (7, 0, 1.0)
    assert square_table(run) is None


def test_an_unfinished_run_is_reported_and_says_so(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, {"A": [True] * 6, "B": [True, False]}, logs=False))
    table = main_table(run)
    assert [row["not played"] for row in rows(table)] == [0, 4]
    assert any("not finished: 8 of 12" in note for note in table.notes)
    report = read_report(tmp_path).as_json()
    assert report["complete"] is False and (report["played"], report["planned"]) == (8, 12)
    assert "8 of 12 episodes" in report["source"]


def test_a_run_without_any_episode(tmp_path: Path) -> None:
    folder = write_run(tmp_path, {name: [True] * 2 for name in "ABCD"}, logs=False)
    (folder / "episodes.jsonl").write_text("")
    report = read_report(folder)
    assert rows(report.tables[0])[0]["success rate"] == {"share": None}
    assert "0 of 8" in report.as_markdown()


SCORES = {"A": [10, -100, 40, 60, 100, 8], "D": [30, 0, 70, 100, 100, 8]}


@pytest.fixture
def science(tmp_path: Path) -> Run:
    names = ["boil/1", "boil/2", "find-plant/1", "find-plant/2", "melt/1", "use-thermometer/3"]
    families = ["F3", "F3", "F1", "F1", "F3", "F2"]
    lines = {
        (condition, i): {
            "task": names[i], "type": families[i], "score": float(score),
            "env": "scienceworld",
            "failure_mode": None if score == 100 else
            "wrong_termination" if score < 0 else "timeout",
        }
        for condition, scores in SCORES.items() for i, score in enumerate(scores)
    }  # fmt: skip
    tasks = [
        {"id": name, "index": i, "type": families[i], "goal": f"goal {i}"}
        for i, name in enumerate(names)
    ]
    wins = {condition: [s == 100 for s in scores] for condition, scores in SCORES.items()}
    return read_run(
        write_run(tmp_path, wins, lines=lines, logs=False, env="scienceworld", split="test",
                  tasks=tasks)
    )  # fmt: skip


def test_scienceworld_is_judged_by_its_floored_score(science: Run) -> None:
    first, second = rows(main_table(science))
    assert first["score (floored)"]["value"] == pytest.approx(218 / 6)
    assert first["score (raw)"]["value"] == pytest.approx(118 / 6)
    assert first["score (floored)"]["low"] < 218 / 6 < first["score (floored)"]["high"]
    assert second["gain over A"]["value"] == pytest.approx((308 - 218) / 6)
    assert (first["won"], second["won"]) == (1, 2)


def test_scienceworld_by_family_and_task(science: Run) -> None:
    report = build_report(science).as_json()["tables"]
    families = {row[""]: row["A baseline"]["value"] for row in report["types"]["rows"]}
    assert families["F3"] == pytest.approx(110 / 3) and families["F1"] == pytest.approx(50)
    tasks = {row[""]: row["D full"]["value"] for row in report["tasks"]["rows"]}
    assert tasks["boil"] == 15 and tasks["find-plant"] == 85 and len(tasks) == 5
    pair = report["pairs"]["rows"][0]
    # Three of six differ, all upwards: 2 of the 2^3 sign patterns are as extreme.
    assert pair["Wilcoxon p"] == pytest.approx(0.25)
