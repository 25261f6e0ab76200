"""The tables of a comparison: two runs task by task, or any number as models x conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rpms.evals.measures import Metric, by_task, pair, shared_tasks
from rpms.evals.report.results import figure, gain
from rpms.evals.report.source import names, source_of
from rpms.evals.run_files import Episode, Run
from rpms.evals.statistics import holm
from rpms.evals.tables import NONE, Cell, Table, count, label, p_value


class Side(NamedTuple):
    """A run in a comparison: what it is called, and the conditions the first run has too."""

    name: str
    run: Run
    shared: list[str]


def models_table(runs: Sequence[Run], rows: Sequence[str], metric: Metric) -> Table:
    """The paper's table: a row for each model (or run), a column for each condition."""
    conditions = list(dict.fromkeys(name for run in runs for name in run.conditions))
    cells = [
        [label(row), *(
            figure(run.judged(name), metric) if name in run.conditions else Cell(NONE)
            for name in conditions
        )]
        for row, run in zip(rows, runs, strict=True)
    ]  # fmt: skip
    what = "Mean floored score" if metric == "score" else "Success rate, won/played"
    notes = [f"{what}, and its 95% interval, over the tasks that each run finished without error."]
    return Table(
        "models", "Models x conditions", _source(zip(rows, runs, strict=True)),
        ["", *map(names, conditions)], cells, notes=[*notes, *_unfinished(zip(rows, runs,
                                                                             strict=True))],
    )  # fmt: skip


def against_first(sides: Sequence[Side], metric: Metric) -> Table:
    """Every later run against the first one, condition by condition."""
    first = sides[0]
    chosen = [(side, name) for side in sides[1:] for name in side.shared]
    rows = _paired(first.run, [(side.run, name) for side, name in chosen], metric)
    columns = ["run", "condition", "tasks", first.name, "this run", "difference"]
    columns += [f"only {first.name} won", "only this run won", _test(metric), "Holm"]
    return Table(
        "pairs", f"Each run against {first.name}",
        _source((side.name, side.run) for side in sides), columns,
        [[label(side.name), label(names(name)), *row]
         for (side, name), row in zip(chosen, rows, strict=True)],
        notes=["Over the tasks that both runs finished without an error; brackets are 95% "
               "intervals. Holm corrects for the number of rows.",
               *_left_out(sides)], labels=2,
    )  # fmt: skip


def summary(first: Side, second: Side, metric: Metric) -> Table:
    """Two runs by condition, over the tasks that both finished."""
    rows = _paired(first.run, [(second.run, name) for name in second.shared], metric)
    columns = ["condition", "tasks", "first", "second", "second - first", "only first won"]
    return Table(
        "summary", "Two runs by condition", _source([first[:2], second[:2]]),
        [*columns, "only second won", _test(metric), "Holm"],
        [[label(names(name)), *row] for name, row in zip(second.shared, rows, strict=True)],
        notes=["Over the tasks that both runs finished without an error; brackets are 95% "
               "intervals.", *_left_out([first, second])],
    )  # fmt: skip


def changes(first: Side, second: Side, metric: Metric) -> Table:
    """Every task whose outcome is another one."""
    rows = []
    for name in second.shared:
        left, right = by_task(first.run.judged(name)), by_task(second.run.judged(name))
        for task in shared_tasks(left, right):
            before, after = left[task], right[task]
            if _outcome(before, metric) != _outcome(after, metric):
                cells = [_told(before, metric), _told(after, metric)]
                rows.append([label(names(name)), label(task), *cells])
    return Table(
        "changes", f"Tasks whose outcome changed: {len(rows)}", _source([first[:2], second[:2]]),
        ["condition", "task", "first", "second"], rows, labels=2,
    )  # fmt: skip


def _paired(first: Run, others: Sequence[tuple[Run, str]], metric: Metric) -> list[list[Cell]]:
    """For each run and condition: both figures, the difference, and the test."""
    pairs = [pair(first.judged(name), run.judged(name), metric) for run, name in others]
    p_values = [found.p_score if metric == "score" else found.p for found in pairs]
    rows = []
    for (run, name), found, p, corrected in zip(
        others, pairs, p_values, holm(p_values), strict=True
    ):
        left, right = by_task(first.judged(name)), by_task(run.judged(name))
        tasks = shared_tasks(left, right)
        rows.append([
            count(found.n),
            figure([left[task] for task in tasks], metric),
            figure([right[task] for task in tasks], metric),
            gain(found.difference, found.interval, metric),
            count(found.only_first), count(found.only_second), p_value(p), p_value(corrected),
        ])  # fmt: skip
    return rows


def _test(metric: Metric) -> str:
    return "Wilcoxon p" if metric == "score" else "McNemar p"


def _source(named: Iterable[tuple[str, Run]]) -> str:
    return " | ".join(f"{name}: {source_of(run)}" for name, run in named)


def _left_out(sides: Sequence[Side]) -> list[str]:
    """Episodes that could not be paired, and why."""
    notes = []
    for name, run, shared in sides:
        errors = sum(e.is_error for condition in shared for e in run.played(condition))
        if errors:
            notes.append(f"{errors} episodes of the {name} run ended in an error and are left out.")
    return [*notes, *_unfinished((name, run) for name, run, _ in sides)]


def _unfinished(named: Iterable[tuple[str, Run]]) -> list[str]:
    return [
        f"The {name} run is not finished: {run.done} of {run.planned} episodes."
        for name, run in named
        if not run.complete
    ]


def _outcome(episode: Episode, metric: Metric) -> tuple[bool, float]:
    return episode.success, episode.score if metric == "score" else 0.0


def _told(episode: Episode, metric: Metric) -> Cell:
    verdict = "won" if episode.success else (episode.failure_mode or "lost").replace("_", " ")
    if metric == "score":
        verdict = f"{episode.score:g} ({verdict})"
    value = {"success": episode.success, "score": episode.score, "mode": episode.failure_mode}
    return Cell(verdict, f"{episode.steps} steps", value)
