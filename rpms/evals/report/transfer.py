"""Memory across kinds of tasks: what was learned on one type, used on another."""

from __future__ import annotations

from collections.abc import Mapping

from rpms.evals.measures import merit, metric_of
from rpms.evals.records import Episode
from rpms.evals.report.source import names, short_type, source_of
from rpms.evals.run_folder import Run
from rpms.evals.step_counts import ANY_GOAL
from rpms.evals.tables import Cell, Table, label

Matrix = Mapping[tuple[str, str], list[Episode]]


def transfer_table(run: Run) -> Table | None:
    """Where memories came from down, what they were used for across."""
    readers = [name for name in run.conditions if matrix(run, name)]
    if not readers:
        return None
    targets = used_for(run)
    rows = []
    for name in readers:
        found = matrix(run, name)
        for source in came_from(found):
            cells = (_cell(run, source, found.get((source, target), [])) for target in targets)
            rows.append([label(names(name)), label(source_label(run, source)), *cells])
    what = "Mean score" if metric_of(run.manifest.env) == "score" else "Success rate"
    notes = [
        f"{what} of the episodes of a type (across) in whose prompts a memory learned from a type "
        "(down) stood at some step, with how many such episodes there are and how many entries "
        f"of that type each was shown. '{ANY_GOAL}': entries about no one goal. An episode counts "
        "under every type that its memories came from, so cells of a column are not independent.",
    ]
    return Table(
        "transfer", "Memory: learned from, used for", source_of(run),
        ["condition", "learned from", *(short_type(run, kind) for kind in targets)], rows,
        notes=notes, labels=2,
    )  # fmt: skip


def matrix(run: Run, name: str) -> dict[tuple[str, str], list[Episode]]:
    """Judged episodes of a condition by source type and target type."""
    found: dict[tuple[str, str], list[Episode]] = {}
    for episode in run.judged(name):
        for source in episode.memory_sources:
            found.setdefault((source, episode.type), []).append(episode)
    return found


def came_from(found: Matrix) -> list[str]:
    """Source types, what is about no one goal last."""
    return sorted({source for source, _ in found}, key=lambda source: (source == ANY_GOAL, source))


def used_for(run: Run) -> list[str]:
    """Types of the episodes that used any memory."""
    return sorted({target for name in run.conditions for _, target in matrix(run, name)})


def source_label(run: Run, source: str) -> str:
    """A source type as its world likes to see it."""
    return source if source == ANY_GOAL else short_type(run, source)


def level(run: Run, episodes: list[Episode]) -> float | None:
    """The primary figure between 0 and 100."""
    metric = metric_of(run.manifest.env)
    if not episodes:
        return None
    mean = sum(merit(e, metric) for e in episodes) / len(episodes)
    return mean if metric == "score" else mean * 100


def _cell(run: Run, source: str, episodes: list[Episode]) -> Cell:
    value = level(run, episodes)
    if value is None:
        return Cell("-", value={"value": None, "episodes": 0, "entries": 0})
    entries = sum(e.memory_sources[source][0] for e in episodes)
    unit = "" if metric_of(run.manifest.env) == "score" else "%"
    return Cell(
        f"{value:.1f}{unit}",
        f"of {len(episodes)}, {entries / len(episodes):.1f} each",
        {"value": value, "episodes": len(episodes), "entries": entries},
    )
