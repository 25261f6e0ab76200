"""The forms of the plots: rows with intervals, heat maps, stacked bars and lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rpms.evals.analysis.measures import Interval
from rpms.evals.analysis.plotting.style import (
    DARK,
    LIGHT,
    LINE,
    MIDDLE,
    SCALE,
    arm_styles,
    drawn,
    legend_below,
    legend_height,
    shades,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Straight lines only: the circles of other patterns make an SVG file ten times as large.
HATCHES = ("", "////", "----", "\\\\\\\\", "||||", "xxxx", "++++")
MOST_COLUMNS, WIDE = 12, 26
"""The columns of a heat map, and the characters in a line of their names."""
NO_INTERVAL = "No line: all tasks agree, so there is no interval."
LEAST = 10.0
"""An axis of differences reaches at least this far to both sides: a few points look like few."""
PLOT_HEIGHT = 1.9
"""The height of a plot with two axes, without its legend."""


class IntervalRow(NamedTuple):
    """A row of a plot with intervals: a value with its interval, and its values in single runs."""

    label: str
    value: float | None
    interval: Interval | None = None
    runs: Sequence[float] = ()
    is_filled: bool = True


class Series(NamedTuple):
    """A line of a plot: its points, and an interval for each if there are any."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    intervals: Sequence[Interval | None] = ()


def interval_rows(
    rows: Sequence[IntervalRow],
    title: str,
    limits: tuple[float, float] | None = None,
    zero: bool = False,
    form: str = ".1f",
    expected: float | None = None,
) -> Figure:
    """One row each: name, value with interval, and the value as text on the right.

    A dotted line marks the ``expected`` value; a note names one beyond the axis.
    """
    labels = [wrapped(row.label) for row in rows]
    notes = [title]
    if expected is not None:
        note = f"additive expectation, {expected:{form}}"
        beyond = limits and not limits[0] <= expected <= limits[1]
        notes.append(f"Not on the axis: {note}" if beyond else f"Dotted line: {note}")
    if any(row.value is not None and not row.interval for row in rows):
        notes.append(NO_INTERVAL)

    def draw(axes: Axes) -> None:
        places = _places(axes, labels)
        axes.grid(axis="x")
        if zero:
            axes.axvline(0, color=DARK, linewidth=0.8)
        if expected is not None:
            axes.axvline(expected, color=DARK, linewidth=1, linestyle=":")
        for place, row in zip(places, rows, strict=True):
            _draw_row(axes, place, row, form)
        axes.set_xlabel("\n".join(notes))
        low, high = axes.get_xlim()
        axes.set_xlim(*(limits or (min(low, -LEAST), max(high, LEAST))))

    return drawn(sum(_heights(labels)) + 0.4 + LINE * (len(notes) - 1), draw)


def _heights(labels: Sequence[str]) -> list[float]:
    """The height of each row, in inches: that of its label."""
    return [max(0.19, LINE * (label.count("\n") + 1) + 0.05) for label in labels]


def _places(axes: Axes, labels: Sequence[str]) -> list[float]:
    """Name the rows from top to bottom; a row is as high as its label."""
    heights = _heights(labels)
    places = [sum(heights[:number]) + height / 2 for number, height in enumerate(heights)]
    axes.set_yticks(places, labels)
    axes.set_ylim(sum(heights), 0)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return places


