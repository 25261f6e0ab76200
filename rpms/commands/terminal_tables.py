"""Tables in the terminal, each in one piece however narrow the window is.

A table that is too wide first gets shorter headings, then a line below for what is the same in
every row, then labels of several lines. What does not fit even so is told row by row, a line for
each figure. A figure or a name is never cut and never broken, so that all can be copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as Grid

from rpms.evals.tables import NONE, Cell, Table

HEADING = 12
"""A longer heading may break between its words."""
GAP = 2
SHORT = 12
"""Figures up to this length stand under each other by their last digit."""


class Layout(NamedTuple):
    """Which columns are shown, and how wide each column of the table is."""

    columns: list[int]
    widths: list[int]

    @property
    def width(self) -> int:
        """How wide the whole is."""
        return sum(self.widths[i] for i in self.columns) + GAP * (len(self.columns) - 1)


def print_tables(console: Console, tables: Iterable[Table], with_source: bool = True) -> None:
    """Tables with what they were made from and their notes.

    The protocol is printed once, above the first table that has it.
    """
    protocol = ""
    for table in tables:
        if table.protocol and table.protocol != protocol:
            protocol = table.protocol
            console.print(f"[bold]Protocol[/] [dim]{escape(protocol)}[/]\n")
        console.print(f"[bold]{escape(table.title)}[/]")
        if with_source and table.source:
            console.print(f"[dim]{escape(table.source)}[/]")
        console.print()
        print_rows(console, table)
        if table.notes:
            console.print()
        for note in table.notes:
            console.print(f"[dim]{escape(note)}[/]")
        console.print()


def print_rows(console: Console, table: Table) -> None:
    """The rows alone, side by side if they fit and else one below the other."""
    layout = fitting(table, console.width)
    if layout is None:
        _print_stacked(console, table)
        return
    console.print(_grid(table, layout))
    if told := [i for i in range(len(table.columns)) if i not in layout.columns]:
        same = "; ".join(f"{table.columns[i]} {_plain(table.rows[0][i])}" for i in told)
        console.print(f"\n[dim]In every row: {escape(same)}.[/]")


def fitting(table: Table, width: int) -> Layout | None:
    """The first layout that is narrow enough; none if no layout is."""
    everything = [*range(len(table.columns))]
    labels = everything[: table.labels]
    same = [i for i in everything[table.labels :] if _is_constant(table, i)]
    # Columns that say the same everywhere go first, from the right, and no more than need be.
    shown = [[i for i in everything if i not in same[n:]] for n in range(len(same), -1, -1)]
    for columns, heading in product(shown, (HEADING, 0)):
        layout = Layout(columns, [_width(table, i, heading) for i in everything])
        if layout.width <= width:
            return layout
    least = {i: max(map(len, " ".join(_column(table, i)).split())) for i in labels}
    while layout.width > width and (wide := [i for i in labels if layout.widths[i] > least[i]]):
        layout.widths[max(wide, key=lambda i: layout.widths[i])] -= 1
    return layout if layout.width <= width else None


def _is_constant(table: Table, number: int) -> bool:
    """Whether a column of plain counts says the same in every row; a result is always shown."""
    said = {(row[number].text, row[number].note) for row in table.rows}
    return len(table.rows) > 1 and len(said) == 1 and not next(iter(said))[1]


def _column(table: Table, number: int) -> list[str]:
    return [table.columns[number], *(_plain(row[number]) for row in table.rows)]


def _width(table: Table, number: int, heading: int) -> int:
    name, *cells = _column(table, number)
    return max(min(len(name), heading), *map(len, [*name.split(), *cells, ""]))


def _grid(table: Table, layout: Layout) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, GAP - 1, 0, 0))
    for i in layout.columns:
        justify = "left" if i < table.labels else "right"
        grid.add_column(escape(table.columns[i]), justify=justify, width=layout.widths[i])  # type: ignore[arg-type]
    for number, row in enumerate(table.rows, start=1):
        if table.total and number == len(table.rows):
            grid.add_section()
        grid.add_row(*(_text(row[i]) for i in layout.columns))
    return grid


def _print_stacked(console: Console, table: Table) -> None:
    """Row by row; what has no figure is left out."""
    headings = table.columns[table.labels :]
    short = [len(cell.text) for row in table.rows for cell in row[table.labels :]]
    digits = max((size for size in short if size <= SHORT), default=0)
    for row in table.rows:
        name = ", ".join(cell.text for cell in row[: table.labels] if cell.text)
        told = zip(headings, row[table.labels :], strict=True)
        shown = {head: _text(cell, digits) for head, cell in told if cell.text not in (NONE, "")}
        print_stacked(console, name, shown, max(map(len, headings), default=0))


def print_stacked(console: Console, name: str, told: Mapping[str, str], width: int = 0) -> None:
    """A name, and below it a line for each thing that is told of it, in Rich's markup."""
    console.print(f"[bold]{escape(name)}[/]", soft_wrap=True)
    grid = Grid.grid(padding=(0, GAP, 0, 0))
    grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    for heading, text in told.items():
        grid.add_row(escape(heading), text)
    if told:
        console.print(Padding(grid, (0, 0, 0, GAP), expand=False))


def _plain(cell: Cell) -> str:
    return f"{cell.text} {cell.note}".strip()


def _text(cell: Cell, digits: int = 0) -> str:
    note = f"[dim]{escape(cell.note)}[/]" if cell.note else ""
    return f"{escape(cell.text.rjust(digits))} {note}".rstrip()
