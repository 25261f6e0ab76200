"""The plots of the analysis: success against cost, and memory across kinds of tasks."""

from __future__ import annotations

from itertools import pairwise
from math import floor, log10
from textwrap import wrap

from markupsafe import Markup

from rpms.evals.measures import Metric
from rpms.evals.report.frontier import Point, frontier, in_dollars, points
from rpms.evals.report.source import names, short_type
from rpms.evals.report.svg import WIDTH, Scale, dot, drawing, legend, legend_rows, line, text, tile
from rpms.evals.report.transfer import came_from, level, matrix, source_label, used_for
from rpms.evals.run_folder import Run

LEFT, RIGHT, BOTTOM = 60, 60, 236
LABELS = 190
CELL = 34
COLOURS = 8


def frontier_plot(run: Run, metric: Metric) -> Markup | None:
    """Cost to the right, the primary figure upwards; the front is a line."""
    found = points(run)
    if len(found) < 2:
        return None
    dollars = in_dollars(run)
    top = _round_up(max(one.cost for one in found.values()))
    across, up = Scale(LEFT, WIDTH - RIGHT, top), Scale(BOTTOM, 16)
    parts = []
    for fifth in range(6):
        share = fifth * 20
        unit = "" if metric == "score" else "%"
        parts.append(line(LEFT, up(share), WIDTH - RIGHT, up(share), "grid"))
        parts.append(text(LEFT - 8, up(share) + 4, f"{share}{unit}", "tick", "end"))
        cost = top * fifth / 5
        told = f"${cost:.4f}" if dollars else f"{cost:,.0f}"
        parts.append(text(across(cost), BOTTOM + 18, told, "tick", "middle"))
    factor = 1.0 if metric == "score" else 100.0

    def place(one: Point) -> tuple[float, float]:
        return across(one.cost), up(one.merit * factor)

    for before, after in pairwise(frontier(found)):
        parts.append(line(*place(found[before]), *place(found[after]), "expected"))
    for number, (name, one) in enumerate(found.items()):
        price = f"${one.cost:.6f}" if dollars else f"{one.cost:,.0f} tokens"
        told = f"{names(name)}: {one.merit * factor:.1f} for {price} per episode"
        parts.append(dot(*place(one), f"dot c{number % COLOURS}", told, 6))
    unit = "USD per episode" if dollars else "tokens per episode"
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, BOTTOM + 38, unit, "name", "middle"))
    labels = [names(name) for name in found]
    parts += legend(labels, [f"dot c{i % COLOURS}" for i in range(len(labels))], BOTTOM + 64)
    height = BOTTOM + 54 + 20 * legend_rows(labels)
    return drawing(height, "Success against cost by condition, with the Pareto front", parts)


def _round_up(cost: float) -> float:
    """A round number above it, so that a fifth of it is one too."""
    if cost <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(cost))
    return next(unit * n for n in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if unit * n >= cost)


def transfer_plot(run: Run) -> Markup | None:
    """A heat map for each condition: darker where more of the episodes were won."""
    readers = [name for name in run.conditions if matrix(run, name)]
    if not readers:
        return None
    targets = used_for(run)
    width = (WIDTH - LABELS - 8) / len(targets)
    parts, y = [], 8.0
    for name in readers:
        found = matrix(run, name)
        parts.append(text(8, y + 12, names(name), "value"))
        y += 20
        for source in came_from(found):
            words = source_label(run, source)
            parts.append(text(LABELS - 12, y + CELL / 2 + 4, words, "name", "end"))
            for number, target in enumerate(targets):
                episodes = found.get((source, target), [])
                value = level(run, episodes)
                if value is None:
                    continue
                x = round(LABELS + width * number, 1)
                told = f"learned from {words}, used for {short_type(run, target)}: {value:.1f}"
                size = (round(width, 1), CELL)
                parts.append(tile(x, y, size, value / 100, f"{told} ({len(episodes)} episodes)"))
                middle = round(x + width / 2, 1)
                parts.append(text(middle, y + CELL / 2 + 4, f"{value:.0f}", "value", "middle"))
            y += CELL
        for number, target in enumerate(targets):
            middle = round(LABELS + width * (number + 0.5), 1)
            for place, words in enumerate(wrap(short_type(run, target), max(1, int(width / 7)))):
                parts.append(text(middle, y + 15 + 14 * place, words, "tick", "middle"))
        y += 64
    return drawing(y, "Memory: learned from (down), used for (across)", parts)
