"""The plot of the report: each condition's figure on its interval, as SVG.

Colours are classes, so that they follow the page's theme.
"""

from __future__ import annotations

from markupsafe import Markup

from rpms.evals.measures import mean, metric_of, rate
from rpms.evals.report.source import names
from rpms.evals.run_folder import Run

WIDTH, TOP, ROW = 720, 12, 30
LABELS, END = 190, 660
"""Where figures of 0 and of 100 lie; names stand before, values behind."""


def conditions_plot(run: Run) -> Markup:
    """One row per condition: the primary figure, on a scale of 0 to 100, and its interval."""
    scored = metric_of(run.manifest.env) == "score"
    bottom = TOP + ROW * len(run.conditions)
    parts = []
    for value in range(0, 101, 20):
        parts.append(_line(value, 8, value, bottom, "grid"))
        text = str(value) if scored else f"{value}%"
        parts.append(_text(_at(value), bottom + 18, text, "tick", "middle"))
    for number, name in enumerate(run.conditions):
        y, judged = TOP + ROW * (number + 0.5), run.judged(name)
        parts.append(_text(LABELS - 12, y + 4, names(name), "name", "end"))
        if not judged:
            continue
        if scored:
            score = mean([e.floored for e in judged])
            figure, interval, unit = score.value, score.interval, 1.0
        else:
            won = rate(judged)
            figure, interval, unit = won.share, won.interval, 100.0
        figure = (figure or 0.0) * unit
        if interval:
            low, high = interval.low * unit, interval.high * unit
            parts.append(_line(low, y, high, y, "whisker"))
        dot = Markup('<circle cx="{}" cy="{}" r="6" class="dot"/>')
        parts.append(dot.format(_at(figure), y))
        parts.append(_text(WIDTH - 8, y + 4, f"{figure:.1f}", "value", "end"))
    what = "Mean floored score" if scored else "Success rate"
    svg = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    title = f"{what} by condition, with 95% intervals"
    return svg.format(WIDTH, bottom + 28, title, Markup("").join(parts))


def _at(value: float) -> float:
    return round(LABELS + (END - LABELS) * value / 100, 1)


def _line(start: float, y1: float, end: float, y2: float, kind: str) -> Markup:
    """From one figure to another."""
    line = Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>')
    return line.format(_at(start), y1, _at(end), y2, kind)


def _text(x: float, y: float, words: str, kind: str, anchor: str) -> Markup:
    text = Markup('<text x="{}" y="{}" class="{}" text-anchor="{}">{}</text>')
    return text.format(x, y, kind, anchor, words)
