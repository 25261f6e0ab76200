"""The learning curve: the primary figure after each round of memory, and the size of the memory.

A curve is the arms that differ in the snapshot of ``rpms learn --rounds`` alone; it begins with the
same arm without memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.measures import task_mean
from rpms.evals.analysis.report.results import UNITS
from rpms.evals.analysis.tables import NONE, Cell, Table, label, number, percent
from rpms.evals.records.conditions import described, effective
from rpms.evals.records.run_folder import Run
from rpms.vocabulary.context import condition_title

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


def round_table(data: Results) -> Table:
    """A row for each round, and a column for each curve."""
    run, found = data.run, curves(data.run)
    starts = [curve[0] for curve in found.values() if 0 in curve]
    before = f" R0 is without memory: {' and '.join(starts)}." if starts else ""
    rows = [
        [
            label(f"R{n}"), entries_of(run, n),
            *(_cell(data, curve[n]) if n in curve else Cell(NONE) for curve in found.values()),
        ]
        for n in sorted({number for curve in found.values() for number in curve})
    ]  # fmt: skip
    return Table(
        "rounds", "Learning curve over rounds of memory", ["round", "entries", *found], rows,
        notes=[f"The {UNITS[data.metric]} with the memory of each round.{before}"],
    )  # fmt: skip


def _cell(data: Results, arm: str) -> Cell:
    value = task_mean(data.sides[arm], data.metric).value
    cell = (number if data.metric == "floored" else percent)(value)
    return replace(cell, link=(("counted", "1"), ("c", arm)))
