"""The data of each kind of plot; the figures are those of the report's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpms.evals.analysis.arm_differences import comparisons
from rpms.evals.analysis.frames import Results
from rpms.evals.analysis.measures import Interval, holm, per_task
from rpms.evals.analysis.plotting.charts import (
    IntervalRow,
    Series,
    heat_map,
    interval_rows,
    lines,
    stacked_bars,
)
from rpms.evals.analysis.report.behaviour import named_sums
from rpms.evals.analysis.report.results import primary, square_of, tested
from rpms.evals.analysis.report.rounds import curves, entries_of
from rpms.evals.analysis.report.rules import run_actions
from rpms.evals.analysis.report.source import short_type
from rpms.evals.analysis.report.verdict import LEVEL
from rpms.evals.analysis.step_analysis import outcome_column
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.recall import RECALL_OUTCOMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_RULES = 10
"""Columns of the plot of rules; the others are added up in one more."""
OUTCOME_TITLES = {"scf": "state filter (SCF)", "arbitration": "rules (arbitration)"}
"""What dropped a memory, where the name in the logs does not say it."""
FULL = (0.0, 100.0)


def success_plot(data: Results) -> Figure | None:
    """The primary figure of each arm with its interval, and that of each run of several."""
    runs: dict[str, list[float]] = {arm: [] for arm in data.arms}
    for (arm, _), side in data.by("condition", "run") if data.run.pooled else ():
        if (value := primary(data, side).value) is not None:
            runs[arm].append(value)
    rows = [
        IntervalRow(condition_title(arm), figure.value, figure.interval, runs[arm])
        for arm, side in data.sides.items()
        for figure in [primary(data, side)]
    ]
    return interval_rows(rows, _title(data), FULL)


def _title(data: Results) -> str:
    return "Mean score (floored at 0)" if data.metric == "floored" else "Success rate (%)"


def difference_plot(data: Results) -> Figure | None:
    """The pairs of the verdict: a filled point is significant after Holm's correction."""
    pairs = {each: paired for each in comparisons(data.run) if (paired := tested(data, each)).n}
    if not pairs:
        return None
    scored = data.metric == "floored"
    tests = holm([paired.p for paired in pairs.values()])
    rows = []
    for (each, paired), p in zip(pairs.items(), tests, strict=True):
        scale, interval = (1 if scored else 100), paired.difference.interval
        value = (paired.difference.value or 0.0) * scale
        span = interval and Interval(scale * interval.low, scale * interval.high)
        rows.append(IntervalRow(f"{each.second} vs {each.first}", value, span, (), p < LEVEL))
    unit = "score" if scored else "success rate (points)"
    return interval_rows(rows, f"Difference in {unit}", zero=True, form="+.1f")


def type_plot(data: Results) -> Figure | None:
    """The primary figure by arm and goal type."""
    kinds = sorted({task.type for task in data.run.manifest.tasks})
    values = [[primary(data, side[side.type == kind]).value for kind in kinds]
              for side in data.sides.values()]  # fmt: skip
    names = [short_type(data.run, kind) for kind in kinds]
    return heat_map([*map(condition_title, data.arms)], names, values, _title(data), 100)


def square_plot(data: Results) -> Figure | None:
    """The 2x2, with what the gains of rules and of memory add up to."""
    figures = {name: primary(data, data.sides[name]) for name in square_of(data.run)}
    values = [figure.value for figure in figures.values()]
    if not values or None in values:
        return None
    ground, rules, memory, _ = (value or 0.0 for value in values)
    rows = [IntervalRow(condition_title(name), *vars(each).values())
            for name, each in figures.items()]  # fmt: skip
    return interval_rows(rows, _title(data), FULL, expected=round(rules + memory - ground, 6))


def step_plot(data: Results) -> Figure | None:
    """The share of tasks that were won within so many steps."""
    longest = int(data.episodes.steps.max()) if len(data.episodes) else 0
    series = []
    for name, side in data.sides.items():
        if len(side):
            won = (
                side.assign(success=side.success & (side.steps <= n)) for n in range(longest + 1)
            )
            shares = [100 * per_task(within, "success").mean() for within in won]
            series.append(Series(condition_title(name), [*range(longest + 1)], shares))
    return lines(series, "Steps", "Tasks won (%)", steps=True) if series else None


def memory_plot(data: Results) -> Figure | None:
    """The outcomes of all candidates from memory, by arm."""
    outcomes = [name for name in RECALL_OUTCOMES if name]
    columns = [outcome_column(name) for name in outcomes]
    sums = data.judged.groupby("condition", observed=True)[["recalled", *columns]].sum()
    sums = sums[sums.recalled > 0]
    if sums.empty:
        return None
    shares = sums[columns].assign(shown=sums.recalled - sums[columns].sum(axis=1))
    shares = shares.div(sums.recalled, axis=0).mul(100).set_axis([*outcomes, "shown"], axis=1)
    shares = shares.loc[:, shares.any()]
    parts = [OUTCOME_TITLES.get(part, part) for part in shares.columns]
    arms = [condition_title(str(arm)) for arm in shares.index]
    return stacked_bars(arms, parts, shares.to_numpy().tolist(), "Candidates (%)")


def rule_plot(data: Results) -> Figure | None:
    """Proposals that broke a rule, by arm and rule, per 100 proposals; the most broken rules."""
    ranked = [*named_sums(data.judged, "broken")]
    if not ranked:
        return None
    shown, rest = sorted(ranked[:MOST_RULES]), ranked[MOST_RULES:]
    groups = [[rule] for rule in shown] + ([rest] if rest else [])
    values = []
    for side in data.sides.values():
        broken, total = named_sums(side, "broken"), int(side.judged.sum())
        values.append([100 * sum(broken.get(rule, 0) for rule in group) / total if total else None
                       for group in groups])  # fmt: skip
    actions = run_actions(data.run)
    heads = [f"{actions[rule].name} ({rule})" if rule in actions else rule for rule in shown]
    heads += ["other rules"] if rest else []
    return heat_map([*map(condition_title, data.arms)], heads, values, "Broken per 100 proposals")


def round_plot(data: Results) -> Figure | None:
    """The learning curve: the primary figure after each round of memory."""
    series = []
    for title, curve in curves(data.run).items():
        figures = {number: primary(data, data.sides[arm]) for number, arm in curve.items()}
        present = {number: each for number, each in figures.items() if each.value is not None}
        values = [each.value or 0.0 for each in present.values()]
        series.append(Series(title, [*present], values, [e.interval for e in present.values()]))
    if not series:
        return None
    rounds = sorted({number for curve in curves(data.run).values() for number in curve})
    ticks = {float(n): f"R{n}\n{entries_of(data.run, n).text}" for n in rounds}
    return lines(series, "Round of learning, and entries of the memory", _title(data), FULL,
                 ticks=ticks)  # fmt: skip