def _draw_row(axes: Axes, place: float, row: IntervalRow, form: str) -> None:
    if row.value is None:
        axes.text(1.06, place, "-", transform=axes.get_yaxis_transform(), va="center")
        return
    if row.interval:
        ends = [row.interval.low, row.interval.high]
        axes.plot(ends, [place, place], color=DARK, linewidth=1, solid_capstyle="butt")
        axes.plot(ends, [place, place], "|", color=DARK, markersize=4)
    if row.runs:  # below the line, where the mean does not cover them
        axes.plot(row.runs, [place + 0.05] * len(row.runs), "o", markersize=3,
                  markeredgewidth=0.6, markeredgecolor=MIDDLE, markerfacecolor="white",
                  clip_on=False)  # fmt: skip
    axes.plot([row.value], [place], "o", color=DARK, markersize=4.5, clip_on=False,
              markerfacecolor=DARK if row.is_filled else "white", zorder=3)  # fmt: skip
    axes.text(1.06, place, format(row.value, form), transform=axes.get_yaxis_transform(),
              va="center", fontsize=6.5)  # fmt: skip


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    title: str,
    top: float | None = None,
) -> Figure:
    """A cell for each row and column, dark for a high value, with the value in it.

    Rows and columns are exchanged if there are too many columns for the width of a page's column.
    """
    if len(columns) > max(MOST_COLUMNS, len(rows)):
        turned = [[row[number] for row in values] for number in range(len(columns))]
        return heat_map(columns, rows, turned, title, top)
    labels = [wrapped(row) for row in rows]
    heads = [wrapped(column, WIDE) for column in columns]
    slope = 90 if any("\n" in head for head in heads) else 45
    most = top or max((v for row in values for v in row if v is not None), default=0) or 1.0

    def draw(axes: Axes) -> None:
        heights = _heights(labels)
        edges = [sum(heights[:number]) for number in range(len(labels) + 1)]
        cells = [[float("nan") if v is None else v for v in row] for row in values]
        axes.pcolormesh(
            [*range(len(columns) + 1)], edges, cells, cmap=SCALE, vmin=0, vmax=most,
            edgecolors="white", linewidth=0.6,
        )  # fmt: skip
        _places(axes, labels)
        middles = [number + 0.5 for number in range(len(columns))]
        axes.set_xticks(middles, heads, rotation=slope, ha="right", rotation_mode="anchor",
                        va="center" if slope == 90 else "top")  # fmt: skip
        axes.tick_params(axis="x", length=0)
        axes.spines["bottom"].set_visible(False)
        size = 6 if len(columns) <= 8 else 5
        for (i, row), edge in zip(enumerate(values), edges, strict=False):
            for j, value in enumerate(row):
                text = "" if value is None else _short(value)
                light = value is not None and value > 0.55 * most
                axes.text(j + 0.5, edge + heights[i] / 2, text, ha="center", va="center",
                          fontsize=size, color="white" if light else DARK)  # fmt: skip
        axes.set_xlabel(title)

    longest = max((len(line) for head in heads for line in head.split("\n")), default=0)
    return drawn(sum(_heights(labels)) + 0.036 * longest * (slope / 45) ** 0.5 + 0.35, draw)


def _short(value: float) -> str:
    return "0" if not value else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def stacked_bars(
    rows: Sequence[str], parts: Sequence[str], values: Sequence[Sequence[float]], title: str
) -> Figure:
    """A bar for each row, divided into parts that add up to 100."""
    labels, names = [wrapped(row) for row in rows], [wrapped(part) for part in parts]

    def draw(axes: Axes) -> None:
        places, left = _places(axes, labels), [0.0] * len(rows)
        for number, color in enumerate(reversed(shades(len(parts)))):
            widths = [row[number] for row in values]
            axes.barh(places, widths, 0.13, left=left, color=color, label=names[number],
                      hatch=HATCHES[number % len(HATCHES)], edgecolor="white",
                      linewidth=0.4)  # fmt: skip
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_xlim(0, 100)
        axes.set_xlabel(title)
        legend_below(axes, names)

    return drawn(sum(_heights(labels)) + 0.4 + legend_height(names), draw)


def lines(
    series: Sequence[Series],
    x_title: str,
    y_title: str,
    limits: tuple[float, float] = (0, 100),
    *,
    steps: bool = False,
    ticks: Mapping[float, str] | None = None,
) -> Figure:
    """A line for each series; with ``steps``, values hold until the next one."""
    labels = [wrapped(each.label) for each in series]

    def draw(axes: Axes) -> None:
        axes.grid()
        period = max(4, max(len(each.x) for each in series) // 6)
        for number, (each, style) in enumerate(zip(series, arm_styles(len(series)), strict=True)):
            # Equal arms: a later line is thinner, and a broken line is above every solid one.
            width = 2.2 - 1.2 * number / max(1, len(series) - 1)
            for x, interval in zip(each.x, each.intervals, strict=False):
                if interval:
                    axes.plot([x, x], [interval.low, interval.high], color=style.color,
                              linewidth=0.7, zorder=1.5)  # fmt: skip
            start = number * period // len(series)
            axes.plot(each.x, each.y, label=labels[number], clip_on=False,
                      drawstyle="steps-post" if steps else "default",
                      markevery=(start, period) if steps else None, linewidth=width,
                      zorder=2 if style.line == "-" else 2.1, **style.plot)  # fmt: skip
        _two_axes(axes, x_title, y_title, limits)
        if ticks:
            axes.set_xticks([*ticks], [*ticks.values()])
        legend_below(axes, labels)

    more = max((text.count("\n") for text in (ticks or {}).values()), default=0)
    return drawn(PLOT_HEIGHT + LINE * more + legend_height(labels), draw)


def _two_axes(axes: Axes, x_title: str, y_title: str, limits: tuple[float, float]) -> None:
    axes.set_xlabel(x_title)
    axes.set_ylabel(y_title)
    axes.set_ylim(*limits)
    axes.spines["left"].set_color(LIGHT)
    axes.spines["bottom"].set_color(LIGHT)
