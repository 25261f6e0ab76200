"""What one try does not tell: how far a second one agrees, and what further trials win.

pass^k is the chance that k independent repeats of a task all succeed, estimated without bias from
the n that were played: C(wins, k) / C(n, k), averaged over tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from statistics import fmean

from rpms.evals.measures import wilson
from rpms.evals.report.source import names, source_of
from rpms.evals.run_folder import Run
from rpms.evals.tables import Cell, Table, count, label, linked, number, percent


def outcomes(run: Run, condition: str) -> list[list[bool]]:
    """By task, how its repeats ended; a task counts once all of them are there without an error."""
    found: dict[str, list[bool]] = {}
    for repeat in range(1, run.repeats + 1):
        for episode in run.played(condition, repeat):
            if not episode.is_error:
                found.setdefault(episode.task, []).append(episode.success)
    return [ends for ends in found.values() if len(ends) == run.repeats]


def pass_hat(tasks: Sequence[Sequence[bool]], k: int) -> float | None:
    """pass^k over tasks; None without any."""
    if not tasks:
        return None
    return fmean(comb(sum(ends), k) / comb(len(ends), k) for ends in tasks)


def flip_rate(tasks: Sequence[Sequence[bool]]) -> float | None:
    """The share of tasks that were both won and lost."""
    return fmean(0 < sum(ends) < len(ends) for ends in tasks) if tasks else None


def variance_within(tasks: Sequence[Sequence[bool]]) -> float | None:
    """The mean over tasks of the variance between their repeats, unbiased."""
    if not tasks or len(tasks[0]) < 2:
        return None
    rates = [(sum(ends) / len(ends), len(ends)) for ends in tasks]
    return fmean(p * (1 - p) * n / (n - 1) for p, n in rates)


def repeat_table(run: Run) -> Table | None:
    """One row per arm: success over all repeats, pass^k, flips and variance."""
    if run.repeats < 2:
        return None
    powers = sorted({1, 2, run.repeats})
    rows = []
    for name in run.conditions:
        tasks = outcomes(run, name)
        rows.append([
            label(names(name)), count(len(tasks)),
            *(percent(pass_hat(tasks, k)) for k in powers),
            percent(flip_rate(tasks)), number(variance_within(tasks), ".3f"),
        ])  # fmt: skip
    columns = ["condition", "tasks", *(f"pass^{k}" for k in powers)]
    columns += ["flip rate", "variance within tasks"]
    return Table(
        "repeats", f"{run.repeats} repeats", source_of(run), columns, rows,
        notes=["pass^k: all of k repeats of a task succeed. Flip rate: tasks both won and lost. "
               "Tasks of which a repeat is missing or ended in an error are left out. The other "
               "tables are over the first repeat."],
    )  # fmt: skip


def trial_table(run: Run) -> Table | None:
    """One row per arm: how many tasks are won by the first trial, the second, and so on."""
    if run.trials < 2:
        return None
    rows = [[label(names(name)), *_won_by(run, name)] for name in run.conditions]
    columns = ["condition", "tasks", *(f"by trial {n}" for n in range(1, run.trials + 1))]
    return Table(
        "trials", f"Up to {run.trials} trials of a task", source_of(run), columns, rows,
        notes=["A task is tried again until it is won; what memory carries from trial to trial is "
               "in the step logs. The other tables take each task's last trial: such figures "
               "are not comparable with those of a single try."],
    )  # fmt: skip


def _won_by(run: Run, name: str) -> Iterator[Cell]:
    judged = run.judged(name)
    yield count(len(judged))
    for trial in range(1, run.trials + 1):
        side = [e for e in judged if e.success and e.trial <= trial]
        won = len(side)
        interval = wilson(won, len(judged)) if judged else None
        cell = percent(won / len(judged) if judged else None, interval, f"{won}/{len(judged)}")
        yield linked(cell, side)
