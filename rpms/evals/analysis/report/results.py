"""The tables about who won: main, by type, every pair, rules x memory, repeats, trials.

pass^k is the chance that k independent repeats of a task all succeed, estimated without bias from
the n that were played: C(wins, k) / C(n, k), averaged over tasks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
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
from rpms.evals.analysis.report.source import borrowed_memory, names, short_type, source_of
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
from rpms.evals.records.conditions import effective
from rpms.evals.records.run_folder import EPISODES, Run
from rpms.evals.records.schema import Episode
from rpms.vocabulary.output import quantity, with_article

GROUNDS = {
    "S": "Rules off and memory off is S, the state alone, which B, C and D show too: the gains are "
    "those of rules and memory.",
    "A": "Rules off and memory off is A, since no condition S was played: A lacks the state that "
    "B, C and D show, and part of each gain over A may be the state's.",
}
"""What rules and memory stand on, the better one first, and what that means for the gains."""
FIGURES = {"success": "Success rate, won/played", "score": "Mean floored score"}


def main_table(run: Run) -> Table:
    """One row per condition: the primary figure, the gain over the baseline, what is missing."""
    metric = metric_of(run.manifest.env)
    first = run.conditions[0]
    scored = ["score (floored)", "score (raw)"] if metric == "score" else []
    columns = ["condition", "played", *scored, "won", "success rate", f"gain over {first}"]
    rows = [[*_main_row(run, name, metric)] for name in run.conditions]
    notes = [
        "Brackets are 95% intervals: Wilson for rates, bootstrap over tasks for scores and gains. "
        "Where all tasks agree there is nothing to resample and no interval. Gains are over the "
        f"tasks that the condition and {first} both finished.",
        *_counting(run),
        *borrowed_memory(run),
        *_missing(run),
    ]
    return Table(
        "main", "Results by condition", source_of(run), [*columns, "errors", "not played"], rows,
        notes=notes,
    )  # fmt: skip


def _counting(run: Run) -> Iterator[str]:
    """How repeats are counted, where there are several."""
    if run.repeats > 1:
        yield (
            f"Up to {run.repeats} repeats of a task: in every rate, score, gain and test each task "
            "counts once, with the mean over its repeats that ended without an error. Intervals "
            "are over tasks (of a rate by bootstrap, unless each task was won always or never). "
            "Counts, such as 'played' and 'won', are of episodes."
        )


def _main_row(run: Run, name: str, metric: Metric) -> Iterator[Cell]:
    judged, played = run.judged(name), run.played(name)
    yield label(names(name))
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
    yield counted([e for e in played if e.is_error])
    yield count(run.unplayed(name))


def gain(difference: float | None, interval: Interval | None, metric: Metric) -> Cell:
    """A difference in the primary figure: percentage points, or points of score."""
    if metric == "success":
        return points(difference, interval)
    return number(difference, "+.1f", interval)


def run_table(run: Run) -> Table | None:
    """The paper's table: a row for each model, or run, and a column for each condition."""
    if not run.parts:
        return None
    metric, models = metric_of(run.manifest.env), [p.manifest.model_label for p in run.parts]
    labels = {home: label for label, home in run.homes.items()}
    arms = list(dict.fromkeys(own for _, own in labels))
    rows = []
    for (name, part), model in zip(named_parts(run), models, strict=True):
        sides = [labels.get((part.folder, own)) for own in arms]
        figures = [figure(run.judged(side), metric) if side else Cell(NONE) for side in sides]
        rows.append([label(model if models.count(model) == 1 else name), *figures])
    return Table(
        "runs", "Runs x conditions", source_of(run), ["", *map(names, arms)], rows,
        notes=[f"{FIGURES[metric]}, and its 95% interval, over the tasks that all runs have."],
    )  # fmt: skip


def _missing(run: Run) -> Iterator[str]:
    """What the figures leave out, in words."""
    errors = [e for name in run.conditions for e in run.played(name) if e.is_error]
    for mode in sorted({e.failure_mode or "" for e in errors}):
        n = sum(e.failure_mode == mode for e in errors)
        yield (
            f"{n} of {quantity(run.done, 'episode')} ended in "
            f"{with_article(mode.replace('_', ' '))}: left out of every rate and pair, counted "
            "under errors."
        )
    if not run.complete:
        yield f"{unfinished(run)} Trust the pairs rather than the rates: tasks may differ so far."
    for name, part in named_parts(run):
        file = Path(name, EPISODES)
        if part.torn:
            yield f"The last line of {file} was torn by a kill and is passed over."
        if part.damaged:
            lines = f"{quantity(len(part.damaged), 'damaged line')} of {file}"
            first = f"the first is line {part.damaged[0]}"
            yield f"Left out: {lines} ({first}); 'rpms eval' plays such episodes again."
    if unread := len(run.episodes) - len(analyses(run, run.episodes.values())):
        logs = quantity(unread, "step log")
        yield f"Missing or damaged: {logs}. Such an episode counts, but no figure of its steps."


