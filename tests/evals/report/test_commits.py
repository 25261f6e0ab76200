"""A run that went on with another commit is nowhere told as a run of the first alone."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rpms.commands.terminal_tables import print_tables
from rpms.evals.comparison import compare_runs
from rpms.evals.export import ATIF, export_run
from rpms.evals.mechanisms import mechanism_table
from rpms.evals.report import Report, build_report
from rpms.evals.report.page import render_page
from rpms.evals.run_files import Run, read_run
from tests.evals.sample_runs import write_run

BOTH = "commit abc1234, def5678"
SESSIONS = [
    {"started": "2030-01-02T03:04:05", "commit": "abc1234"},
    {"started": "2030-02-02T03:04:05", "commit": "def5678"},
]
LABELS = ("A", "B", "C", "D", "D scf=off", "D+verify", "round 1", "round 2")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Conditions for every table; the last task of each was played by the second commit."""
    played: dict[str, Any] = {"repeat": 1, "vetoes": {"E-1": 2}, "proposals": 3, "asked_again": 1,
                              "obeyed": {"E-1": [1, 2, 3]}, "foretold": {"E-1": [1, 2, 3, 4]},
                              "obeyed_by_step": {"1-5": [1, 2]}, "refused": {"rule": 1},
                              "memory_sources": {"heat": [1, 2]}, "cost_usd": 0.1}  # fmt: skip
    late = {**played, "started": "2030-02-02T03:04:06"}
    lines = {(label, number): late if number else played for label in LABELS for number in (0, 1)}
    wins = {label: [True, False] for label in LABELS}
    settings = {"trials": 1, "repeats": 2}
    return read_run(
        write_run(tmp_path / "run", wins, lines=lines, sessions=SESSIONS, settings=settings)
    )


@pytest.fixture
def report(run: Run) -> Report:
    return build_report(run)


def test_every_table_names_both(report: Report, run: Run) -> None:
    tables = [*report.tables, mechanism_table(run)]
    assert len({table.id for table in tables}) > 12
    for table in tables:
        assert BOTH in table.source and BOTH in table.as_markdown(), table.id


def test_the_terminal_the_page_and_json_name_both(report: Report) -> None:
    console = Console(width=400, file=StringIO(), record=True)
    print_tables(console, report.tables)
    assert console.export_text().count(BOTH) == len(report.tables)
    page = render_page(report)
    assert page.count("abc1234, def5678") >= len(report.tables)
    assert "<code>abc1234, def5678</code>" in page
    told = report.as_json()
    assert told["commit"] == "abc1234, def5678" and BOTH in told["source"]
    assert report.as_markdown().count(BOTH) == len(report.tables)


def test_a_comparison_names_both(run: Run, tmp_path: Path) -> None:
    other = read_run(write_run(tmp_path / "other", {label: [True, True] for label in LABELS},
                               settings={"trials": 1, "repeats": 2}))  # fmt: skip
    found = compare_runs([run, other], {}, allow_differences=True)
    assert BOTH in found.sources[0] and BOTH not in found.sources[1]
    assert any(line == "commit: abc1234, def5678 -> abc1234" for line in found.differences)
    assert all(BOTH in table.source for table in found.tables)
    assert BOTH in found.as_markdown() and BOTH in json.dumps(found.as_json())


def test_an_exported_episode_names_the_commit_that_played_it(run: Run, tmp_path: Path) -> None:
    export_run(run, ATIF, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    early = sum("abc1234" in line and "def5678" not in line for line in lines)
    late = sum("def5678" in line and "abc1234" not in line for line in lines)
    assert (early, late) == (len(LABELS), len(LABELS))
