"""The learning curve: the primary figure after each round of memory, for C and for D."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from statistics import fmean

from rpms.evals.analysis.experiment import by_run, run_names
from rpms.evals.analysis.measures import Metric, average, merit, metric_of, per_task
from rpms.evals.analysis.report.source import source_of
from rpms.evals.analysis.tables import NONE, Cell, Table, label, linked, number, percent
from rpms.evals.records.run_folder import Run
from rpms.vocabulary.output import quantity

ROUND = re.compile(r"(?P<before>.*?)\s*\bround (?P<number>\d+)\b\s*(?P<after>.*)")
"""The label of an arm with the memory of a round: ``round 1``, ``C round 2``."""
BEFORE = {"C": "S", "D": "B"}
"""The arm that a curve begins with: the same prompt without memory."""

Curve = Mapping[int, str]


def curves(run: Run) -> dict[str, Curve]:
    """The arms of each learning curve by round; a curve has at least two rounds."""
    found: dict[str, dict[int, str]] = {}
    for arm in run.conditions:
        if match := ROUND.fullmatch(arm):
            name = " ".join(filter(None, (match["before"], match["after"]))) or "D"
            found.setdefault(name, {})[int(match["number"])] = arm
    for name, curve in found.items():
        if (start := BEFORE.get(name, "")) in run.manifest.conditions:
            curve.setdefault(0, start)
    return {name: dict(sorted(curve.items())) for name, curve in found.items() if len(curve) > 1}


def round_tables(run: Run) -> Iterator[Table]:
    """A row for each curve and a column for each round; also run by run for several runs."""
    found, metric = curves(run), metric_of(run.manifest.env)
    if not found:
        return
    rounds = sorted({number for curve in found.values() for number in curve})
    heads = [f"round {number}" for number in rounds]
    figure = "mean floored score" if metric == "score" else "share won"
    over = f", as the mean over {quantity(len(run.parts), 'run')}" if run.pooled else ""
    spread = " Brackets have the lowest and the highest run." if run.pooled else ""
    notes = [
        f"The {figure} with the memory of each round{over}. Round 0 is the same prompt without "
        f"memory: S for C, B for D.{spread}"
    ]
    rows = [
        [label(name), *(_cell(run, curve.get(number, ""), metric) for number in rounds)]
        for name, curve in found.items()
    ]
    title = "Learning curve over rounds of memory"
    yield Table("rounds", title, source_of(run), ["curve", *heads], rows, notes=notes)
    if run.pooled:
        rows = [
            [label(name), label(place), *(_cell(run, curve.get(n, ""), metric, i) for n in rounds)]
            for name, curve in found.items()
            for i, place in enumerate(run_names(run))
        ]
        columns = ["curve", "run", *heads]
        yield Table(
            "rounds-by-run", f"{title}, by run", source_of(run), columns, rows, labels=2
        )  # fmt: skip


def _cell(run: Run, arm: str, metric: Metric, part: int | None = None) -> Cell:
    """The figure of an arm: of one run, or the mean over runs with its range."""
    if not arm:
        return Cell(NONE)
    sides = by_run(run, run.judged(arm))
    sides = sides if part is None else [sides[part]]
    values = [
        value
        for side in sides
        if (value := average([*per_task(side, lambda e: merit(e, metric)).values()])) is not None
    ]
    cell = (number if metric == "score" else percent)(fmean(values) if values else None)
    if len(values) > 1:
        scale = 1 if metric == "score" else 100
        low, high = scale * min(values), scale * max(values)
        data = {**cell.value, "low": low / scale, "high": high / scale}
        cell = Cell(cell.text, f"[{low:.1f}-{high:.1f}]", data)
    return linked(cell, [episode for side in sides for episode in side])
