"""The tables of results: main, by type, by task, pairwise, rules x memory, repeats, trials.

pass^k is the probability that k independent repeats of a task all succeed. Its unbiased estimate
from n repeats is C(wins, k) / C(n, k), averaged over tasks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import comb
from pathlib import Path
from statistics import fmean

from rpms.evals.analysis.arm_differences import ArmOfRun, difference_texts
from rpms.evals.analysis.joined_runs import named_parts
from rpms.evals.analysis.measures import (
    Interval,
    Metric,
    average,
    by_task,
    groups,
    holm,
    interaction,
    mean,
    merit,
    metric_of,
    pair,
    per_task,
    rate,
    rate_of,
    shared_tasks,
    task_mean,
    wins_of,
)
from rpms.evals.analysis.report.comparisons import comparisons
from rpms.evals.analysis.report.source import borrowed_memory, short_type, source_of
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
    points,
)
from rpms.evals.records.conditions import described
from rpms.evals.records.run_folder import EPISODES, Run
from rpms.evals.records.schema import Episode
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.output import quantity, with_article

GROUNDS = {
    "S": "Without rules and memory the condition is S, the state alone. B, C and D show the state "
    "too, so the gains are those of rules and memory.",
    "A": "Without rules and memory the condition is A, because this run has no condition S. A "
    "lacks the state that B, C and D show, so part of each gain over A may be due to the state.",
}
"""The reference condition of the square, the better one first, and its meaning for the gains."""
SWITCHES = ("rules", "memory")
FIGURES = {
    "success": "Success rate, won/decided episodes and 95% interval",
    "score": "Mean floored score and 95% interval",
}


def main_table(run: Run) -> Table:
    """One row per condition: the primary figure, the gain over the first condition, errors."""
    metric = metric_of(run.manifest.env)
    first = run.conditions[0]
    scored = ["score (floored)", "score (raw)"] if metric == "score" else []
    switches = {
        name: [run.settings(name).get(part) for part in SWITCHES] for name in run.conditions
    }
    parts = SWITCHES if len({*map(repr, switches.values())}) > 1 else ()
    columns = ["condition", *parts, "episodes", *scored, "won", "success rate"]
    columns += [f"gain over {first}", "errors", "not run"]
    rows = []
    for name in run.conditions:
        title, *figures = _main_row(run, name, metric)
        on = [label("on" if switch else "off") for switch in switches[name] if parts]
        rows.append([title, *on, *figures])
    notes = [
        "Brackets are 95% intervals: Wilson for rates, bootstrap over tasks for scores and gains. "
        "If all tasks have the same value, there is no bootstrap interval. Gains are over the "
        f"tasks that the condition and {first} both finished.",
        *_repeat_note(run),
        *borrowed_memory(run),
        *missing_notes(run),
    ]
    return Table("main", "Results by condition", source_of(run), columns, rows, notes=notes)


def _repeat_note(run: Run) -> Iterator[str]:
    if run.repeats > 1:
        yield (
            f"Up to {run.repeats} repeats of a task: in every rate, score, gain and test each task "
            "counts once, with the mean over its repeats that ended without an error. Intervals "
            "are over tasks (bootstrap, but Wilson for rates if each task was won always or "
            "never). The columns 'episodes' and 'won' count episodes."
        )


def _main_row(run: Run, name: str, metric: Metric) -> Iterator[Cell]:
    judged, episodes = run.judged(name), run.played(name)
    yield label(condition_title(name))
    yield counted(judged)
    if metric == "score":
        for score in (task_mean(judged, lambda e: e.floored), task_mean(judged, lambda e: e.score)):
            yield number(score.value, ".1f", score.interval)
    won = rate(judged)
    yield counted([e for e in judged if e.success])
    yield percent(won.share, won.interval)
    if name == run.conditions[0]:
        yield Cell("")
    else:
        versus = pair(run.judged(run.conditions[0]), judged, metric)
        yield gain(versus.difference, versus.interval, metric)
    yield counted([e for e in episodes if e.is_error])
    yield count(run.unplayed(name))


def gain(difference: float | None, interval: Interval | None, metric: Metric) -> Cell:
    """A difference in the primary figure: percentage points, or points of score."""
    if metric == "success":
        return points(difference, interval)
    return number(difference, "+.1f", interval)


def run_table(run: Run) -> Table | None:
    """The paper's table of models: for each run its arms, with the gain over the first of them."""
    if not run.parts:
        return None
    metric, models = metric_of(run.manifest.env), [p.manifest.model_label for p in run.parts]
    labels = {origin: label for label, origin in run.origins.items()}
    rows = []
    for (name, part), model in zip(named_parts(run), models, strict=True):
        first, *rest = (labels[part.folder, arm] for arm in part.conditions)
        head = label(model if models.count(model) == 1 else name)
        for arm, side in zip(part.conditions, (first, *rest), strict=True):
            versus = pair(run.judged(first), run.judged(side), metric)
            gained = gain(versus.difference, versus.interval, metric)
            cell = Cell(NONE) if side == first else gained
            rows.append([head, label(condition_title(arm)), figure(run.judged(side), metric), cell])
    what = "score" if metric == "score" else "success rate"
    return Table(
        "runs", "Results by model", source_of(run), ["run", "condition", what, "gain"], rows,
        notes=[
            f"{FIGURES[metric]}, over the tasks that all runs share. Gains are over the first "
            "condition of the same run."
        ],
        labels=2,
    )  # fmt: skip


