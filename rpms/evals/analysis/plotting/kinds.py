"""The data of each kind of plot; the figures are those of the report's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from rpms.evals.analysis.experiment import by_run
from rpms.evals.analysis.measures import (
    Interval,
    average,
    groups,
    holm,
    merit,
    metric_of,
    pair,
    per_task,
    rate,
    task_mean,
)
from rpms.evals.analysis.plotting.charts import (
    IntervalRow,
    Series,
    heat_map,
    interval_rows,
    lines,
    points,
    stacked_bars,
)
from rpms.evals.analysis.report.comparisons import comparisons
from rpms.evals.analysis.report.results import square_of
from rpms.evals.analysis.report.rounds import curves, entries_of
from rpms.evals.analysis.report.rules import run_actions
from rpms.evals.analysis.report.source import short_type
from rpms.evals.analysis.report.verdict import LEVEL
from rpms.evals.analysis.step_analysis import analyses
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Episode
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.recall import RECALL_OUTCOMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_RULES = 10
"""Columns of the plot of rules; the others are added up in one more."""
OUTCOME_TITLES = {"scf": "state filter (SCF)", "arbitration": "rules (arbitration)"}
"""What dropped a memory, where the name in the logs does not say it."""
FULL = (0.0, 100.0)


def success_plot(run: Run) -> Figure | None:
    """The primary figure of each arm with its interval, and that of each run of several."""
    rows = []
    for name in run.conditions:
        value, interval = _figure(run, run.judged(name))
        runs = [v for side in by_run(run, run.judged(name)) if (v := _mean(run, side)) is not None]
        rows.append(IntervalRow(condition_title(name), value, interval, runs if run.pooled else ()))
    return interval_rows(rows, _title(run), FULL)


def _is_scored(run: Run) -> bool:
    return metric_of(run.manifest.env) == "score"


def _title(run: Run) -> str:
    return "Mean score (floored at 0)" if _is_scored(run) else "Success rate (%)"


def _percent(interval: Interval | None) -> Interval | None:
    return interval and Interval(100 * interval.low, 100 * interval.high)


def _figure(run: Run, episodes: Sequence[Episode]) -> tuple[float | None, Interval | None]:
    """The primary figure on a scale of 0 to 100, with its interval over tasks."""
    if _is_scored(run):
        score = task_mean(episodes, lambda e: e.floored)
        return score.value, score.interval
    won = rate(episodes)
    return (None if won.share is None else 100 * won.share), _percent(won.interval)


def _mean(run: Run, episodes: Sequence[Episode]) -> float | None:
    """The primary figure without its interval."""
    metric = metric_of(run.manifest.env)
    value = average([*per_task(episodes, lambda e: merit(e, metric)).values()])
    return None if value is None else value * (1 if metric == "score" else 100)


def difference_plot(run: Run) -> Figure | None:
    """The pairs of the verdict: a filled point is significant after Holm's correction."""
    metric = metric_of(run.manifest.env)
    pairs = {each: pair(run.judged(each.first), run.judged(each.second), metric, run.pooled)
             for each in comparisons(run)}  # fmt: skip
    pairs = {each: paired for each, paired in pairs.items() if paired.n}
    if not pairs:
        return None
    scored = metric == "score"
    tests = holm([paired.p_score if scored else paired.p for paired in pairs.values()])
    rows = []
    for (each, paired), p in zip(pairs.items(), tests, strict=True):
        value = (paired.difference or 0.0) * (1 if scored else 100)
        interval = paired.interval if scored else _percent(paired.interval)
        rows.append(IntervalRow(f"{each.second} vs {each.first}", value, interval, (), p < LEVEL))
    unit = "score" if scored else "success rate (points)"
    return interval_rows(rows, f"Difference in {unit}", zero=True, form="+.1f")


def type_plot(run: Run) -> Figure | None:
    """The primary figure by arm and goal type."""
    kinds = groups(run)
    values = [[_mean(run, [e for e in run.judged(name) if e.type == kind]) for kind in kinds]
              for name in run.conditions]  # fmt: skip
    names = [short_type(run, kind) for kind in kinds]
    return heat_map([*map(condition_title, run.conditions)], names, values, _title(run), 100)


