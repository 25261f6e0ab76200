"""The tables of results: main, by type, by task, pairwise, rules x memory, repeats, trials.

Each is the frame of episodes grouped by arm, or by arm and run. pass^k is the probability that k
independent repeats of a task all succeed. Its unbiased estimate from n repeats is
C(wins, k) / C(n, k), averaged over tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING

from rpms.evals.analysis.arm_differences import comparisons, difference_text
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.joined_runs import named_parts
from rpms.evals.analysis.measures import (
    DIGITS,
    Interval,
    Mean,
    Pair,
    holm,
    mean_interval,
    pair,
    per_task,
    task_mean,
)
from rpms.evals.analysis.report.source import borrowed_memory, short_type
from rpms.evals.analysis.tables import (
    NONE,
    Cell,
    Table,
    count,
    counted,
    label,
    mean_cell,
    number,
    p_value,
    percent,
    points,
    share_cell,
)
from rpms.evals.records.conditions import described
from rpms.evals.records.run_folder import EPISODES, Run
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.output import quantity, with_article

if TYPE_CHECKING:
    from pandas import DataFrame

GROUNDS = {
    "S": "Without rules and memory the condition is S, the state alone. B, C and D show the state "
    "too, so the gains are those of rules and memory.",
    "A": "Without rules and memory the condition is A, because this run has no condition S. A "
    "lacks the state that B, C and D show, so part of each gain over A may be due to the state.",
}
"""The reference condition of the square, the better one first, and its meaning for the gains."""
SWITCHES = ("rules", "memory")
UNITS = {"success": "success rate", "floored": "mean floored score"}
FIGURES = {
    "success": "Success rate, won/decided episodes and 95% interval",
    "floored": "Mean floored score and 95% interval",
}


def figure(side: DataFrame, metric: str, *link: tuple[str, str]) -> Cell:
    """The primary figure of some episodes, with its interval."""
    mean = task_mean(side, metric)
    cell = mean_cell(mean)
    if metric == "success":
        won, n = int(side.success.sum()), len(side)
        cell = share_cell(mean, f"{won}/{n}" if n else "")
        cell = replace(cell, value={**cell.value, "won": won, "n": n})
    return replace(cell, link=(("counted", "1"), *link)) if len(side) else cell


def primary(data: Results, side: DataFrame) -> Mean:
    """The primary figure on a scale of 0 to 100, with its interval over tasks."""
    mean = task_mean(side, data.metric)
    if data.metric == "floored" or mean.value is None:
        return mean
    span = mean.interval and Interval(100 * mean.interval.low, 100 * mean.interval.high)
    return Mean(100 * mean.value, span)


def gain(difference: Mean, metric: str) -> Cell:
    """A difference in the primary figure: percentage points, or points of score."""
    if metric == "success":
        return points(difference.value, difference.interval)
    return mean_cell(difference, "+.1f")


def main_table(data: Results) -> Table:
    """One row per arm: the primary figure, the gain over the first arm, errors."""
    run, first = data.run, data.arms[0]
    switches = {name: [run.settings(name).get(part) for part in SWITCHES] for name in data.arms}
    parts = SWITCHES if len({*map(repr, switches.values())}) > 1 else ()
    rows = []
    for name, side in data.sides.items():
        gained = (
            Cell("") if name == first else gain(tested(data, (first, name)).difference, data.metric)
        )
        on = [label("on" if switch else "off") for switch in switches[name] if parts]
        errors = data.played[(data.played.condition == name) & data.played.is_error]
        rows.append([
            label(condition_title(name)), *on, *_main_cells(data, side, name), gained,
            *_spread(data, side),
            counted(len(errors), ("c", name), ("o", "error")), count(run.unplayed(name)),
        ])  # fmt: skip
    columns = ["condition", *parts, *_main_columns(data), f"gain over {first}"]
    columns += [*SPREAD] if run.pooled else []
    notes = [
        "Brackets are 95% intervals: Wilson for rates, bootstrap over tasks for scores and gains. "
        "If all tasks have the same value, there is no bootstrap interval. Gains are over the "
        f"tasks that the condition and {first} both finished.",
        *_repeat_note(data),
        *borrowed_memory(run),
        *missing_notes(data),
    ]
    return Table(
        "main", "Results by condition", [*columns, "errors", "not run"], rows,
        notes=notes,
    )  # fmt: skip


def _main_columns(data: Results) -> list[str]:
    scored = ["score (floored)", "score (raw)"] if data.metric == "floored" else []
    return ["episodes", *scored, "won", "success rate"]


def _main_cells(data: Results, side: DataFrame, name: str, *link: tuple[str, str]) -> list[Cell]:
    scores = ("floored", "score") if data.metric == "floored" else ()
    link = (("counted", "1"), ("c", name), *link)
    return [
        counted(len(side), *link),
        *(mean_cell(task_mean(side, score)) for score in scores),
        counted(int(side.success.sum()), *link, ("o", "won")),
        share_cell(task_mean(side, "success")),
    ]


SPREAD = ("SD over runs", "min-max")


def _spread(data: Results, side: DataFrame) -> Iterator[Cell]:
    """Of several runs, the standard deviation and the range of the primary figure."""
    if not data.run.pooled:
        return
    scale = 100 if data.metric == "success" else 1
    values = scale * side.groupby(["run", "task"], observed=True)[data.metric].mean().groupby(
        "run", observed=True).mean()  # fmt: skip
    yield number(float(values.std()) if len(values) > 1 else None)
    if not len(values):
        yield Cell(NONE)
        return
    low, high = float(values.min()), float(values.max())
    yield Cell(f"{low:.1f}-{high:.1f}", value={"range": f"{low:.1f}-{high:.1f}", "low": low,
                                               "high": high})  # fmt: skip


def run_table(data: Results) -> Table:
    """The main figures of each run; of runs as separate arms, the gain over the run's first."""
    run, columns = data.run, ["condition", "run"]
    if run.pooled:
        rows = [
            [label(condition_title(arm)), label(name),
             *_main_cells(data, side, arm, ("run", name))]
            for (arm, name), side in data.by("condition", "run")
        ]  # fmt: skip
        columns += _main_columns(data)
        title, notes = "Results by run", ["The figures of the main table, run by run."]
    else:
        rows = [*_separate_runs(data)]
        columns = [
            "run",
            "condition",
            "score" if data.metric == "floored" else "success rate",
            "gain",
        ]
        title, notes = "Results by model", [
            f"{FIGURES[data.metric]}, over the tasks that all runs share. Gains are over the first "
            "condition of the same run."
        ]  # fmt: skip
    return Table("runs", title, columns, rows, notes=notes, labels=2)