def missing_notes(run: Run) -> Iterator[str]:
    """Notes on episodes that the figures leave out."""
    errors = [e for name in run.conditions for e in run.played(name) if e.is_error]
    for mode in sorted({e.failure_mode or "" for e in errors}):
        n = sum(e.failure_mode == mode for e in errors)
        yield (
            f"{n} of {quantity(run.done, 'episode')} ended in "
            f"{with_article(mode.replace('_', ' '))}. They are left out of every rate and pair "
            "and counted in the column 'errors'."
        )
    if not run.complete:
        yield (
            f"{unfinished(run)} Until then the conditions may have different tasks. Long episodes "
            "end last, and most of them are lost: the rates are too high, and a difference that "
            "long episodes make is missing from the pairs."
        )
    for name, part in named_parts(run):
        file = Path(name, EPISODES)
        if part.torn:
            yield f"The last line of {file} is incomplete (the run was killed) and is ignored."
        if part.damaged:
            lines = f"{quantity(len(part.damaged), 'damaged line')} of {file}"
            first = f"the first is line {part.damaged[0]}"
            yield f"Left out: {lines} ({first}); 'rpms eval' runs such episodes again."
    if unread := len(run.episodes) - len(analyses(run, run.episodes.values())):
        logs = quantity(unread, "step log")
        yield (
            f"Missing or damaged: {logs}. Such an episode counts in rates and pairs, but not in "
            "figures about steps."
        )


def unfinished(run: Run) -> str:
    which = "These runs are" if run.parts else "This run is"
    return f"{which} not finished: {run.done} of {run.planned} episodes are done."


def type_table(run: Run) -> Table:
    """The paper's table of task types: one row per arm, one column per goal type or family."""
    metric, kinds = metric_of(run.manifest.env), groups(run)
    what = "family" if metric == "score" else "goal type"
    sizes = Counter(task.type for task in run.manifest.tasks)
    columns = [f"{short_type(run, kind)} ({sizes[kind]})" for kind in kinds]
    rows = []
    for name in run.conditions:
        judged = run.judged(name)
        sides = [*([e for e in judged if e.type == kind] for kind in kinds), judged]
        figures = (replace(figure(side, metric), note="") for side in sides)
        rows.append([label(condition_title(name)), *figures])
    unit = "mean floored score" if metric == "score" else "success rate"
    return Table(
        "types", f"Results by {what}", source_of(run),
        ["condition", *columns, f"all ({len(run.manifest.tasks)})"], rows,
        notes=[f"The {unit}. In brackets: the number of tasks."],
    )  # fmt: skip


def task_table(run: Run) -> Table | None:
    """One row per prefix of the task ids: ``boil`` for ``boil/21``.

    None if the prefixes are neither tasks of a benchmark nor a refinement of the goal types.
    """
    kinds = {task.id.rpartition("/")[0] for task in run.manifest.tasks}
    meaningful = metric_of(run.manifest.env) == "score" or bool(kinds & {*groups(run)})
    if not meaningful or not all(kinds):
        return None
    words = {kind: re.sub("[-_]", " ", kind) for kind in sorted(kinds)}
    metric = metric_of(run.manifest.env)
    judged = {condition: run.judged(condition) for condition in run.conditions}
    rows = [
        [
            label(text),
            *(
                figure([e for e in side if e.task.rpartition("/")[0] == kind], metric)
                for side in judged.values()
            ),
        ]
        for kind, text in words.items()
    ]
    rows.append([label("all"), *(figure(side, metric) for side in judged.values())])
    return Table(
        "tasks", "Results by task", source_of(run), ["", *map(condition_title, run.conditions)],
        rows, notes=[f"{FIGURES[metric]}."], total=True,
    )  # fmt: skip


