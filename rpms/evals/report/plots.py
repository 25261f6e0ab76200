"""The plots of the report, each beside the table it draws: small drawings as SVG text.

Colours are classes, so that they follow the page's theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from rpms.evals.measures import Metric, by_task, groups, mean, merit, metric_of, rate, shared_tasks
from rpms.evals.records import Episode
from rpms.evals.report.ablations import round_of, varied
from rpms.evals.report.results import SQUARE
from rpms.evals.report.source import names, short_type
from rpms.evals.run_folder import Run

WIDTH = 720
ROW = 30
COLOURS = 8
LABELS = 190
OUTCOMES = {
    "": "won", "timeout": "timeout", "wrong_termination": "wrong termination", "format": "format",
    "model_error": "model error", "infrastructure_error": "infrastructure error",
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """A figure to draw: its value, its interval, and what to say about it."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    title: str = ""


@dataclass(frozen=True)
class Scale:
    """From figures to the x (or y) of the drawing."""

    start: float
    end: float
    top: float = 100.0

    def __call__(self, value: float) -> float:
        """Where a figure lies."""
        return round(self.start + (self.end - self.start) * min(value, self.top) / self.top, 1)


def plots_of(run: Run) -> dict[str, Markup]:
    """Drawings by the id of their table."""
    metric = metric_of(run.manifest.env)
    plots = {"main": conditions_plot(run, metric), "types": types_plot(run, metric)}
    plots["failures"] = outcomes_plot(run)
    if square := square_plot(run, metric):
        plots["square"] = square
    if curve := curve_plot(run, metric):
        plots["memory_file"] = curve
    return plots


def mark_of(name: str, episodes: Sequence[Episode], metric: Metric) -> Mark:
    """The primary figure on a scale of 0 to 100."""
    if metric == "score":
        score = mean([e.floored for e in episodes])
        value, interval, scale = score.value, score.interval, 1.0
    else:
        won = rate(episodes)
        value, interval, scale = won.share, won.interval, 100.0
    if value is None:
        return Mark(name, None)
    title = f"{name}: {value * scale:.1f}"
    if interval is None:
        return Mark(name, value * scale, title=title)
    low, high = interval.low * scale, interval.high * scale
    return Mark(name, value * scale, low, high, f"{title} [{low:.1f}, {high:.1f}]")


def conditions_plot(run: Run, metric: Metric) -> Markup:
    """One row per condition: the figure and its interval."""
    marks = [mark_of(names(name), run.judged(name), metric) for name in run.conditions]
    bottom = 12 + ROW * len(marks)
    scale = Scale(LABELS, WIDTH - 60)
    parts = grid(scale, bottom, _unit(metric))
    for number, mark in enumerate(marks):
        y = 12 + ROW * (number + 0.5)
        parts.append(text(LABELS - 12, y + 4, mark.name, "name", "end"))
        parts += _whisker(mark, scale, y, f"c{number % COLOURS}")
        if mark.value is not None:
            parts.append(text(WIDTH - 8, y + 4, f"{mark.value:.1f}", "value", "end"))
    return drawing(bottom + 28, f"{_what(metric)} by condition, with 95% intervals", parts)


def types_plot(run: Run, metric: Metric) -> Markup:
    """Types down, one dot per condition."""
    kinds, conditions = groups(run), run.conditions
    step = max(ROW, 9 * len(conditions) + 8)
    bottom = 12 + step * len(kinds)
    scale = Scale(LABELS, WIDTH - 60)
    parts = grid(scale, bottom, _unit(metric))
    for number, kind in enumerate(kinds):
        top = 12 + step * number
        parts.append(text(LABELS - 12, top + step / 2 + 4, short_type(run, kind), "name", "end"))
        if number:
            parts.append(line(8, top, WIDTH - 8, top, "rule"))
        for place, name in enumerate(conditions):
            chosen = [e for e in run.judged(name) if e.type == kind]
            mark = mark_of(f"{names(name)}, {short_type(run, kind)}", chosen, metric)
            y = top + step * (place + 1) / (len(conditions) + 1)
            parts += _whisker(mark, scale, y, f"c{place % COLOURS}", 4)
    labels = [names(name) for name in conditions]
    classes = [f"dot c{i % COLOURS}" for i in range(len(conditions))]
    parts += legend(labels, classes, bottom + 42)
    height = bottom + 32 + 20 * legend_rows(labels)
    return drawing(height, f"{_what(metric)} by type and condition", parts)


