"""Tables as data, with their text as Markdown, JSON, CSV and LaTeX."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from rpms.evals.analysis.measures import Interval
from rpms.evals.records.schema import Episode, JobKey
from rpms.vocabulary.errors import RpmsError

if TYPE_CHECKING:
    import pandas as pd

NONE = "-"
LATEX = str.maketrans({
    **{sign: f"\\{sign}" for sign in "&%$#_{}"}, "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
})  # fmt: skip
"""Characters that TeX reads as commands or prints as other characters."""
MINUS = re.compile(r"(?<![\w-])-(?=\d)|(?<=\w )-(?= \w)")
"""A minus before a number or between two words, which TeX would print as a hyphen."""


@dataclass(frozen=True)
class Cell:
    """One figure: its text, its interval or count, its data, and the episodes behind it.

    ``steps`` is the filter of the page's list that finds the steps behind it, if it counts steps.
    """

    text: str
    note: str = ""
    value: Any = None
    behind: tuple[JobKey, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, repr=False)
class Table:
    """A table with its source and notes; a notebook shows it as a table.

    Attributes:
        id: a stable name, used in files and addresses.
        title: the heading.
        source: model, split and commit in one line.
        columns: headings; the first ``labels`` of them are text, the rest figures, but for
            ``remark``.
        rows: each with one cell per column.
        notes: explanations for the reader, e.g. how many episodes were left out and why.
        labels: the number of columns from the left that hold text.
        total: the last row is the total of the others.
        remark: the last column holds text, which may be long.
        protocol: the protocol card in one line (``evals/records/protocol_card.py``), so that a
            copied table still carries it.
    """

    id: str
    title: str
    source: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    labels: int = 1
    total: bool = False
    remark: bool = False
    protocol: str = ""

    def __repr__(self) -> str:
        return f"<table {self.id}: {self.title}, {len(self.rows)} rows>"

    def is_remark(self, column: int) -> bool:
        """True for a last column of text."""
        return self.remark and column == len(self.columns) - 1

    def is_text(self, column: int) -> bool:
        """True for a column of text, which is aligned to the left."""
        return column < self.labels or self.is_remark(column)

    def _repr_html_(self) -> str:
        return self.as_html()

    def as_html(self) -> str:
        """A plain HTML table under its title, with its notes."""
        kinds = ["left" if self.is_text(i) else "right" for i in range(len(self.columns))]
        rows = [[*self.columns], *([_joined(cell) for cell in row] for row in self.rows)]
        body = "".join(_html_row(row, kinds, "td" if i else "th") for i, row in enumerate(rows))
        notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in self.notes)
        return f"<h4>{escape(self.title)}</h4><table>{body}</table>{notes}"

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

    def as_markdown(self, with_source: bool = True) -> str:
        """A GitHub table under a heading, with or without its source."""
        rules = ["---" if self.is_text(i) else "---:" for i in range(len(self.columns))]
        rows = [[_joined(cell) for cell in row] for row in self.rows]
        body = [_row(map(markdown_text, cells)) for cells in ([*self.columns], *rows)]
        body.insert(1, _row(rules))
        notes = "".join(f"\n{markdown_text(note)}\n" for note in self.notes)
        head = [f"## {markdown_text(self.title)}"]
        if with_source:
            head += sources(self.source, self.protocol)
        return "\n\n".join([*head, "\n".join(body)]) + f"\n{notes}"

    def as_records(self) -> list[dict[str, Any]]:
        """Rows of plain values: an interval is two columns, such as ``success rate low``."""
        rows = [list(map(_plain_values, row)) for row in self.rows]
        heads = [
            (i, name, part)
            for i, name in enumerate(self.columns)
            for part in dict.fromkeys(part for row in rows for part in row[i])
        ]
        return [
            {f"{name} {part}".strip() or "row": row[i].get(part) for i, name, part in heads}
            for row in rows
        ]

    def as_dataframe(self) -> pd.DataFrame:
        """The records as a pandas table."""
        return frame(self.as_records())

    def as_csv(self) -> str:
        """The records as comma-separated values under one line of names."""
        records, text = self.as_records(), StringIO()
        writer = csv.DictWriter(text, [*records[0]] if records else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def as_latex(self, with_source: bool = True) -> str:
        """A booktabs table with its intervals; source, protocol and notes are comments above it.

        A count that is the same in every row is in the caption instead of a column.
        """
        same = [i for i in range(self.labels, len(self.columns)) if self._is_same_count(i)]
        kept = [i for i in range(len(self.columns)) if i not in same]
        rows = [_latex_row(_joined(row[i]) for i in kept) for row in self.rows]
        if self.total:
            rows.insert(-1, r"\midrule")
        origin = (self.source, self.protocol) if with_source else ()
        kinds = "".join(
            r"p{0.25\linewidth}" if self.is_remark(i) else "l" if self.is_text(i) else "r"
            for i in kept
        )
        counts = ", ".join(f"{self.columns[i]} {self.rows[0][i].text}" for i in same)
        caption = f"{self.title} (in every row: {counts})" if counts else self.title
        return latex_comment(*origin, *self.notes) + "\n".join([
            r"\begin{table}", r"\centering", rf"\caption{{{_latex(caption)}}}",
            rf"\label{{tab:{self.id}}}", rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule", _latex_row(self.columns[i] for i in kept), r"\midrule", *rows,
            r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
        ])  # fmt: skip

    def _is_same_count(self, column: int) -> bool:
        values = [row[column].value for row in self.rows]
        return len(values) > 1 and isinstance(values[0], int) and len({*map(repr, values)}) == 1


def _html_row(cells: Iterable[str], kinds: Iterable[str], tag: str) -> str:
    """A row whose cells are aligned to the left or right."""
    pairs = zip(cells, kinds, strict=True)
    return f"<tr>{''.join(_html_cell(tag, kind, text) for text, kind in pairs)}</tr>"


def _html_cell(tag: str, kind: str, text: str) -> str:
    return f'<{tag} style="text-align: {kind}">{escape(text)}</{tag}>'


def sources(source: str, protocol: str) -> list[str]:
    """Source and protocol as paragraphs of Markdown."""
    return [markdown_text(source), *([f"Protocol: {markdown_text(protocol)}"] if protocol else [])]


def latex_comment(*texts: str) -> str:
    """One comment line for each text that is not empty."""
    return "".join(f"% {' '.join(text.split())}\n" for text in texts if text)


def frame(rows: Iterable[dict[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a pandas table; pandas is not needed to run anything."""
    try:
        import pandas
    except ImportError as error:
        raise RpmsError(
            "pandas tables need pandas, which is not installed: pip install 'rpms[analysis]'"
        ) from error
    return pandas.DataFrame(list(rows), columns=list(columns) or None)