def _separate_runs(data: Results) -> Iterator[list[Cell]]:
    """The paper's table of models: the arms of each run, with the gain over its first."""
    run, models = data.run, [part.manifest.model_label for part in data.run.parts]
    labels = {origin: label for label, origin in run.origins.items()}
    for (name, part), model in zip(named_parts(run), models, strict=True):
        first = labels[part.folder, part.conditions[0]]
        head = label(model if models.count(model) == 1 else name)
        for arm in part.conditions:
            side = labels[part.folder, arm]
            gained = gain(tested(data, (first, side)).difference, data.metric)
            yield [
                head, label(condition_title(arm)),
                figure(data.sides[side], data.metric, ("c", side)),
                Cell(NONE) if side == first else gained,
            ]  # fmt: skip


def _repeat_note(data: Results) -> Iterator[str]:
    if data.run.repeats > 1:
        what = "runs" if data.run.pooled else "repeats"
        of = f"{quantity(len(data.runs), 'run')}: {', '.join(data.runs)}" if data.run.pooled else (
            f"Up to {data.run.repeats} repeats of a task")  # fmt: skip
        yield (
            f"{of}. In every rate, score, gain and test each task counts once, with the mean over "
            f"its {what} that ended without an error. Intervals are over tasks (bootstrap, but "
            "Wilson for rates if each task was won always or never). The columns 'episodes' and "
            "'won' count episodes."
        )