def square_plot(run: Run, metric: Metric) -> Markup | None:
    """Memory off and on, a line each for rules off and on; parallel means no interaction."""
    if not set(SQUARE) <= set(run.conditions):
        return None
    sides = {name: by_task(run.judged(name)) for name in SQUARE}
    tasks = shared_tasks(*sides.values())
    if not tasks:
        return None
    marks = {
        name: mark_of(names(name), [side[task] for task in tasks], metric)
        for name, side in sides.items()
    }
    a, b, c, d = (sum(merit(sides[n][t], metric) for t in tasks) / len(tasks) for n in SQUARE)
    factor = 1.0 if metric == "score" else 100.0
    scale = Scale(232, 16)
    left, right = 230.0, 470.0
    parts = []
    for value in (0, 25, 50, 75, 100):
        parts.append(line(130, scale(value), 570, scale(value), "grid"))
        parts.append(text(120, scale(value) + 4, f"{value}{_unit(metric)}", "tick", "end"))
    expected = max(0.0, (b + c - a) * factor)
    parts.append(line(left, scale(b * factor), right, scale(expected), "expected"))
    for colour, (off, on) in (("c0", "AC"), ("c1", "BD")):
        start, end = marks[off].value or 0.0, marks[on].value or 0.0
        parts.append(line(left, scale(start), right, scale(end), f"stroke {colour}"))
        parts += _upright(marks[off], scale, left, colour)
        parts += _upright(marks[on], scale, right, colour)
    near = [(f"{n} {v * factor:.1f}", v * factor) for n, v in (("A", a), ("B", b))]
    far = [(f"C {c * factor:.1f}, rules off", c * factor), ("sum of both alone", expected)]
    far.append((f"D {d * factor:.1f}, rules on", d * factor))
    parts += _labels(near, scale, left - 14, "end") + _labels(far, scale, right + 14, "start")
    parts.append(text(left, 254, "memory off", "name", "middle"))
    parts.append(text(right, 254, "memory on", "name", "middle"))
    return drawing(266, f"Rules and memory: {_what(metric).lower()} in the four conditions", parts)


def outcomes_plot(run: Run) -> Markup:
    """Every condition's episodes by how they ended, as one bar."""
    bottom = 12 + ROW * len(run.conditions)
    scale = Scale(LABELS, WIDTH - 60, float(max(1, len(run.manifest.tasks))))
    parts = []
    for number, name in enumerate(run.conditions):
        y, x = 12 + ROW * number, float(LABELS)
        parts.append(text(LABELS - 12, y + 19, names(name), "name", "end"))
        for mode, title in OUTCOMES.items():
            n = sum((e.failure_mode or "") == mode for e in run.played(name))
            width = scale(n) - LABELS
            if n:
                words = f"{names(name)}: {title} {n}"
                parts.append(bar(x, y + 7, width, f"part {mode or 'won'}", words))
            x += width
    kinds = [f"part {mode or 'won'}" for mode in OUTCOMES]
    parts += legend(list(OUTCOMES.values()), kinds, bottom + 26)
    height = bottom + 18 + 20 * legend_rows(list(OUTCOMES.values()))
    return drawing(height, "How episodes ended, by condition", parts)


def curve_plot(run: Run, metric: Metric) -> Markup | None:
    """The figure over the rounds of learning, a line per group of conditions."""
    groups_ = varied(run, "memory_file")
    if not groups_:
        return None
    rounds = max(len(group) for group in groups_)
    scale = Scale(222, 16)
    across = Scale(140, WIDTH - 160, float(max(1, rounds - 1)))
    parts = []
    for value in (0, 25, 50, 75, 100):
        parts.append(line(110, scale(value), WIDTH - 120, scale(value), "grid"))
        parts.append(text(100, scale(value) + 4, f"{value}{_unit(metric)}", "tick", "end"))
    for number, group in enumerate(groups_):
        colour = f"c{(1 - number) % COLOURS}"
        marks = [mark_of(names(name), run.judged(name), metric) for name in group]
        known = [(across(i), mark) for i, mark in enumerate(marks) if mark.value is not None]
        for (x1, before), (x2, after) in pairwise(known):
            parts.append(line(x1, scale(before.value or 0), x2, scale(after.value or 0),
                              f"stroke {colour}"))  # fmt: skip
        for (x, mark), name in zip(known, group, strict=False):
            parts += _upright(mark, scale, x, colour)
            if not number:
                parts.append(text(x, 246, _round_name(run, name), "name", "middle"))
    return drawing(256, f"{_what(metric)} over the rounds of learning", parts)


