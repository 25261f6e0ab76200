"""From a figure of a table to the very episodes behind it: named sets that the list can show.

A set is named by its table, row and column, so that an address still means the same cell after
more episodes have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from rpms.evals.records import JobKey
from rpms.evals.tables import Cell, Table


def set_link(table: Table, row: Sequence[Cell], column: int) -> str:
    """The address of the list with just these episodes; empty where nothing is behind a cell."""
    if not row[column].behind:
        return ""
    return f"#/episodes?{urlencode({'set': _name(table, row, column)})}"


def sets_of(tables: Iterable[Table], numbers: Mapping[JobKey, int]) -> dict[str, dict[str, Any]]:
    """Every set by its name: what it is, and the numbers of its episodes on the page."""
    return {
        _name(table, row, column): {
            "title": f"{table.title}: {', '.join(_labels(table, row, column))}",
            "of": [numbers[key] for key in row[column].behind],
        }
        for table, row, column in _linked(tables)
    }


def _linked(tables: Iterable[Table]) -> Iterator[tuple[Table, Sequence[Cell], int]]:
    for table in tables:
        for row in table.rows:
            yield from ((table, row, i) for i, cell in enumerate(row) if cell.behind)


def _labels(table: Table, row: Sequence[Cell], column: int) -> list[str]:
    return [*(cell.text for cell in row[: table.labels]), table.columns[column]]


def _name(table: Table, row: Sequence[Cell], column: int) -> str:
    return "/".join([table.id, *_labels(table, row, column)])
