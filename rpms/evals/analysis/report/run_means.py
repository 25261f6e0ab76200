"""The tables of an experiment with several runs: means over the runs, and each run by itself.

A figure is computed for each run and then averaged over the runs. Arms are the rows, because an
experiment of a paper has more arms than a page has columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import NamedTuple

from rpms.evals.analysis.arm_differences import ArmOfRun, difference_texts
from rpms.evals.analysis.causes import cause_rank
from rpms.evals.analysis.experiment import by_run, run_names
from rpms.evals.analysis.measures import (
    Metric,
    average,
    by_task,
    groups,
    holm,
    merit,
    metric_of,
    pair,
    per_task,
    shared_tasks,
)
from rpms.evals.analysis.report.behaviour import FAILURE_NOTE, cause_of, failure_modes
from rpms.evals.analysis.report.comparisons import comparisons
from rpms.evals.analysis.report.results import gain, missing_notes
from rpms.evals.analysis.report.source import borrowed_memory, short_type, source_of
from rpms.evals.analysis.report.verdict import discordant_by_run
from rpms.evals.analysis.step_analysis import analyses
from rpms.evals.analysis.tables import (
    NONE,
    Cell,
    Table,
    count,
    counted,
    label,
    linked,
    number,
    p_value,
    percent,
)
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Episode, JobKey
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.output import quantity

Episodes = Sequence[Episode]


class RunFigure(NamedTuple):
    """A column: its value in one run, the episodes behind it, and how it is printed."""

    column: str
    value: Callable[[Episodes], float | None]
    episodes: Callable[[Episode], bool]
    cell: Callable[[float | None], Cell]


def experiment_tables(run: Run) -> Iterator[Table]:
    """Results, goal types, pairs, failures and causes over the runs of an experiment."""
    metric, runs = metric_of(run.manifest.env), quantity(len(run.parts), "run")
    figures = [*_main_figures(run, metric)]
    yield _main_table(run, metric, figures)
    yield _run_table(
        run, "runs", "Results by run", figures, ["The figures of the main table, run by run."]
    )
    kinds = [*_type_figures(run, metric)]
    unit = "mean floored score" if metric == "score" else "share won"
    note = f"The {unit}, as the mean over {runs}."
    title = f"Results by {'family' if metric == 'score' else 'goal type'}"
    yield _mean_table(run, "types", title, kinds, [note])
    yield _run_table(run, "types-by-run", f"{title} and run", kinds)
    if len(run.conditions) > 1:
        yield _pair_table(run, metric)
    note = f"The number of episodes of a run that ended so, as the mean over {runs}."
    modes = [*_failure_figures(run)]
    notes = [note, FAILURE_NOTE]
    yield _mean_table(run, "failures", "Failure modes", modes, notes, _with_errors)
    yield _run_table(run, "failures-by-run", "Failure modes by run", modes, notes[1:], _with_errors)
    if causes := [*_cause_figures(run)]:
        title = "Causes of lost episodes"
        yield _mean_table(run, "causes", title, causes, [note])
        yield _run_table(run, "causes-by-run", f"{title} by run", causes)


def _main_figures(run: Run, metric: Metric) -> Iterator[RunFigure]:
    if metric == "score":
        yield RunFigure("score (floored)", _task_average(metric), _any, number)
    yield RunFigure("success rate", _task_average("success"), _is_won, percent)
    yield RunFigure("rejected actions (P1)", lambda side: _rejected(run, side), _any, percent)
    yield RunFigure(
        "steps, won", lambda side: average([e.steps for e in side if e.success]), _is_won, number
    )
    yield RunFigure(
        "prompt tokens", lambda side: average([e.prompt_tokens for e in side]), _any,
        lambda value: number(value, ",.0f"),
    )  # fmt: skip


def _any(episode: Episode) -> bool:
    return bool(episode.task)


def _is_won(episode: Episode) -> bool:
    return episode.success


def _task_average(metric: Metric) -> Callable[[Episodes], float | None]:
    """The primary figure of one run, each task counted once."""
    return lambda side: average([*per_task(side, lambda e: merit(e, metric)).values()])


def _rejected(run: Run, side: Episodes) -> float | None:
    """The share of steps whose action was rejected, over the episodes with a step log."""
    counts = analyses(run, side)
    steps = sum(episode.steps for episode in side if episode.key in counts)
    return sum(each.invalid_actions for each in counts.values()) / steps if steps else None


def _type_figures(run: Run, metric: Metric) -> Iterator[RunFigure]:
    cell = number if metric == "score" else percent
    for kind in groups(run):
        yield _restricted_figure(short_type(run, kind), kind, _task_average(metric), cell)
    yield RunFigure("all", _task_average(metric), _any, cell)


def _restricted_figure(
    column: str,
    kind: str,
    value: Callable[[Episodes], float | None],
    cell: Callable[[float | None], Cell],
) -> RunFigure:
    """The figure over the episodes of one goal type."""

    def is_of_type(episode: Episode) -> bool:
        return episode.type == kind

    return RunFigure(column, lambda side: value([*filter(is_of_type, side)]), is_of_type, cell)


def _count_figure(column: str, counts: Callable[[Episode], bool]) -> RunFigure:
    return RunFigure(column, lambda side: float(sum(map(counts, side))), counts, number)


def _failure_figures(run: Run) -> Iterator[RunFigure]:
    ends = {title: frozenset[str | None](modes) for title, modes in failure_modes(run).items()}
    for title, modes in ends.items():
        yield _count_figure(title, partial(_ended_in, modes))


def _ended_in(modes: frozenset[str | None], episode: Episode) -> bool:
    return episode.failure_mode in modes


def _cause_figures(run: Run) -> Iterator[RunFigure]:
    episodes: dict[str, set[JobKey]] = {}
    for episode in (e for name in run.conditions for e in run.judged(name)):
        if cause := cause_of(run, episode):
            episodes.setdefault(cause.kind, set()).add(episode.key)
    for kind in sorted(episodes, key=lambda kind: (cause_rank(kind), kind)):
        yield _count_figure(kind, partial(_is_among, episodes[kind]))


def _is_among(keys: Collection[JobKey], episode: Episode) -> bool:
    return episode.key in keys


def _with_errors(run: Run, arm: str) -> Episodes:
    """The compared episodes of an arm, and those that ended in an error."""
    return [*run.judged(arm), *(e for e in run.played(arm) if e.is_error)]


def _mean_table(
    run: Run,
    name: str,
    title: str,
    figures: Sequence[RunFigure],
    notes: Sequence[str] = (),
    side_of: Callable[[Run, str], Episodes] = Run.judged,
) -> Table:
    """One row per arm: each figure as the mean over the runs."""
    rows = [
        [label(condition_title(arm)), *(_mean(run, side_of(run, arm), f) for f in figures)]
        for arm in run.conditions
    ]
    columns = ["condition", *(figure.column for figure in figures)]
    return Table(name, title, source_of(run), columns, rows, notes=notes)


def _mean(run: Run, judged: Episodes, figure: RunFigure) -> Cell:
    values = _values(run, judged, figure)
    behind = [episode for episode in judged if figure.episodes(episode)]
    return linked(figure.cell(fmean(values) if values else None), behind)


def _values(run: Run, judged: Episodes, figure: RunFigure) -> list[float]:
    """The figure in each run that has it."""
    values = (figure.value(side) for side in by_run(run, judged))
    return [value for value in values if value is not None]


def _run_table(
    run: Run,
    name: str,
    title: str,
    figures: Sequence[RunFigure],
    notes: Sequence[str] = (),
    side_of: Callable[[Run, str], Episodes] = Run.judged,
) -> Table:
    """One row per arm and run."""
    rows = []
    for arm in run.conditions:
        for place, side in zip(run_names(run), by_run(run, side_of(run, arm)), strict=True):
            row = [label(condition_title(arm)), label(place), count(len(by_task(side)))]
            row.append(counted([e for e in side if e.success]))
            row += [
                linked(f.cell(f.value(side)), [e for e in side if f.episodes(e)]) for f in figures
            ]
            rows.append(row)
    columns = ["condition", "run", "tasks", "won", *(figure.column for figure in figures)]
    return Table(name, title, source_of(run), columns, rows, notes=notes, labels=2)


def _main_table(run: Run, metric: Metric, figures: Sequence[RunFigure]) -> Table:
    """One row per arm: wins by run, the primary figure with its spread, and the others."""
    first, *rest = figures
    spread = ["SD over runs", "min-max"]
    columns = ["condition", "runs", "tasks", "won by run", first.column, *spread]
    columns += [*(figure.column for figure in rest), "errors", "not run"]
    rows = []
    for arm in run.conditions:
        judged, played = run.judged(arm), run.played(arm)
        wins = [sum(map(_is_won, side)) for side in by_run(run, judged)]
        row = [label(condition_title(arm)), count(len(run.parts)), count(len(by_task(judged)))]
        row.append(Cell(", ".join(map(str, wins)), value=", ".join(map(str, wins))))
        row += [_mean(run, judged, first), *_spread(_values(run, judged, first), metric)]
        row += [_mean(run, judged, figure) for figure in rest]
        row += [counted([e for e in played if e.is_error]), count(run.unplayed(arm))]
        rows.append(row)
    notes = [
        f"Means over {quantity(len(run.parts), 'run')}: {', '.join(run_names(run))}. 'won by run' "
        "is in this order. SD over runs is the sample standard deviation of the first figure, and "
        "min-max its range. Each task counts once in every run. Prompt tokens are per episode.",
        *_compared_tasks(run),
        *borrowed_memory(run),
        *missing_notes(run),
    ]
    return Table("main", "Results by condition", source_of(run), columns, rows, notes=notes)


def _spread(values: Sequence[float], metric: Metric) -> Iterator[Cell]:
    """The standard deviation and the range, in percentage points or points of score."""
    scale = 1 if metric == "score" else 100
    yield number(scale * stdev(values) if len(values) > 1 else None)
    if not values:
        yield Cell(NONE)
        return
    low, high = scale * min(values), scale * max(values)
    text = f"{low:.1f}-{high:.1f}"
    yield Cell(text, value={"range": text, "low": low, "high": high})


def _compared_tasks(run: Run) -> Iterator[str]:
    """A note on arms in which some run has not finished every task."""
    tasks = len(run.manifest.tasks)
    fewer = {arm: n for arm in run.conditions if (n := len(by_task(run.judged(arm)))) < tasks}
    if fewer:
        arms = ", ".join(f"{arm} {n}" for arm, n in fewer.items())
        yield (
            f"An arm is compared on the tasks that every run has finished in it without an error: "
            f"{arms} of {quantity(tasks, 'task')}."
        )


def _pair_table(run: Run, metric: Metric) -> Table:
    """The pairs of the verdict, task by task, all runs of a task at once."""
    chosen = comparisons(run)
    pairs = [pair(run.judged(c.first), run.judged(c.second), metric, pooled=True) for c in chosen]
    tests = [paired.p_score if metric == "score" else paired.p for paired in pairs]
    rows = []
    for each, paired, p, corrected in zip(chosen, pairs, tests, holm(tests), strict=True):
        arms = [ArmOfRun(run.manifest, name) for name in each[:2]]
        sides = [by_task(run.judged(name)) for name in each[:2]]
        behind = [e for task in shared_tasks(*sides) for side in sides for e in side[task]]
        counts = discordant_by_run(run, each)
        discordant = ", ".join(f"{first}:{second}" for first, second in counts)
        rows.append([
            label(condition_title(each.first)), label(condition_title(each.second)),
            linked(count(paired.n), behind),
            gain(paired.difference, paired.interval, metric),
            label(discordant), p_value(p), p_value(corrected),
            label(", ".join(difference_texts(*arms))),
        ])  # fmt: skip
    columns = ["first", "second", "tasks", "second - first", "discordant by run"]
    columns += ["permutation p", "permutation p, Holm", "differ in"]
    notes = [PERMUTATION[metric].format(runs=quantity(len(run.parts), "run"))]
    if not all(paired.exact for paired in pairs):
        notes.append(
            "Where the differences were too many and too fine to count all patterns of signs, the "
            "test drew 100,000 of them with a fixed seed."
        )
    notes.append(
        "Brackets are 95% bootstrap intervals over tasks. 'discordant by run' has the tasks that "
        "only the first won : only the second won. The p-values are about these runs and other "
        "tasks; they do not cover the variation between tunings or models."
    )
    return Table(
        "pairs", "Pairwise comparisons", source_of(run), columns, rows, notes=notes, labels=2,
        remark=True,
    )  # fmt: skip


PERMUTATION = {
    "success": "The test counts each task once: it adds up the task's difference in wins over "
    "{runs} and compares the total with all patterns of signs of these differences (exact, "
    "two-sided; with one run it is McNemar's test). Holm's correction is for the pairs of this "
    "table.",
    "score": "The test counts each task once: it adds up the task's difference in floored score "
    "over {runs} and compares the total with all patterns of signs of these differences (exact, "
    "two-sided). Holm's correction is for the pairs of this table.",
}