def figure(episodes: Sequence[Episode], metric: Metric) -> Cell:
    """The primary figure of the episodes, with its interval."""
    if metric == "score":
        score = task_mean(episodes, lambda e: e.floored)
        return linked(number(score.value, ".1f", score.interval), episodes)
    won = rate(episodes)
    cell = percent(won.share, won.interval, f"{won.wins}/{won.n}" if won.n else "")
    cell = Cell(cell.text, cell.note, {**cell.value, "won": won.wins, "n": won.n})
    return linked(cell, episodes)


def pair_table(run: Run) -> Table | None:
    """The pairs of the verdict, task by task; None for a single condition."""
    chosen = [each[:2] for each in comparisons(run)]
    if not chosen:
        return None
    metric = metric_of(run.manifest.env)
    pairs = [pair(run.judged(a), run.judged(b), metric) for a, b in chosen]
    exact = holm([test.p for test in pairs])
    ranks = holm([test.p_score for test in pairs])
    rows = []
    for (a, b), paired, p, ranked in zip(chosen, pairs, exact, ranks, strict=True):
        firsts, seconds = by_task(run.judged(a)), by_task(run.judged(b))
        both = [(firsts[task], seconds[task]) for task in shared_tasks(firsts, seconds)]
        tasks = linked(count(paired.n), [e for sides in both for side in sides for e in side])
        row = [label(condition_title(a)), label(condition_title(b)), tasks]
        row.append(gain(paired.difference, paired.interval, metric))
        if metric == "score":
            row += [p_value(paired.p_score), p_value(ranked)]
        row.append(_better(both))
        row.append(_better([(second, first) for first, second in both]))
        differ = ", ".join(difference_texts(ArmOfRun(run.manifest, a), ArmOfRun(run.manifest, b)))
        rows.append([*row, p_value(paired.p), p_value(p), label(differ)])
    scored = ["Wilcoxon p", "Wilcoxon p, Holm"] if metric == "score" else []
    columns = ["first", "second", "tasks", "second - first", *scored]
    test, won = win_test(run.repeats)
    columns += [*won, f"{test} p", f"{test} p, Holm", "differ in"]
    notes = [
        f"Over the tasks that both conditions finished without an error. {TESTS[test]}; Holm's "
        "columns correct for the number of pairs in this table.",
        "'differ in' lists settings, and custom code by import path. Memory files, manuals and "
        "code of the same path are compared by checksum. state_block is the goal and the state in "
        "the prompt, which rules and memory always show.",
    ]
    return Table(
        "pairs", "Pairwise comparisons", source_of(run), columns, rows, notes=notes, labels=2,
        remark=True,
    )  # fmt: skip


TESTS = {
    "McNemar": "McNemar's test is exact and two-sided",
    "permutation": "The permutation test is exact and two-sided: it exchanges the two conditions "
    "task by task and compares the mean share of repeats won; with one repeat it is McNemar's",
}


def win_test(repeats: int) -> tuple[str, list[str]]:
    """The name of the test of wins, and the columns that count discordant tasks."""
    if repeats == 1:
        return "McNemar", ["only first won", "only second won"]
    return "permutation", ["first won more often", "second won more often"]


def _better(sides: Sequence[tuple[Sequence[Episode], Sequence[Episode]]]) -> Cell:
    """The number of tasks that the first of two sides won more often than the second."""
    better = [first for first, second in sides if wins_of(first) > wins_of(second)]
    won = [episode for repeats in better for episode in repeats if episode.success]
    return linked(count(len(better)), won)


def square_of(run: Run) -> list[str]:
    """S or A, B, C and D, if the run has these arms and they are what their names say."""
    for ground in GROUNDS:
        corners = [ground, *"BCD"]
        if {*corners} <= {*run.conditions} and all(
            described(run.settings(name)).partition(" ")[0] == name for name in corners
        ):
            return corners
    return []


def square_tables(run: Run) -> Iterator[Table]:
    """Rules x memory; of joined runs with equal labels one table for each run."""
    if table := square_table(run):
        yield table
        return
    for place, (name, part) in enumerate(named_parts(run) if run.origins else (), start=1):
        if table := square_table(part):
            yield replace(table, id=f"square-{place}", title=f"{table.title}: {name}")


