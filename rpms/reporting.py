"""``rpms report`` and ``rpms compare``: run folders as tables in the terminal and as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table as Grid

from rpms.console import Console
from rpms.evals.comparison import Comparison, compare_runs, read_mapping
from rpms.evals.report import Report, read_report
from rpms.evals.report.files import write_report
from rpms.evals.run_files import read_run
from rpms.evals.tables import Cell, Table

SHORTEST_LABEL = 24
HEADING = 12
GAP = 3


def report(folder: str | Path) -> Report:
    """The report of a run folder: every table, ``as_json()`` and ``as_markdown()``."""
    return read_report(Path(folder))


def compare(
    folders: Sequence[str | Path],
    map: Mapping[str, str] | Sequence[str] = (),
    allow_differences: bool = False,
) -> Comparison:
    """Two or more runs side by side: ``tables``, ``differences``, ``as_json()``, ``as_markdown()``.

    Args:
        folders: run folders; the others are paired with the first.
        map: labels to be read as others, as a dictionary or as ``OLD=NEW``.
        allow_differences: go on where the protocols differ.
    """
    runs = [read_run(Path(folder)) for folder in folders]
    mapping = dict(map) if isinstance(map, Mapping) else read_mapping(map, runs)
    return compare_runs(runs, mapping, allow_differences)


def report_run(folder: Path, html: Path | None, as_json: bool) -> dict[str, Any]:
    """Write the report's files, and print its tables unless JSON is wanted instead."""
    made = report(folder)
    files = write_report(made, html)
    if not as_json:
        console = Console(highlight=False)
        print_tables(console, made.tables)
        _print_end(console, made, files)
    return made.as_json()


def print_comparison(comparison: Comparison) -> None:
    """What was compared and what was set differently, then the tables."""
    console = Console(highlight=False)
    width = max(map(len, comparison.names)) + 1
    for name, source in zip(comparison.names, comparison.sources, strict=True):
        console.print(f"[bold]{escape(f'{name}:'.ljust(width))}[/] {escape(source)}")
    console.print("\n[bold]What was set differently[/]")
    for line in comparison.differences or ["nothing that the manifests record"]:
        console.print(f"  {escape(line)}")
    console.print()
    print_tables(console, comparison.tables, with_source=False)


def print_tables(console: Console, tables: Iterable[Table], with_source: bool = True) -> None:
    """Tables in the terminal, each with what it was made from and its notes.

    The protocol is printed once, above the first table that has it.
    """
    protocol = ""
    for table in tables:
        if table.protocol and table.protocol != protocol:
            protocol = table.protocol
            console.print(f"[bold]Protocol[/] [dim]{escape(protocol)}[/]\n")
        console.print(f"[bold]{escape(table.title)}[/]")
        if with_source:
            console.print(f"[dim]{escape(table.source)}[/]")
        for grid in _grids(table, console.width):
            console.print(grid)
        for note in table.notes:
            console.print(f"[dim]{escape(note)}[/]")
        console.print()


def _grids(table: Table, width: int) -> Iterator[Grid]:
    """The table in as many parts as the terminal needs, each with the labels at its left."""
    widths = _widths(table, width)
    labels = list(range(table.labels))
    part: list[int] = []
    for number in range(table.labels, len(table.columns)):
        if part and sum(widths[i] + GAP for i in (*labels, *part, number)) > width:
            yield _grid(table, [*labels, *part], widths)
            part = []
        part.append(number)
    yield _grid(table, [*labels, *part], widths)


def _widths(table: Table, width: int) -> list[int]:
    """Headings may break between words and long labels anywhere, but figures never."""
    widths = []
    for number, name in enumerate(table.columns):
        cells = [len(_plain(row[number])) for row in table.rows]
        heading = [min(len(name), HEADING), *map(len, name.split())]
        widths.append(max([*cells, *heading], default=0))
    for number in sorted(range(table.labels), key=lambda i: -widths[i]):
        excess = sum(each + GAP for each in widths) - width
        widths[number] -= max(0, min(excess, widths[number] - SHORTEST_LABEL))
    return widths


def _grid(table: Table, columns: Sequence[int], widths: Sequence[int]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for number in columns:
        grid.add_column(
            escape(table.columns[number]),
            justify="left" if number < table.labels else "right",
            width=widths[number],
            overflow="fold",
        )
    for number, row in enumerate(table.rows, start=1):
        if table.total and number == len(table.rows):
            grid.add_section()
        grid.add_row(*(_text(row[i]) for i in columns))
    return grid


def _plain(cell: Cell) -> str:
    return f"{cell.text} {cell.note}".strip()


def _text(cell: Cell) -> str:
    note = f"[dim]{escape(cell.note)}[/]" if cell.note else ""
    return f"{escape(cell.text)} {note}".strip()


def _print_end(console: Console, report: Report, files: Iterable[Path]) -> None:
    if not report.run.complete:
        played = f"{report.run.done} of {report.run.planned}"
        console.print(f"[yellow]This run is not finished: {played} episodes are there.[/]")
    for file in files:
        console.print(f"written: {escape(str(file))}", soft_wrap=True)
