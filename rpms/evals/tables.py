"""Tables as data: made once, then written as text, Markdown, JSON or HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from rpms.evals.measures import Interval
from rpms.evals.records import Episode, JobKey

NONE = "-"


@dataclass(frozen=True)
class Cell:
    """One figure: as text, with its interval or count beside it, as data, and whose it is."""

    text: str
    note: str = ""
    value: Any = None
    behind: tuple[JobKey, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table that says where it comes from.

    Attributes:
        id: a stable name, used in files and addresses.
        title: what it shows.
        source: model, split and commit behind it.
        columns: headings; the first ``labels`` of them are text, the rest figures.
        rows: as many cells as columns each.
        notes: what a reader has to know, e.g. how many episodes were left out and why.
        labels: how many columns from the left hold text.
        total: the last row sums up the others.
        protocol: the rules of play behind it in one line (``evals/protocol_card.py``), so that a
            copied table still says them.
    """

    id: str
    title: str
    source: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    labels: int = 1
    total: bool = False
    protocol: str = ""

    def as_json(self) -> dict[str, Any]:
        """Rows as objects with raw values, for programs."""
        rows = [
            {
                name: cell.text if cell.value is None else cell.value
                for name, cell in zip(self.columns, row, strict=True)
            }
            for row in self.rows
        ]
        return {
            "title": self.title,
            "source": self.source,
            "protocol": self.protocol,
            "rows": rows,
            "notes": [*self.notes],
        }

    def as_markdown(self) -> str:
        """A GitHub table under a heading."""
        rules = ["---" if i < self.labels else "---:" for i in range(len(self.columns))]
        rows = [[_joined(cell) for cell in row] for row in self.rows]
        body = [_row(map(_escaped, cells)) for cells in ([*self.columns], *rows)]
        body.insert(1, _row(rules))
        notes = "".join(f"\n{_escaped(note)}\n" for note in self.notes)
        head = [f"## {_escaped(self.title)}", _escaped(self.source)]
        if self.protocol:
            head.append(f"Protocol: {_escaped(self.protocol)}")
        return "\n\n".join([*head, "\n".join(body)]) + f"\n{notes}"


def label(text: str) -> Cell:
    """A row's name."""
    return Cell(text)


def count(number: int) -> Cell:
    """A plain count."""
    return Cell(f"{number:,}", value=number)


def linked(cell: Cell, episodes: Iterable[Episode]) -> Cell:
    """A figure with the very episodes behind it, which a page can lead to."""
    return replace(cell, behind=tuple(episode.key for episode in episodes))


def counted(episodes: Sequence[Episode]) -> Cell:
    """How many episodes, and which."""
    return linked(count(len(episodes)), episodes)


def number(value: float | None, form: str = ".1f", interval: Interval | None = None) -> Cell:
    """A figure with its interval, or a dash where there is none."""
    if value is None:
        return Cell(NONE, value={"value": None})
    data = {"value": value, **(asdict(interval) if interval else {})}
    return Cell(format(value, form), bracket(interval, form), data)


def percent(share: float | None, interval: Interval | None = None, of: str = "") -> Cell:
    """A share in percent, with its interval or the count behind it."""
    if share is None:
        return Cell(NONE, value={"share": None})
    note = bracket(Interval(interval.low * 100, interval.high * 100)) if interval else ""
    data = {"share": share, **(asdict(interval) if interval else {})}
    return Cell(f"{share:.1%}", " ".join(filter(None, (of, note))), data)


def points(difference: float | None, interval: Interval | None = None) -> Cell:
    """A difference of two shares, in percentage points."""
    if difference is None:
        return Cell(NONE, value={"points": None})
    scaled = Interval(interval.low * 100, interval.high * 100) if interval else None
    data = {"points": difference * 100, **(asdict(scaled) if scaled else {})}
    return Cell(f"{_zero(difference * 100):+.1f}", bracket(scaled, "+.1f"), data)


def p_value(p: float) -> Cell:
    """A probability, to as many digits as tell something."""
    text = "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.3f}"
    return Cell(text, value=p)


def bracket(interval: Interval | None, form: str = ".1f") -> str:
    """``[51.2, 67.6]``, or nothing."""
    if interval is None:
        return ""
    return f"[{_zero(interval.low):{form}}, {_zero(interval.high):{form}}]"


def _zero(value: float) -> float:
    """No minus sign before a zero."""
    return 0.0 if abs(value) < 1e-9 else value


def _joined(cell: Cell) -> str:
    return f"{cell.text} {cell.note}".strip()


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Task names and error texts may hold anything; none of it is markup."""
    text = escape(" ".join(text.split()), quote=False)
    for sign in ("\\", "|", "`", "*", "]("):
        text = text.replace(sign, f"{sign[:-1]}\\{sign[-1]}")
    return text