def square_table(run: Run) -> Table | None:
    """Rules x memory with the interaction; None unless B, C, D and S or A are among the arms."""
    if not (corners := square_of(run)):
        return None
    ground = corners[0]
    metric = metric_of(run.manifest.env)
    sides = [per_task(run.judged(name), lambda e: merit(e, metric)) for name in corners]
    tasks = shared_tasks(*sides)
    g, b, c, d = ([side[task] for task in tasks] for side in sides)

    def step(values: Sequence[float], base: Sequence[float]) -> Cell:
        gained = mean([x - y for x, y in zip(values, base, strict=True)])
        return gain(gained.value, gained.interval, metric)

    def level(values: Sequence[float]) -> Cell:
        value = average(values)
        return number(value) if metric == "score" else percent(value)

    together, interval = interaction(g, b, c, d)
    rows = [
        [label("memory off"), level(g), level(b), step(b, g)],
        [label("memory on"), level(c), level(d), step(d, c)],
        [label("gain of memory"), step(c, g), step(d, b), gain(together, interval, metric)],
    ]
    unit = "points of score" if metric == "score" else "percentage points"
    notes = [
        f"Over the {quantity(len(tasks), 'task')} that all four conditions finished. The last cell "
        f"is the interaction (D - {ground}) - (B - {ground}) - (C - {ground}). If it is above 0, "
        "rules and memory together gain more than the sum of their separate gains. Gains are in "
        f"{unit}; intervals are paired bootstraps over tasks.",
        GROUNDS[ground],
    ]
    return Table(
        "square", "Rules x memory", source_of(run),
        ["", "rules off", "rules on", "gain of rules"], rows, notes=notes, total=True,
    )  # fmt: skip


def outcomes(run: Run, condition: str) -> list[list[bool]]:
    """The successes of each task's repeats; tasks with a missing repeat or an error are omitted."""
    ends_of = by_task(run.judged(condition)).values()
    return [[e.success for e in ends] for ends in ends_of if len(ends) == run.repeats]


def pass_hat(tasks: Sequence[Sequence[bool]], k: int) -> float | None:
    if not tasks:
        return None
    return fmean(comb(sum(ends), k) / comb(len(ends), k) for ends in tasks)


def flip_rate(tasks: Sequence[Sequence[bool]]) -> float | None:
    """The share of tasks that were both won and lost."""
    return fmean(0 < sum(ends) < len(ends) for ends in tasks) if tasks else None


def repeat_table(run: Run) -> Table | None:
    if run.repeats < 2 or run.pooled:
        return None
    powers = sorted({1, 2, run.repeats})
    rows = []
    for name in run.conditions:
        tasks = outcomes(run, name)
        rows.append([
            label(condition_title(name)), count(len(tasks)),
            *(percent(pass_hat(tasks, k)) for k in powers),
            percent(flip_rate(tasks)),
        ])  # fmt: skip
    columns = ["condition", "tasks", *(f"pass^{k}" for k in powers), "flip rate"]
    return Table(
        "repeats", f"{run.repeats} repeats", source_of(run), columns, rows,
        notes=["pass^k is the probability that k repeats of a task all succeed. The flip rate is "
               "the share of tasks that were both won and lost. Tasks with a missing repeat or an "
               "error are left out of this table."],
    )  # fmt: skip


def trial_table(run: Run) -> Table | None:
    """One row per arm: the share of tasks won by the first trial, by the second, and so on."""
    if run.trials < 2:
        return None
    rows = [[label(condition_title(name)), *_won_by(run, name)] for name in run.conditions]
    columns = ["condition", "tasks", *(f"by trial {n}" for n in range(1, run.trials + 1))]
    return Table(
        "trials", f"Up to {run.trials} trials of a task", source_of(run), columns, rows,
        notes=["A task is tried again until it is won. The step logs show the cross-trial memory. "
               "The other tables use the last trial of each task, so their figures are not "
               "comparable with those of a single trial."],
    )  # fmt: skip


def _won_by(run: Run, name: str) -> Iterator[Cell]:
    judged = run.judged(name)
    yield count(len(by_task(judged)))
    for trial in range(1, run.trials + 1):
        side = [e for e in judged if _won_within(e, trial)]
        won = rate_of(judged, partial(_won_within, trial=trial))
        yield linked(percent(won.share, won.interval, f"{won.wins}/{won.n}"), side)


def _won_within(episode: Episode, trial: int) -> bool:
    return episode.success and episode.trial <= trial
