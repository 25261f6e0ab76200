"""The tables about rules kept, knowledge that was lacking, and memory across types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rpms.evals.report import Report, build_report, read_report
from rpms.evals.report.page import render_page
from rpms.evals.report.plots import plots_of
from rpms.evals.run_folder import read_run
from rpms.evals.tables import Table
from tests.evals.sample_runs import TYPES, write_run

NEW = {"lacking", "obedience", "obedience_steps", "transfer"}


def by_id(report: Report) -> dict[str, Table]:
    return {table.id: table for table in report.tables}


def rows(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.as_json()["rows"]
    return found


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Two episodes each: A was shown nothing, D ignored most of what it was shown."""
    lines: dict[tuple[str, int], dict[str, Any]] = {
        ("A", 0): {"obeyed": {"R-1": [4, 1, 0], "known action": [5, 5, 0]}, "lost_by": "missing",
                   "obeyed_by_step": {"1-5": [4, 1]},
                   "refused": {"missing": 3, "wrong": 0, "ignored": 0}},
        ("A", 1): {"obeyed": {"R-1": [0, 0, 7]}, "obeyed_by_step": {}, "lost_by": "nothing refused",
                   "refused": {"missing": 0, "wrong": 0, "ignored": 0}},
        ("D", 0): {"obeyed": {"R-1": [4, 3, 0]}, "obeyed_by_step": {"1-5": [2, 2], "51+": [2, 1]},
                   "refused": {"missing": 1, "wrong": 1, "ignored": 2}, "lost_by": "",
                   "memory_sources": {TYPES[0]: [2, 9], "any goal": [1, 3]}},
        ("D", 1): {"obeyed": {}, "obeyed_by_step": {}, "lost_by": "ignored",
                   "refused": {"missing": 0, "wrong": 1, "ignored": 3},
                   "memory_sources": {TYPES[0]: [4, 9]}},
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("counted")
    wins = {"A": [False, False], "D": [True, False]}
    return build_report(read_run(write_run(folder, wins, lines=lines)))


def test_rules_by_condition(counted: Report) -> None:
    table = by_id(counted)["obedience"]
    assert [row["rule"] for row in rows(table)] == ["R-1", "known action"]
    first = rows(table)[0]
    assert first["A baseline"]["share"] == 0.25 and first["D full"]["share"] == 0.75
    assert table.rows[0][1].note.startswith("of 4")
    assert rows(table)[1]["D full"]["share"] is None
    assert table.source == by_id(counted)["main"].source


def test_rules_by_step(counted: Report) -> None:
    found = {row["steps"]: row for row in rows(by_id(counted)["obedience_steps"])}
    assert list(found) == ["1-5", "51+"]
    assert found["51+"]["D full"]["share"] == 0.5 and found["51+"]["A baseline"]["share"] is None


def test_why_actions_and_episodes_failed(counted: Report) -> None:
    a, d = rows(by_id(counted)["lacking"])
    assert (a["actions refused"], d["actions refused"]) == (3, 8)
    assert (a["missing"]["share"], d["ignored"]["share"]) == (1.0, 0.625)
    assert (a["episodes lost"], d["episodes lost"]) == (2, 1)
    assert a["missing (episodes)"]["share"] == a["nothing refused"]["share"] == 0.5
    assert d["ignored (episodes)"]["share"] == 1.0


def test_memory_across_types(counted: Report) -> None:
    table = by_id(counted)["transfer"]
    first, general = rows(table)
    assert (first["condition"], general["learned from"]) == ("D full", "any goal")
    cells = [cell for name, cell in first.items() if isinstance(cell, dict)]
    assert [cell["value"] for cell in cells] == [100.0, 0.0]
    assert [cell["entries"] for cell in cells] == [2, 4]
    drawn = plots_of(counted.run)["transfer"]
    assert drawn.count('class="tile"') == 3 and "learned from" in drawn


def test_all_of_it_stands_on_the_page_and_in_the_files(counted: Report) -> None:
    page, text = render_page(counted), counted.as_markdown()
    for table in by_id(counted).values():
        assert f'id="table-{table.id}"' in page and f"## {table.title}" in text
    assert NEW | {"frontier"} <= set(counted.as_json()["tables"])


def test_a_run_of_an_earlier_version_has_none_of_these(tmp_path: Path) -> None:
    report = read_report(write_run(tmp_path, {"A": [True, False], "D": [True, True]}))
    assert not NEW & set(by_id(report)) and "frontier" in by_id(report)
    assert "transfer" not in plots_of(report.run)


@pytest.mark.engine
def test_a_real_run_has_all_of_them(real_run: Path) -> None:
    report = read_report(real_run)
    tables = by_id(report)
    assert NEW | {"frontier"} <= set(tables)
    refused = {row["condition"][0]: row for row in rows(tables["lacking"])}
    for name in report.run.conditions:
        told = sum(e.invalid_actions - e.format_errors for e in report.run.judged(name))
        assert refused[name]["actions refused"] == told
    # A baseline is shown neither rules nor memories: it can ignore nothing but the list of actions.
    assert refused["A"]["wrong"]["share"] in (0.0, None)
    judged = [e for name in "AB" for e in report.run.judged(name)]
    assert all(e.obeyed["known action"][0] == e.steps - e.format_errors for e in judged)
    assert {row["condition"][0] for row in rows(tables["transfer"])} == {"C", "D"}