def square_plot(run: Run) -> Figure | None:
    """The 2x2; the dotted line is what the gains of rules and of memory add up to."""
    corners = square_of(run)
    figures = {name: _figure(run, run.judged(name)) for name in corners}
    ground, rules, memory, _ = (figures[name][0] for name in corners) if corners else [None] * 4
    if ground is None or rules is None or memory is None:
        return None
    rows = [IntervalRow(condition_title(name), *figures[name]) for name in corners]
    expected = rules + memory - ground
    limits = min(0.0, expected), max(100.0, expected)
    return interval_rows(rows, _title(run), limits, expected=expected)


def step_plot(run: Run) -> Figure | None:
    """The share of tasks that were won within so many steps."""
    longest = max((e.steps for e in run.episodes.values()), default=0)
    series = []
    for name in filter(run.judged, run.conditions):
        shares = [
            fmean(per_task(run.judged(name), lambda e, n=n: e.success and e.steps <= n).values())  # type: ignore[misc]
            for n in range(longest + 1)
        ]
        title = condition_title(name)
        series.append(Series(title, [*range(longest + 1)], [100 * share for share in shares]))
    return lines(series, "Steps", "Tasks won (%)", steps=True) if series else None


def memory_plot(run: Run) -> Figure | None:
    """The outcomes of all candidates from memory, by arm."""
    shares: dict[str, list[float]] = {}
    outcomes = [outcome for outcome in RECALL_OUTCOMES if outcome]
    for name in run.conditions:
        counts = [*analyses(run, run.judged(name)).values()]
        if total := sum(each.recalled for each in counts):
            dropped = [sum(each.dropped[o] for each in counts) for o in outcomes]
            shares[name] = [100 * n / total for n in (*dropped, total - sum(dropped))]
    kept = [n for n in range(len(outcomes) + 1) if any(row[n] for row in shares.values())]
    if not shares:
        return None
    values = [[row[n] for n in kept] for row in shares.values()]
    parts = [OUTCOME_TITLES.get(part, part) for part in ([*outcomes, "shown"][n] for n in kept)]
    return stacked_bars([*map(condition_title, shares)], parts, values, "Candidates (%)")


def rule_plot(run: Run) -> Figure | None:
    """Proposals that broke a rule, by arm and rule, per 100 proposals; the most broken rules."""
    counts = {name: [*analyses(run, run.judged(name)).values()] for name in run.conditions}
    broken = {name: sum((Counter(e.broken) for e in side), Counter[str]())
              for name, side in counts.items()}  # fmt: skip
    totals = {name: sum(each.judged for each in side) for name, side in counts.items()}
    ranked = [rule for rule, _ in sum(broken.values(), Counter[str]()).most_common()]
    if not ranked:
        return None
    shown, rest = sorted(ranked[:MOST_RULES]), ranked[MOST_RULES:]
    columns = [[rule] for rule in shown] + ([rest] if rest else [])
    values = [
        [100 * sum(broken[name][rule] for rule in column) / totals[name] if totals[name] else None
         for column in columns]
        for name in run.conditions
    ]  # fmt: skip
    actions = run_actions(run)
    heads = [f"{actions[rule].name} ({rule})" if rule in actions else rule for rule in shown]
    heads += ["other rules"] if rest else []
    title = "Broken per 100 proposals"
    return heat_map([*map(condition_title, run.conditions)], heads, values, title)


def round_plot(run: Run) -> Figure | None:
    """The learning curve: the primary figure after each round of memory."""
    series = []
    for title, curve in curves(run).items():
        figures = {number: _figure(run, run.judged(arm)) for number, arm in curve.items()}
        present = {number: (v, i) for number, (v, i) in figures.items() if v is not None}
        values, intervals = [v for v, _ in present.values()], [i for _, i in present.values()]
        series.append(Series(title, [*present], values, intervals))
    if not series:
        return None
    rounds = sorted({number for curve in curves(run).values() for number in curve})
    ticks = {float(n): f"R{n}\n{entries_of(run, n).text}" for n in rounds}
    return lines(series, "Round of learning, and entries of the memory", _title(run), FULL,
                 ticks=ticks)  # fmt: skip


def token_plot(run: Run) -> Figure | None:
    """The tokens of an episode against the primary figure, by arm."""
    series = []
    for name in filter(run.judged, run.conditions):
        judged = run.judged(name)
        tokens = fmean(e.prompt_tokens + e.output_tokens for e in judged) / 1000
        value, interval = _figure(run, judged)
        series.append(Series(condition_title(name), [tokens], [value or 0.0], [interval]))
    if not series:
        return None
    return points(series, "Tokens per episode (thousands)", _title(run))