def unfinished(run: Run) -> str:
    """How much of a run is not there yet."""
    which = "These runs are" if run.parts else "This run is"
    return f"{which} not finished: {run.done} of {run.planned} episodes are there."


def type_table(run: Run) -> Table:
    """Goal types (or families) down, conditions across."""
    title = (
        "Results by family" if metric_of(run.manifest.env) == "score" else "Results by goal type"
    )
    kinds = {kind: short_type(run, kind) for kind in groups(run)}
    return _grouped(run, "types", title, kinds, lambda episode: episode.type)


def task_table(run: Run) -> Table | None:
    """The same by what comes before the number in a task's name: ``boil`` for ``boil/21``.

    None where that names neither tasks of a benchmark nor the goal types, some told apart.
    """
    kinds = {task.id.rpartition("/")[0] for task in run.manifest.tasks}
    named = metric_of(run.manifest.env) == "score" or bool(kinds & {*groups(run)})
    if not named or not all(kinds):
        return None
    words = {kind: re.sub("[-_]", " ", kind) for kind in sorted(kinds)}
    return _grouped(run, "tasks", "Results by task", words, lambda e: e.task.rpartition("/")[0])


def _grouped(
    run: Run, name: str, title: str, kinds: Mapping[str, str], kind_of: Callable[[Episode], str]
) -> Table:
    metric = metric_of(run.manifest.env)
    judged = {condition: run.judged(condition) for condition in run.conditions}
    rows = [
        [
            label(words),
            *(figure([e for e in side if kind_of(e) == kind], metric) for side in judged.values()),
        ]
        for kind, words in kinds.items()
    ]
    rows.append([label("all"), *(figure(side, metric) for side in judged.values())])
    return Table(
        name, title, source_of(run), ["", *map(names, run.conditions)], rows,
        notes=[f"{FIGURES[metric]}, and its 95% interval."], total=True,
    )  # fmt: skip


def figure(episodes: Sequence[Episode], metric: Metric) -> Cell:
    """The primary figure of some episodes, with its interval."""
    if metric == "score":
        score = task_mean(episodes, lambda e: e.floored)
        return linked(number(score.value, ".1f", score.interval), episodes)
    won = rate(episodes)
    cell = percent(won.share, won.interval, f"{won.wins}/{won.n}" if won.n else "")
    cell = Cell(cell.text, cell.note, {**cell.value, "won": won.wins, "n": won.n})
    return linked(cell, episodes)


def pair_table(run: Run) -> Table | None:
    """Every pair of conditions, task by task; None where there is only one."""
    if len(run.conditions) < 2:
        return None
    metric = metric_of(run.manifest.env)
    chosen = list(combinations(run.conditions, 2))
    pairs = [pair(run.judged(a), run.judged(b), metric) for a, b in chosen]
    exact = holm([test.p for test in pairs])
    ranks = holm([test.p_score for test in pairs])
    rows = []
    for (a, b), paired, p, ranked in zip(chosen, pairs, exact, ranks, strict=True):
        firsts, seconds = by_task(run.judged(a)), by_task(run.judged(b))
        both = [(firsts[task], seconds[task]) for task in shared_tasks(firsts, seconds)]
        tasks = linked(count(paired.n), [e for sides in both for side in sides for e in side])
        row = [label(names(a)), label(names(b)), tasks]
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
        "Differ in: settings, and code of one's own by import path. Memory, manual and code of the "
        "same path are told apart by checksum. state_block is the goal and the state in the "
        "prompt, which rules and memory bring along.",
    ]
    return Table(
        "pairs", "Every pair of conditions", source_of(run), columns, rows, notes=notes, labels=2
    )


TESTS = {
    "McNemar": "McNemar's test is exact and two-sided",
    "permutation": "The permutation test is exact and two-sided: it exchanges the two conditions "
    "task by task and compares the mean share of repeats won; with one repeat it is McNemar's",
}


def win_test(repeats: int) -> tuple[str, list[str]]:
    """The test of wins by name, and the columns that count the tasks in which sides differ."""
    if repeats == 1:
        return "McNemar", ["only first won", "only second won"]
    return "permutation", ["first won more often", "second won more often"]


