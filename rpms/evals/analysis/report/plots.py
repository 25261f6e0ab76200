"""The plot of the report: the primary figure of each condition, with its interval.

A row has a name, a scale and a value side by side, so that it fits any screen and no text covers
a dot. Colours are CSS classes, so that they follow the page's theme.
"""

from __future__ import annotations

from markupsafe import Markup

from rpms.evals.analysis.measures import Interval, metric_of, rate, task_mean
from rpms.evals.records.run_folder import Run
from rpms.vocabulary.context import condition_title

ROW, TICKS = 30, 22
MIDDLE = ROW / 2
SCALE = range(0, 101, 25)


def conditions_plot(run: Run) -> Markup:
    """One row per condition: the primary figure, on a scale of 0 to 100, and its interval."""
    scored = metric_of(run.manifest.env) == "score"
    unit = "" if scored else "%"
    rows = [
        _row(condition_title(name), _figure(run, name, scored), unit) for name in run.conditions
    ]
    tick = Markup('<text x="{0}%" y="16" text-anchor="middle">{0}{1}</text>')
    ticks = [tick.format(value, unit) for value in SCALE]
    title = "Mean floored score" if scored else "Success rate"
    return Markup(
        '<div class="plot" role="img" aria-label="{} by condition, with 95% intervals">{}'
        "<span></span>{}<span></span></div>"
    ).format(title, Markup("").join(rows), _scale(TICKS, ticks))


def _figure(run: Run, condition: str, scored: bool) -> tuple[float, Interval | None] | None:
    """The figure on a scale of 0 to 100; None for a condition without decided episodes."""
    judged = run.judged(condition)
    if not judged:
        return None
    if scored:
        score = task_mean(judged, lambda e: e.floored)
        return score.value or 0.0, score.interval
    won = rate(judged)
    span = won.interval and Interval(100 * won.interval.low, 100 * won.interval.high)
    return 100 * (won.share or 0.0), span


def _row(name: str, figure: tuple[float, Interval | None] | None, unit: str) -> Markup:
    marks = [_line(value, 0, value, ROW, "grid") for value in SCALE]
    value = ""
    if figure:
        at, interval = figure
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
