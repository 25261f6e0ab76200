"""Tables in the terminal: one piece at any width, and nothing cut."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from rpms.commands.terminal_tables import fitting, print_rows
from rpms.evals.analysis.report import read_report
from rpms.evals.analysis.tables import Cell, Table, count, label
from tests.command_line import Rpms
from tests.evals.sample_runs import write_run

WIDE = {
    "A": [False] * 6, "B": [True] * 6, "C": [False] * 6, "D": [True] * 6, "D scf=off": [True] * 6,
    "E control (random)": [True] * 6,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run", WIDE)


def printed(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    print_rows(Console(file=out, width=width, highlight=False), table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def table(*rows: tuple[str, ...], labels: int = 1) -> Table:
    heads, *body = rows
    return Table("t", "t", heads, [[Cell(text) for text in row] for row in body], labels=labels)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_table_of_a_report_is_one_piece(folder: Path, width: int) -> None:
    """No line is too long, every figure is whole, and no heading comes twice above a rule."""
    for each in read_report(folder).tables:
        lines = printed(each, width)
        assert max(map(len, lines)) <= width
        assert sum(line.startswith("──") for line in lines) <= 1
        shown = "\n".join(lines)
        for row in each.rows:
            for cell in row[each.labels :]:
                figure = f"{cell.text} {cell.note}".strip()
                assert figure in shown or figure == "-", (each.id, figure)


def test_the_report_keeps_to_80_columns_where_nobody_says_how_wide(
    rpms: Rpms, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = rpms("report", folder).out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("written: ")) <= 80
    assert not any("…" in line for line in lines)


def test_what_fits_stays_side_by_side() -> None:
    assert printed(table(("name", "n"), ("one", "1"), ("two", "22")), 80) == [
        "name   n", "────────", "one    1", "two   22",
    ]  # fmt: skip


def test_a_column_that_is_the_same_everywhere_becomes_a_line() -> None:
    wide = table(("a longish name", "n", "lost"), ("one", "1", "0"), ("two of them, 2", "22", "0"))
    assert printed(wide, 21)[-2:] == ["", "In every row: lost 0."]
    assert "lost" in printed(wide, 24)[0]
    # A result is never told below.
    same = Cell("50.0%", "[25.4, 74.6]")
    results = Table("t", "t", ["", "A", "B"], [[label(x), same, count(1)] for x in "xy"])
    assert [*(fitting(results, 21) or ())] == [0, 1]


def test_labels_break_between_words_before_rows_are_told_one_by_one() -> None:
    wide = table(("condition", "won"), ("E control (random)", "12"), ("A baseline", "3"))
    assert printed(wide, 16)[2:] == ["E control     12", "(random)", "A baseline     3"]
    assert printed(wide, 12)[:3] == ["E control (random)", "  won  12", "A baseline"]
    # A long name is never broken.
    name = f"pick_two_obj_and_place-{'Apple' * 20}/trial_T2019"
    wide = table(("condition", "task", "first"), ("A", name, "won"), ("B", "x", "-"), labels=2)
    assert printed(wide, 80) == [f"A, {name}", "  first  won", "B, x"]
