"""Prints tables that fit the terminal's width.

A table that is too wide first gets shorter headings, then a line below for columns that are the
same in every row, then labels of several lines. If it still does not fit, it is printed row by row,
one line for each figure. A figure or a name is never cut or broken, so it can be copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as Grid

from rpms.evals.analysis.tables import NONE, Cell, Table

HEADING = 12
"""A longer heading is broken between its words."""
GAP = 2


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables with their titles and notes."""
    for table in tables:
        console.print(f"[bold]{escape(table.title)}[/]\n")
        print_rows(console, table)
        if table.notes:
            console.print()
        for note in table.notes:
            console.print(f"[dim]{escape(note)}[/]")
        console.print()


def print_source(console: Console, source: str, protocol: str) -> None:
    """Print the source of the figures and the protocol of the run."""
    for name, text in (("Source", source), ("Protocol", protocol)):
        if text:
            console.print(f"[bold]{name}[/] [dim]{escape(text)}[/]\n")


def print_rows(console: Console, table: Table) -> None:
    """Print only the rows: as a grid if it fits, else one below the other."""
    widths = fitting(table, console.width)
    if widths is None:
        headings = table.columns[table.labels :]
        width = max(map(len, headings), default=0)
        for row in table.rows:
            name = ", ".join(cell.text for cell in row[: table.labels] if cell.text)
            figures = zip(headings, row[table.labels :], strict=True)
            lines = {head: _text(cell) for head, cell in figures if cell.text not in (NONE, "")}
            print_stacked(console, name, lines, width)
        return
    console.print(_grid(table, widths))
    if constant := [i for i in range(len(table.columns)) if i not in widths]:
        same = "; ".join(f"{table.columns[i]} {_plain(table.rows[0][i])}" for i in constant)
        console.print(f"\n[dim]In every row: {escape(same)}.[/]")


def fitting(table: Table, width: int) -> dict[int, int] | None:
    """The width of each shown column; None if the columns do not fit."""
    widths: dict[int, int] = {}

    def excess() -> int:
        return sum(widths.values()) + GAP * (len(widths) - 1) - width

    for heading in (HEADING, 0):
        widths = {i: _width(table, i, heading) for i in range(len(table.columns))}
        if excess() <= 0:
            return widths
    # Drop constant columns first, from the right, and only as many as necessary.
    for i in sorted(widths, reverse=True):
        if excess() > 0 and i >= table.labels and _is_constant(table, i):
            del widths[i]
    for i in range(table.labels):
        longest = max(map(len, " ".join(_column(table, i)).split()), default=0)
        widths[i] = min(widths[i], max(longest, widths[i] - max(0, excess())))
    return widths if excess() <= 0 else None


def _is_constant(table: Table, number: int) -> bool:
    """True for a column of equal plain counts; a column with results is always shown."""
    values = {(row[number].text, row[number].note) for row in table.rows}
    return len(table.rows) > 1 and len(values) == 1 and not next(iter(values))[1]


def _column(table: Table, number: int) -> list[str]:
    return [table.columns[number], *(_plain(row[number]) for row in table.rows)]


def _width(table: Table, number: int, heading: int) -> int:
    name, *cells = _column(table, number)
    return max(min(len(name), heading), *map(len, [*name.split(), *cells, ""]))


def _grid(table: Table, widths: Mapping[int, int]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, GAP - 1, 0, 0))
    for i, width in widths.items():
        justify = "left" if table.is_text(i) else "right"
        grid.add_column(escape(table.columns[i]), justify=justify, width=width)  # type: ignore[arg-type]
    for number, row in enumerate(table.rows, start=1):
        if table.total and number == len(table.rows):
            grid.add_section()
        grid.add_row(*(_text(row[i]) for i in widths))
    return grid


def print_stacked(console: Console, name: str, lines: Mapping[str, str], width: int = 0) -> None:
    """Print a name, and below it one line for each heading and its text in Rich's markup."""
    console.print(f"[bold]{escape(name)}[/]", soft_wrap=True)
    grid = Grid.grid(padding=(0, GAP, 0, 0))
    grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    for heading, text in lines.items():
        grid.add_row(escape(heading), text)
    if lines:
        console.print(Padding(grid, (0, 0, 0, GAP), expand=False))


def _plain(cell: Cell) -> str:
    return f"{cell.text} {cell.note}".strip()


def _text(cell: Cell) -> str:
    note = f"[dim]{escape(cell.note)}[/]" if cell.note else ""
    return f"{escape(cell.text)} {note}".rstrip()