def missing_notes(data: Results) -> Iterator[str]:
    """Notes on episodes that the figures leave out."""
    run, played = data.run, data.played
    for mode, n in played[played.is_error].groupby("failure_mode").size().items():
        yield (
            f"{n} of {quantity(run.done, 'episode')} ended in "
            f"{with_article(str(mode).replace('_', ' '))}. They are left out of every rate and "
            "pair and counted in the column 'errors'."
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
    if unread := int((~data.episodes.logged.astype(bool)).sum()):
        logs = quantity(unread, "step log")
        yield (
            f"Missing or damaged: {logs}. Such an episode counts in rates and pairs, but not in "
            "figures about steps."
        )
    tasks = len(run.manifest.tasks)
    fewer = {arm: n for arm, side in data.sides.items() if (n := side.task.nunique()) < tasks}
    if run.pooled and fewer:
        arms = ", ".join(f"{arm} {n}" for arm, n in fewer.items())
        yield (
            "An arm is compared on the tasks that every run has finished in it without an error: "
            f"{arms} of {quantity(tasks, 'task')}."
        )


def unfinished(run: Run) -> str:
    which = "These runs are" if run.parts else "This run is"
    return f"{which} not finished: {run.done} of {run.planned} episodes are done."


def type_table(data: Results) -> Table:
    """The paper's table of task types: one row per arm, one column per goal type or family."""
    run = data.run
    sizes: dict[str, int] = dict.fromkeys(sorted({task.type for task in run.manifest.tasks}), 0)
    for task in run.manifest.tasks:
        sizes[task.type] += 1
    rows = []
    for arm, side in data.sides.items():
        rows.append([
            label(condition_title(arm)),
            *(_plain(figure(side[side.type == kind], data.metric, ("c", arm), ("t", kind)))
              for kind in sizes),
            _plain(figure(side, data.metric, ("c", arm))),
        ])  # fmt: skip
    columns = [f"{short_type(run, kind)} ({n})" for kind, n in sizes.items()]
    return Table(
        "types", f"Results by {'family' if data.metric == 'floored' else 'goal type'}",
        ["condition", *columns, f"all ({len(run.manifest.tasks)})"], rows,
        notes=[f"The {UNITS[data.metric]}. In brackets: the number of tasks."],
    )  # fmt: skip


def _plain(cell: Cell) -> Cell:
    return replace(cell, note="")


def task_kinds(data: Results) -> list[str]:
    """The prefixes of the task ids, ``boil`` of ``boil/21``.

    Empty if they are neither tasks of a benchmark nor a refinement of the goal types.
    """
    tasks = data.run.manifest.tasks
    kinds = {task.id.rpartition("/")[0] for task in tasks}
    meaningful = data.metric == "floored" or bool(kinds & {task.type for task in tasks})
    return sorted(kinds) if meaningful and all(kinds) else []


def task_table(data: Results) -> Table:
    """One row per prefix of the task ids."""
    prefixes = {arm: side.task.str.rpartition("/")[0] for arm, side in data.sides.items()}
    rows = [
        [label(re.sub("[-_]", " ", kind)),
         *(figure(side[prefixes[arm] == kind], data.metric, ("c", arm), ("task", f"{kind}/"))
           for arm, side in data.sides.items())]
        for kind in task_kinds(data)
    ]  # fmt: skip
    rows.append(
        [label("all"), *(figure(side, data.metric, ("c", arm)) for arm, side in data.sides.items())]
    )
    return Table(
        "tasks", "Results by task", ["", *map(condition_title, data.arms)],
        rows, notes=[f"{FIGURES[data.metric]}."], total=True,
    )  # fmt: skip


def tested(data: Results, arms: Sequence[str]) -> Pair:
    """The test of two arms, made once for table, verdict and figure."""
    first, second = arms[:2]
    if (first, second) not in data.pairs:
        sides = data.sides[first], data.sides[second]
        data.pairs[first, second] = pair(*sides, data.metric, data.run.pooled)
    return data.pairs[first, second]


TESTS = {
    "McNemar": "McNemar's test is exact and two-sided",
    "permutation": "The permutation test is two-sided: it exchanges the two conditions task by "
    "task and compares the mean share of repeats or runs won; it counts all patterns up to 14 "
    "tasks that differ, and draws 19,999 beyond. With one repeat it is McNemar's",
}


def pair_table(data: Results) -> Table:
    """The pairs of the verdict, task by task."""
    run, chosen = data.run, [each[:2] for each in comparisons(data.run)]
    pairs = [tested(data, each) for each in chosen]
    scored = data.metric == "floored"
    exact, ranks = (holm([getattr(test, p) for test in pairs]) for p in ("p_wins", "p"))
    rows = []
    for (first, second), paired, p, ranked in zip(chosen, pairs, exact, ranks, strict=True):
        rows.append([
            label(condition_title(first)), label(condition_title(second)), count(paired.n),
            gain(paired.difference, data.metric),
            *([p_value(paired.p), p_value(ranked)] if scored else []),
            count(paired.only_first), count(paired.only_second), p_value(paired.p_wins),
            p_value(p),
            label(difference_text(run.manifest, first, second)),
        ])  # fmt: skip
    test, won = "McNemar", ["only first won", "only second won"]
    if run.repeats > 1:
        test, won = "permutation", ["first won more often", "second won more often"]
    score = "permutation p of scores" if run.pooled else "Wilcoxon p"
    columns = ["first", "second", "tasks", "second - first"]
    columns += [score, f"{score}, Holm"] if scored else []
    notes = [
        f"Over the tasks that both conditions finished without an error. {TESTS[test]}; Holm's "
        "columns correct for the number of pairs in this table.",
        "'differ in' lists settings, and custom code by import path. Memory files, manuals and "
        "code of the same path are compared by checksum. state_block is the goal and the state in "
        "the prompt, which rules and memory always show.",
    ]
    return Table(
        "pairs", "Pairwise comparisons",
        [*columns, *won, f"{test} p", f"{test} p, Holm", "differ in"], rows, notes=notes, labels=2,
        remark=True,
    )  # fmt: skip


def square_of(run: Run) -> list[str]:
    """S or A, B, C and D, if the run has these arms and they are what their names say."""
    for ground in GROUNDS:
        corners = [ground, *"BCD"]
        if {*corners} <= {*run.conditions} and all(
            described(run.settings(name)).partition(" ")[0] == name for name in corners
        ):
            return corners
    return []


def square_table(data: Results) -> Table:
    """Rules x memory with the interaction, over the tasks that all four arms finished."""
    import pandas

    metric, corners = data.metric, square_of(data.run)
    sides = {arm: per_task(data.sides[arm], metric) for arm in corners}
    tasks = pandas.DataFrame(sides).dropna().reindex(
        [task for task in sides[corners[0]].index if all(task in s.index for s in sides.values())]
    )  # fmt: skip
    ground, b, c, d = (tasks[arm] for arm in corners)

    def step(after: pandas.Series, before: pandas.Series) -> Cell:
        gains = (after - before).round(DIGITS)
        return gain(Mean(gains.mean(), mean_interval(gains)) if len(gains) else Mean(), metric)

    def level(values: pandas.Series) -> Cell:
        value = values.mean() if len(values) else None
        return number(value) if metric == "floored" else percent(value)

    rows = [
        [label("memory off"), level(ground), level(b), step(b, ground)],
        [label("memory on"), level(c), level(d), step(d, c)],
        [label("gain of memory"), step(c, ground), step(d, b), step(d - b, c - ground)],
    ]
    unit = "points of score" if metric == "floored" else "percentage points"
    name = corners[0]
    notes = [
        f"Over the {quantity(len(tasks), 'task')} that all four conditions finished. The last cell "
        f"is the interaction (D - {name}) - (B - {name}) - (C - {name}). If it is above 0, "
        "rules and memory together gain more than the sum of their separate gains. Gains are in "
        f"{unit}; intervals are paired bootstraps over tasks.",
        GROUNDS[name],
    ]
    return Table(
        "square", "Rules x memory",
        ["", "rules off", "rules on", "gain of rules"], rows, notes=notes, total=True,
    )  # fmt: skip


def repeat_table(data: Results) -> Table:
    """pass^k and the flip rate; tasks with a missing repeat or an error are left out."""
    repeats = data.run.repeats
    powers, rows = sorted({1, 2, repeats}), []
    for name, side in data.sides.items():
        tasks = side.groupby("task", sort=False).success.agg(["sum", "size"])
        wins = tasks[tasks["size"] == repeats]["sum"]
        passed = [wins.map(lambda won, k=k: comb(won, k) / comb(repeats, k)) for k in powers]
        flips = (wins > 0) & (wins < repeats)
        figures = (percent(each.mean() if len(wins) else None) for each in (*passed, flips))
        rows.append([label(condition_title(name)), count(len(wins)), *figures])
    columns = ["condition", "tasks", *(f"pass^{k}" for k in powers), "flip rate"]
    return Table(
        "repeats", f"{repeats} repeats", columns, rows,
        notes=["pass^k is the probability that k repeats of a task all succeed. The flip rate is "
               "the share of tasks that were both won and lost. Tasks with a missing repeat or an "
               "error are left out of this table."],
    )  # fmt: skip


def trial_table(data: Results) -> Table:
    """One row per arm: the share of tasks won by the first trial, by the second, and so on."""
    trials, rows = range(1, data.run.trials + 1), []
    for name, side in data.sides.items():
        within = (side.assign(success=side.success & (side.trial <= trial)) for trial in trials)
        shares = (_plain_wins(figure(each, "success", ("c", name))) for each in within)
        rows.append([label(condition_title(name)), count(side.task.nunique()), *shares])
    columns = ["condition", "tasks", *(f"by trial {n}" for n in trials)]
    return Table(
        "trials", f"Up to {data.run.trials} trials of a task", columns, rows,
        notes=["A task is tried again until it is won. The step logs show the cross-trial memory. "
               "The other tables use the last trial of each task, so their figures are not "
               "comparable with those of a single trial."],
    )  # fmt: skip


def _plain_wins(cell: Cell) -> Cell:
    """Without the counts among the data, which the text has."""
    return replace(cell, value={n: v for n, v in cell.value.items() if n not in ("won", "n")})