def _better(sides: Sequence[tuple[Sequence[Episode], Sequence[Episode]]]) -> Cell:
    """The tasks that the first of two sides won more often than the second."""
    better = [first for first, second in sides if wins_of(first) > wins_of(second)]
    won = [episode for repeats in better for episode in repeats if episode.success]
    return linked(count(len(better)), won)


def square_of(run: Run, ground: str, among: Sequence[str]) -> list[str]:
    """Ground, B, C and D: as such, or the only four of these letters with the same changes."""
    square = [ground, "B", "C", "D"]
    if set(square) <= set(among):
        corners = square
    else:
        labels_of = ([n for n in among if re.split(r"[ +]", n)[0] == letter] for letter in square)
        corners = [labels[0] for labels in labels_of if len(labels) == 1]
    settings = [effective(run.manifest.conditions[name]) for name in corners]
    # People may call an arm S as they like.
    if len(corners) < len(square) or settings[0].get("state_block", False) != (ground == "S"):
        return []
    names_ = {name for each in settings for name in each} - {"rules", "memory", "state_block"}
    alike = all(len({repr(e[name]) for e in settings if name in e}) == 1 for name in names_)
    return corners if corners == square or alike else []


def square_tables(run: Run) -> Iterator[Table]:
    """Rules x memory; of runs that were put together for each that has it, if not for all."""
    if table := square_table(run):
        yield table
        return
    for place, (name, part) in enumerate(named_parts(run), start=1):
        arms = [label for label, (folder, _) in run.homes.items() if folder == part.folder]
        if arms and (table := square_table(run, arms)):
            yield replace(table, id=f"square-{place}", title=f"{table.title}: {name}")


def square_table(run: Run, among: Sequence[str] = ()) -> Table | None:
    """Rules x memory with the interaction term; None unless B, C, D and what they stand on are."""
    arms = among or run.conditions
    squares = {ground: corners for ground in GROUNDS if (corners := square_of(run, ground, arms))}
    if not squares:
        return None
    ground, corners = next(iter(squares.items()))
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
        f"is the interaction (D - {ground}) - (B - {ground}) - (C - {ground}): above 0, rules and "
        "memory together give more than the sum of each alone. Gains in "
        f"{unit}; intervals by paired bootstrap over tasks.",
        GROUNDS[ground],
    ]
    if corners != [ground, *"BCD"]:
        notes.append(f"The four conditions: {'; '.join(corners)}.")
    return Table(
        "square", "Rules x memory", source_of(run),
        ["", "rules off", "rules on", "gain of rules"], rows, notes=notes, total=True,
    )  # fmt: skip


def outcomes(run: Run, condition: str) -> list[list[bool]]:
    """By task, how its repeats ended; a task counts once all of them are there without an error."""
    ends_of = by_task(run.judged(condition)).values()
    return [[e.success for e in ends] for ends in ends_of if len(ends) == run.repeats]


def pass_hat(tasks: Sequence[Sequence[bool]], k: int) -> float | None:
    """pass^k over tasks; None without any."""
    if not tasks:
        return None
    return fmean(comb(sum(ends), k) / comb(len(ends), k) for ends in tasks)


def flip_rate(tasks: Sequence[Sequence[bool]]) -> float | None:
    """The share of tasks that were both won and lost."""
    return fmean(0 < sum(ends) < len(ends) for ends in tasks) if tasks else None


def repeat_table(run: Run) -> Table | None:
    """One row per arm: success over all repeats, pass^k and flips."""
    if run.repeats < 2:
        return None
    powers = sorted({1, 2, run.repeats})
    rows = []
    for name in run.conditions:
        tasks = outcomes(run, name)
        rows.append([
            label(names(name)), count(len(tasks)),
            *(percent(pass_hat(tasks, k)) for k in powers),
            percent(flip_rate(tasks)),
        ])  # fmt: skip
    columns = ["condition", "tasks", *(f"pass^{k}" for k in powers), "flip rate"]
    return Table(
        "repeats", f"{run.repeats} repeats", source_of(run), columns, rows,
        notes=["pass^k: all of k repeats of a task succeed. Flip rate: tasks both won and lost. "
               "Tasks of which a repeat is missing or ended in an error are left out here."],
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
    yield count(len(by_task(judged)))
    for trial in range(1, run.trials + 1):
        side = [e for e in judged if _won_within(e, trial)]
        won = rate_of(judged, partial(_won_within, trial=trial))
        yield linked(percent(won.share, won.interval, f"{won.wins}/{won.n}"), side)


def _won_within(episode: Episode, trial: int) -> bool:
    return episode.success and episode.trial <= trial
