"""The tables about who won: main, by type, every pair, and rules x memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from rpms.evals.conditions import effective
from rpms.evals.measures import (
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
    rate,
    shared_tasks,
)
from rpms.evals.records import Episode
from rpms.evals.report.provenance import borrowed_memory
from rpms.evals.report.source import names, short_type, source_of
from rpms.evals.run_folder import Run
from rpms.evals.tables import (
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

SQUARE = ("A", "B", "C", "D")


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
        *borrowed_memory(run),
        *_missing(run),
    ]
    return Table(
        "main", "Results by condition", source_of(run), [*columns, "errors", "not played"], rows,
        notes=notes,
    )  # fmt: skip


def _main_row(run: Run, name: str, metric: Metric) -> Iterator[Cell]:
    judged, played = run.judged(name), run.played(name)
    yield label(names(name))
    yield counted(judged)
    if metric == "score":
        for values in ([e.floored for e in judged], [e.score for e in judged]):
            found = mean(values)
            yield number(found.value, ".1f", found.interval)
    won = rate(judged)
    yield counted([e for e in judged if e.success])
    yield percent(won.share, won.interval)
    if name == run.conditions[0]:
        yield Cell("")
    else:
        versus = pair(run.judged(run.conditions[0]), judged, metric)
        yield gain(versus.difference, versus.interval, metric)
    yield counted([e for e in played if e.is_error])
    yield count(len(run.manifest.tasks) - len(played))


def gain(difference: float | None, interval: Interval | None, metric: Metric) -> Cell:
    """A difference in the primary figure: percentage points, or points of score."""
    if metric == "success":
        return points(difference, interval)
    return number(difference, "+.1f", interval)


def _missing(run: Run) -> Iterator[str]:
    """What the figures leave out, in words."""
    errors = [e for name in run.conditions for e in run.played(name) if e.is_error]
    for mode in sorted({e.failure_mode or "" for e in errors}):
        n = sum(e.failure_mode == mode for e in errors)
        yield (
            f"{n} of {run.done} episodes ended in {'an' if mode[0] in 'aeiou' else 'a'} "
            f"{mode.replace('_', ' ')}: left out of every rate and pair, counted under errors."
        )
    if not run.complete:
        yield (
            f"This run is not finished: {run.done} of {run.planned} episodes are there. "
            "Conditions may stand on different tasks so far; trust the pairs rather than the rates."
        )
    if run.torn:
        yield "The last line of episodes.jsonl was torn by a kill and is passed over."
    if run.damaged:
        yield (
            f"{len(run.damaged)} damaged lines of episodes.jsonl are left out (the first is line "
            f"{run.damaged[0]}); 'rpms eval' plays their episodes again."
        )
    if run.damaged_logs:
        yield (
            f"{len(run.damaged_logs)} step logs are damaged: their episodes count, their steps "
            "cannot be shown."
        )


def type_table(run: Run) -> Table:
    """Goal types (or families) down, conditions across."""
    title = (
        "Results by family" if metric_of(run.manifest.env) == "score" else "Results by goal type"
    )
    return _breakdown(run, "types", title, groups(run), lambda e: e.type)


def task_table(run: Run) -> Table:
    """The tasks of a world whose task ids are name/variation."""

    def name_of(episode: Episode) -> str:
        return episode.task.rpartition("/")[0] or episode.task

    found = sorted({task.id.rpartition("/")[0] or task.id for task in run.manifest.tasks})
    return _breakdown(run, "tasks", "Results by task", found, name_of)


def _breakdown(
    run: Run, key: str, title: str, kinds: Sequence[str], kind_of: Callable[[Episode], str]
) -> Table:
    metric = metric_of(run.manifest.env)
    judged = {name: run.judged(name) for name in run.conditions}
    rows = [
        [
            label(short_type(run, kind)),
            *(figure([e for e in judged[c] if kind_of(e) == kind], metric) for c in judged),
        ]
        for kind in kinds
    ]
    rows.append([label("all"), *(figure(judged[name], metric) for name in judged)])
    what = "Mean floored score" if metric == "score" else "Success rate, won/played"
    return Table(
        key, title, source_of(run), ["", *map(names, run.conditions)], rows,
        notes=[f"{what}, and its 95% interval."], total=True,
    )  # fmt: skip


def figure(episodes: Sequence[Episode], metric: Metric) -> Cell:
    """The primary figure of some episodes, with its interval."""
    if metric == "score":
        found = mean([e.floored for e in episodes])
        return linked(number(found.value, ".1f", found.interval), episodes)
    won = rate(episodes)
    cell = percent(won.share, won.interval, f"{won.wins}/{won.n}" if won.n else "")
    cell = Cell(cell.text, cell.note, {**cell.value, "won": won.wins, "n": won.n})
    return linked(cell, episodes)


def pair_table(run: Run) -> Table:
    """Every pair of conditions, task by task."""
    metric = metric_of(run.manifest.env)
    chosen = list(combinations(run.conditions, 2))
    pairs = [pair(run.judged(a), run.judged(b), metric) for a, b in chosen]
    exact = holm([found.p for found in pairs])
    ranks = holm([found.p_score for found in pairs])
    rows = []
    for (a, b), found, p, ranked in zip(chosen, pairs, exact, ranks, strict=True):
        left, right, only_first, only_second = compared(run.judged(a), run.judged(b))
        row = [label(names(a)), label(names(b)), linked(count(found.n), [*left, *right])]
        row.append(gain(found.difference, found.interval, metric))
        if metric == "score":
            row += [p_value(found.p_score), p_value(ranked)]
        row += [counted(only_first), counted(only_second), p_value(found.p), p_value(p)]
        rows.append(row)
    scored = ["Wilcoxon p", "Wilcoxon p, Holm"] if metric == "score" else []
    columns = ["first", "second", "tasks", "second - first", *scored]
    columns += ["only first won", "only second won", "McNemar p", "McNemar p, Holm"]
    notes = [
        "Over the tasks that both conditions finished without an error. McNemar's test is exact "
        "and two-sided; Holm's columns correct for the number of pairs in this table."
    ]
    return Table(
        "pairs", "Every pair of conditions", source_of(run), columns, rows, notes=notes, labels=2
    )


def compared(first: Sequence[Episode], second: Sequence[Episode]) -> list[list[Episode]]:
    """Both sides of the shared tasks, and the wins of tasks that the other side lost."""
    left, right = by_task(first), by_task(second)
    pairs = [(left[task], right[task]) for task in shared_tasks(left, right)]
    return [
        [a for a, _ in pairs],
        [b for _, b in pairs],
        [a for a, b in pairs if a.success and not b.success],
        [b for a, b in pairs if b.success and not a.success],
    ]


def square_of(run: Run) -> list[str]:
    """A, B, C and D: as such, or the only four of these letters with the same changes to each."""
    if set(SQUARE) <= set(run.conditions):
        return list(SQUARE)
    found = {
        letter: [n for n in run.conditions if re.split(r"[ +]", n)[0] == letter]
        for letter in SQUARE
    }
    if any(len(mine) != 1 for mine in found.values()):
        return []
    corners = [mine[0] for mine in found.values()]
    settings = [effective(run.manifest.conditions[name]) for name in corners]
    names_ = {name for each in settings for name in each} - {"rules", "memory"}
    alike = all(len({repr(e[name]) for e in settings if name in e}) == 1 for name in names_)
    return corners if alike else []


def square_table(run: Run) -> Table | None:
    """Rules x memory with the interaction term; None unless A, B, C and D are all there."""
    corners = square_of(run)
    if not corners:
        return None
    metric = metric_of(run.manifest.env)
    sides = [by_task(run.judged(name)) for name in corners]
    tasks = shared_tasks(*sides)
    a, b, c, d = ([merit(side[task], metric) for task in tasks] for side in sides)

    def step(values: Sequence[float], base: Sequence[float]) -> Cell:
        found = mean([x - y for x, y in zip(values, base, strict=True)])
        return gain(found.value, found.interval, metric)

    def level(values: Sequence[float]) -> Cell:
        found = average(values)
        return number(found) if metric == "score" else percent(found)

    together, interval = interaction(a, b, c, d)
    rows = [
        [label("memory off"), level(a), level(b), step(b, a)],
        [label("memory on"), level(c), level(d), step(d, c)],
        [label("gain of memory"), step(c, a), step(d, b), gain(together, interval, metric)],
    ]
    unit = "points of score" if metric == "score" else "percentage points"
    notes = [
        f"Over the {len(tasks)} tasks that all four conditions finished. The last cell is the "
        "interaction (D - A) - (B - A) - (C - A): above 0, rules and memory together give more "
        f"than the sum of each alone. Gains in {unit}; intervals by paired bootstrap over tasks.",
    ]
    if corners != list(SQUARE):
        notes.append(f"The four conditions: {'; '.join(corners)}.")
    return Table(
        "square", "Rules x memory", source_of(run),
        ["", "rules off", "rules on", "gain of rules"], rows, notes=notes, total=True,
    )  # fmt: skip