def _labels(labels: Sequence[tuple[str, float]], scale: Scale, x: float, anchor: str) -> list[str]:
    heights = spread([scale(value) + 4 for _, value in labels])
    kinds = ["tick" if words.startswith("sum") else "value" for words, _ in labels]
    return [
        text(x, y, words, kind, anchor)
        for (words, _), y, kind in zip(labels, heights, kinds, strict=True)
    ]


def _round_name(run: Run, name: str) -> str:
    context = run.manifest.conditions[name]
    if not context.get("memory"):
        return "no memory"
    number = round_of(name, str(context.get("memory_file", "")))
    return f"round {number}" if number < 1000 else names(name)


def _whisker(mark: Mark, scale: Scale, y: float, colour: str, radius: float = 6) -> list[str]:
    if mark.value is None:
        return []
    parts = [dot(scale(mark.value), y, f"dot {colour}", mark.title, radius)]
    if mark.low is not None and mark.high is not None:
        parts.insert(0, line(scale(mark.low), y, scale(mark.high), y, f"whisker {colour}"))
    return parts


def _upright(mark: Mark, scale: Scale, x: float, colour: str) -> list[str]:
    if mark.value is None:
        return []
    parts = [dot(x, scale(mark.value), f"dot {colour}", mark.title)]
    if mark.low is not None and mark.high is not None:
        parts.insert(0, line(x, scale(mark.low), x, scale(mark.high), f"whisker {colour}"))
    return parts


def _what(metric: Metric) -> str:
    return "Mean floored score" if metric == "score" else "Success rate"


def _unit(metric: Metric) -> str:
    return "" if metric == "score" else "%"


def drawing(height: float, title: str, parts: Sequence[str]) -> Markup:
    """An image with a title that screen readers say."""
    body = Markup("").join(Markup(part) for part in parts)
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, height, title, body)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{kind}"/>'


def dot(x: float, y: float, kind: str, words: str, radius: float = 5) -> str:
    """A point that says what it is when pointed at."""
    title = f"<title>{escape(words)}</title>" if words else ""
    return f'<circle cx="{x}" cy="{y}" r="{radius}" class="{kind}">{title}</circle>'


def bar(x: float, y: float, width: float, kind: str, words: str, height: float = 16) -> str:
    """A part of a stacked bar."""
    return (
        f'<rect x="{x}" y="{y}" width="{max(0.0, width):.1f}" height="{height}" class="{kind}">'
        f"<title>{escape(words)}</title></rect>"
    )


def grid(scale: Scale, bottom: float, unit: str, top: float = 8) -> list[str]:
    """Vertical lines with their figures below."""
    parts = []
    for fifth in range(6):
        value = scale.top * fifth / 5
        x = scale(value)
        parts.append(line(x, top, x, bottom, "grid"))
        parts.append(text(x, bottom + 18, f"{value:g}{unit}", "tick", "middle"))
    return parts


def legend(names: Sequence[str], kinds: Sequence[str], y: float) -> list[str]:
    """Coloured dots with their names, wrapped to the width."""
    parts, x = [], 8.0
    for name, kind in zip(names, kinds, strict=True):
        width = 32 + 7.0 * len(name)
        if x + width > WIDTH:
            x, y = 8.0, y + 20
        parts += [dot(x + 5, y - 4, kind, "", 5), text(x + 15, y, name, "tick key")]
        x += width
    return parts


def legend_rows(names: Sequence[str]) -> int:
    """How many lines the legend needs."""
    rows, x = 1, 8.0
    for name in names:
        width = 32 + 7.0 * len(name)
        if x + width > WIDTH:
            rows, x = rows + 1, 8.0
        x += width
    return rows


def spread(wanted: Sequence[float], gap: float = 17) -> list[float]:
    """Heights for labels near the wanted ones, far enough apart to be read."""
    heights = list(wanted)
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    for above, below in pairwise(order):
        heights[below] = max(heights[below], heights[above] + gap)
    return heights
