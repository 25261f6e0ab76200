"""Tables as data, with their text as Markdown, JSON, CSV and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from rpms.evals.analysis.measures import Interval, Mean
from rpms.vocabulary.errors import RpmsError

if TYPE_CHECKING:
    import pandas as pd

NONE = "-"
LATEX = str.maketrans({
    **{sign: f"\\{sign}" for sign in "&%$#_{}"}, "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$",
})  # fmt: skip
"""Signs that TeX would read as commands, or that its text font does not have."""
MINUS = re.compile(r"(?<![\w.)-])-(?=\d)")
TIMES = re.compile(r"(?<=\d)x(?=\d)|(?<=\w )x(?= \w)")


@dataclass(frozen=True)
class Cell:
    """One figure: its text, its interval or count, its data.

    ``link`` is the filter of the page's list that finds the episodes behind it.
    """

    text: str
    note: str = ""
    value: Any = None
    link: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, repr=False)
class Table:
    """A table with its source and notes; a notebook shows it as a table.

    Attributes:
        id: a stable name, used in files and addresses.
        title: the heading.
        columns: headings; the first ``labels`` of them are text, the rest figures, but for
            ``remark``.
        rows: each with one cell per column.
        notes: explanations for the reader, e.g. how many episodes were left out and why.
        labels: the number of columns from the left that hold text.
        total: the last row is the total of the others.
        remark: the last column holds text, which may be long.
        source: model, split and commit in one line.
        protocol: the protocol card in one line (``evals/records/protocol_card.py``), so that a
            copied table still carries it.
        model: the model that acted, which stands in caption and CSV.
    """

    id: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    labels: int = 1
    total: bool = False
    remark: bool = False
    source: str = ""
    protocol: str = ""
    model: str = ""

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
        """A plain HTML table under its caption, with its notes."""
        notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in self.notes)
        body = self.as_text().to_html(index=False, border=0)
        return f"<h4>{escape(self.caption)}</h4>{body}{notes}"

    @property
    def caption(self) -> str:
        """The title and the model."""
        return f"{self.title}; model: {self.model}" if self.model else self.title

    def as_text(self) -> pd.DataFrame:
        """The cells as they are printed."""
        return frame(
            ({i: _joined(cell) for i, cell in enumerate(row)} for row in self.rows),
            [*range(len(self.columns))],
        ).set_axis(self.columns, axis=1)

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
        rows = [[*self.columns], *([_joined(cell) for cell in row] for row in self.rows)]
        body = [f"| {' | '.join(map(markdown_text, cells))} |" for cells in rows]
        body.insert(1, f"| {' | '.join(rules)} |")
        head = [f"## {markdown_text(self.caption)}"]
        if with_source:
            head += sources(self.source, self.protocol)
        parts = [*head, "\n".join(body), *map(markdown_text, self.notes)]
        return "\n\n".join(parts) + "\n"

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
        """The records as comma-separated values, with the model in the last column."""
        table = self.as_dataframe()
        text: str = table.assign(model=self.model).to_csv(index=False, lineterminator="\n")
        return text

    def as_latex(self, with_source: bool = True) -> str:
        """A booktabs table with its intervals, and its notes below; the rest are comments above."""
        kinds = "".join(
            r"p{0.25\linewidth}" if self.is_remark(i) else "l" if self.is_text(i) else "r"
            for i in range(len(self.columns))
        )
        style = self.as_text().map(latex_text).set_axis([*map(latex_text, self.columns)], axis=1)
        text: str = style.style.hide(axis="index").to_latex(
            hrules=True, column_format=kinds, position_float="centering",
            caption=latex_text(self.caption), label=f"tab:{self.id}",
        )  # fmt: skip
        notes = "".join(f"\\par\\footnotesize {latex_text(note)}\n" for note in self.notes)
        text = text.replace("\\end{table}", f"{notes}\\end{{table}}")
        return latex_comment(*((self.source, self.protocol) if with_source else ())) + text


def latex_text(text: str) -> str:
    """The text as TeX prints it, with the signs of minus and times."""
    escaped = " ".join(text.split()).translate(LATEX)
    return TIMES.sub(r"$\\times$", MINUS.sub("$-$", escaped))


def sources(source: str, protocol: str) -> list[str]:
    """Source and protocol as paragraphs of Markdown."""
    return [markdown_text(source), *([f"Protocol: {markdown_text(protocol)}"] if protocol else [])]


def latex_comment(*texts: str) -> str:
    """One comment line for each text that is not empty."""
    return "".join(f"% {' '.join(text.split())}\n" for text in texts if text)


def frame(rows: Iterable[dict[Any, Any]], columns: Sequence[str | int] = ()) -> pd.DataFrame:
    """Rows as a pandas table; pandas is not needed to run anything."""
    try:
        import pandas
    except ImportError as error:
        raise RpmsError("pandas is not installed: pip install -e '.[report]' in a clone") from error
    return pandas.DataFrame(list(rows), columns=list(columns) or None)


def label(text: str) -> Cell:
    return Cell(text)


def count(number: int) -> Cell:
    return Cell(f"{number:,}", value=int(number))


def counted(number: int, *link: tuple[str, str]) -> Cell:
    """The number of episodes, with the filter that finds them."""
    return Cell(f"{number:,}", value=int(number), link=link if number else ())


def mean_cell(mean: Mean, form: str = ".1f") -> Cell:
    """A mean with its interval."""
    return number(mean.value, form, mean.interval)


def share_cell(mean: Mean, of: str = "") -> Cell:
    """A share in percent with its interval."""
    return percent(mean.value, mean.interval, of)


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
