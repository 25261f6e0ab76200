"""The learning curve: the primary figure after each round of memory, and the size of the memory.

A curve is the arms that differ in the snapshot of ``rpms learn --rounds`` alone; it begins with the
same arm without memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from rpms.evals.analysis.experiment import by_run, run_names
from rpms.evals.analysis.measures import Metric, average, merit, metric_of, per_task
from rpms.evals.analysis.report.source import source_of
from rpms.evals.analysis.tables import NONE, Cell, Table, label, linked, number, percent
from rpms.evals.records.conditions import described, effective
from rpms.evals.records.run_folder import Run
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.output import quantity

ROUND = re.compile(r"\.round(\d+)\.jsonl$")
"""Ends the name of the snapshot of a round."""

Curve = Mapping[int, str]


def curves(run: Run) -> dict[str, Curve]:
    """The arms of each learning curve by round; a curve has at least two rounds of memory."""
    groups: dict[str, dict[int, str]] = {}
    for arm in run.conditions:
        settings = run.settings(arm)
        match = ROUND.search(str(settings.get("memory_file", "")))
        if match and settings["memory"]:
            groups.setdefault(_fixed(settings), {})[int(match[1])] = arm
    found: dict[str, Curve] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        settings = run.settings(next(iter(group.values())))
        bare = _fixed({**settings, "memory": False})
        if start := next((arm for arm in run.conditions if _fixed(run.settings(arm)) == bare), ""):
            group[0] = start
        found[condition_title(described(settings))] = dict(sorted(group.items()))
    return found


def _fixed(settings: Mapping[str, Any]) -> str:
    """Everything that the arms of one curve share."""
    free = ("memory_file", "state_block", "layout")
    return repr({name: each for name, each in effective(settings).items() if name not in free})


def entries_of(run: Run, number: int) -> Cell:
    """The entries of the memories of a round; of several runs all of them."""
    sizes: dict[int, None] = {}
    for part in run.parts or (run,):
        for curve in curves(part).values():
            if number in curve and part.settings(curve[number])["memory"]:
                digest = part.manifest.hashes.memory.get(curve[number], "")
                if memory := part.manifest.memories.get(digest):
                    sizes[memory.entries] = None
    texts = [f"{size:,}" for size in sizes] or [NONE if number else "0"]
    return Cell(", ".join(texts), value=next(iter(sizes), 0) if len(sizes) < 2 else [*sizes])


def round_tables(run: Run) -> Iterator[Table]:
    """A row for each round and a column for each curve; also run by run for several runs."""
    found, metric = curves(run), metric_of(run.manifest.env)
    if not found:
        return
    rounds = sorted({number for curve in found.values() for number in curve})
    figure = "mean floored score" if metric == "score" else "success rate"
    over = f", as the mean over {quantity(len(run.parts), 'run')}" if run.pooled else ""
    spread = " Brackets have the lowest and the highest run." if run.pooled else ""
    starts = [curve[0] for curve in found.values() if 0 in curve]
    before = f" R0 is without memory: {' and '.join(starts)}." if starts else ""
    notes = [f"The {figure} with the memory of each round{over}.{before}{spread}"]
    rows = [
        [label(f"R{number}"), entries_of(run, number),
         *(_cell(run, curve.get(number, ""), metric) for curve in found.values())]
        for number in rounds
    ]  # fmt: skip
    title = "Learning curve over rounds of memory"
    yield Table("rounds", title, source_of(run), ["round", "entries", *found], rows, notes=notes)
    if run.pooled:
        rows = [
            [label(f"R{n}"), label(place),
             *(_cell(run, curve.get(n, ""), metric, i) for curve in found.values())]
            for n in rounds
            for i, place in enumerate(run_names(run))
        ]  # fmt: skip
        yield Table(
            "rounds-by-run", f"{title}, by run", source_of(run), ["round", "run", *found], rows,
            labels=2,
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
