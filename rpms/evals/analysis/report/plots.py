"""The plot of the report: the primary figure of each condition, with its interval.

A row has a name, a scale and a value side by side, so that it fits any screen and no text covers
a dot. Colours are CSS classes, so that they follow the page's theme.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.measures import Interval, Mean, task_mean
from rpms.vocabulary.context import condition_title

if TYPE_CHECKING:
    from pandas import DataFrame

ROW, TICKS = 30, 22
MIDDLE = ROW / 2
SCALE = range(0, 101, 25)


def conditions_plot(data: Results) -> Markup:
    """One row per condition: the primary figure, on a scale of 0 to 100, and its interval."""
    scored = data.metric == "floored"
    unit = "" if scored else "%"
    rows = [_row(condition_title(name), primary(data, side), unit)
            for name, side in data.sides.items()]  # fmt: skip
    tick = Markup('<text x="{0}%" y="16" text-anchor="middle">{0}{1}</text>')
    ticks = [tick.format(value, unit) for value in SCALE]
    title = "Mean floored score" if scored else "Success rate"
    return Markup(
        '<div class="plot" role="img" aria-label="{} by condition, with 95% intervals">{}'
        "<span></span>{}<span></span></div>"
    ).format(title, Markup("").join(rows), _scale(TICKS, ticks))


def primary(data: Results, side: DataFrame) -> Mean:
    """The primary figure on a scale of 0 to 100, with its interval over tasks."""
    mean = task_mean(side, data.metric)
    if data.metric == "floored" or mean.value is None:
        return mean
    span = mean.interval and Interval(100 * mean.interval.low, 100 * mean.interval.high)
    return Mean(100 * mean.value, span)


def _row(name: str, figure: Mean, unit: str) -> Markup:
    marks = [_line(value, 0, value, ROW, "grid") for value in SCALE]
    value = ""
    if (at := figure.value) is not None:
        interval = figure.interval
        value = f"{at:.1f}{unit}"
        if interval:
            marks.append(_line(interval.low, MIDDLE, interval.high, MIDDLE, "whisker"))
        dot = Markup('<circle cx="{:.1f}%" cy="{}" r="6" class="dot"/>')
        marks.append(dot.format(at, MIDDLE))
    row = Markup('<span class="name">{}</span>{}<span class="value">{}</span>')
    return row.format(name, _scale(ROW, marks), value)


def _scale(height: int, marks: list[Markup]) -> Markup:
    return Markup('<svg height="{}">{}</svg>').format(height, Markup("").join(marks))


def _line(start: float, y1: float, end: float, y2: float, kind: str) -> Markup:
    line = Markup('<line x1="{:.1f}%" y1="{}" x2="{:.1f}%" y2="{}" class="{}"/>')
    return line.format(start, y1, end, y2, kind)