def label(text: str) -> Cell:
    return Cell(text)


def count(number: int) -> Cell:
    return Cell(f"{number:,}", value=number)


def linked(cell: Cell, episodes: Iterable[Episode]) -> Cell:
    """A figure with the episodes behind it, to which the page links."""
    return replace(cell, behind=tuple(episode.key for episode in episodes))


def counted(episodes: Sequence[Episode]) -> Cell:
    """The number of episodes, linked to them."""
    return linked(count(len(episodes)), episodes)


def number(value: float | None, form: str = ".1f", interval: Interval | None = None) -> Cell:
    """A figure with its interval; a dash for None."""
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


def part_of(part: int, whole: int) -> Cell:
    """A share in percent, with the count behind it."""
    return percent(part / whole if whole else None, of=f"{part:,}")


def points(difference: float | None, interval: Interval | None = None) -> Cell:
    """A difference of two shares, in percentage points."""
    if difference is None:
        return Cell(NONE, value={"points": None})
    scaled = Interval(interval.low * 100, interval.high * 100) if interval else None
    data = {"points": difference * 100, **(asdict(scaled) if scaled else {})}
    return Cell(f"{_zero(difference * 100):+.1f}", bracket(scaled, "+.1f"), data)


def p_value(p: float) -> Cell:
    """A p-value with its significant digits."""
    text = "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.1 else f"{p:.3f}"
    return Cell(text, value=p)


def bracket(interval: Interval | None, form: str = ".1f") -> str:
    """``[51.2, 67.6]``; empty without an interval."""
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


def markdown_text(text: str) -> str:
    """The text with all Markdown and HTML escaped."""
    text = escape(" ".join(text.split()), quote=False)
    for sign in ("\\", "|", "`", "*", "]("):
        text = text.replace(sign, f"{sign[:-1]}\\{sign[-1]}")
    return text


def _plain_values(cell: Cell) -> dict[str, Any]:
    """The figure itself under the empty name, and its interval and counts by name."""
    if cell.value is None:
        return {"": None if cell.text in (NONE, "") else cell.text}
    if not isinstance(cell.value, dict):
        return {"": cell.value}
    (_, figure), *rest = cell.value.items()
    return {"": figure, **dict(rest)}


def _latex(text: str) -> str:
    return MINUS.sub("$-$", " ".join(text.split()).translate(LATEX))


def _latex_row(cells: Iterable[str]) -> str:
    """TeX would take a bracket at the start of a row for an argument of the previous one."""
    row = " & ".join(map(_latex, cells))
    return rf"{'{}' * row.startswith(('[', '*'))}{row} \\"
