"""Statistics of the frame of episodes: rates, means, intervals, paired tests.

Every task counts once: the value of a task with several repeats is the mean over them. Callers pass
episodes without errors and report how many were left out. Intervals resample tasks, because the
episodes of one task under several conditions belong together, and so do the steps of one episode.
Resampling is seeded, so that the same run gives the same report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING, Any

from rpms.envs import get_environment

if TYPE_CHECKING:
    from pandas import DataFrame, Series

SEED = 20240
RESAMPLES, SIGNS = 9_999, 19_999
"""Resamples of an interval; signs of a permutation test, unless it counts all patterns."""
BATCH = 500
"""Resamples are drawn in batches to save memory."""
DIGITS = 9
"""Mean scores that agree to this many digits are equal."""


@dataclass(frozen=True)
class Interval:
    """A 95% interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Mean:
    """A mean or a share with its interval; no value without episodes."""

    value: float | None = None
    interval: Interval | None = None


def metric_of(env: str) -> str:
    """The column of the primary figure: the floored score if the environment grades parts."""
    return "floored" if get_environment(env).graded else "success"


def per_task(side: DataFrame, column: str) -> Series:
    """The mean of a column over the repeats of each task."""
    return side.groupby("task", sort=False)[column].mean()


def task_mean(side: DataFrame, column: str) -> Mean:
    """The mean over tasks; the interval of wins is Wilson's if no task was both won and lost."""
    tasks = per_task(side, column).astype(float)
    if tasks.empty:
        return Mean()
    if column == "success" and tasks.isin([0, 1]).all():
        from scipy.stats import binomtest

        wilson = binomtest(int(tasks.sum()), len(tasks)).proportion_ci(method="wilson")
        return Mean(tasks.mean(), Interval(float(wilson.low), float(wilson.high)))
    return Mean(tasks.mean(), mean_interval(tasks))


def share(side: DataFrame, part: str, whole: str) -> Mean:
    """The sum of one column over that of another, such as rejected actions per step.

    Steps of one episode are correlated, so the interval resamples tasks, not steps.
    """
    sums = side.groupby("task", sort=False)[[part, whole]].sum()
    sums = sums[sums[whole] > 0]
    if sums.empty:
        return Mean()
    parts, wholes = sums[part].to_numpy(float), sums[whole].to_numpy(float)

    def ratio(part: Any, whole: Any, axis: int) -> Any:
        return part.sum(axis) / whole.sum(axis)

    return Mean(parts.sum() / wholes.sum(), _bootstrap((parts, wholes), ratio))


def mean_interval(values: Sequence[float] | Series) -> Interval | None:
    """Bootstrap interval of a mean; None if all values are equal."""
    import numpy as np

    return _bootstrap((np.asarray(values, dtype=float),), np.mean)


def _bootstrap(samples: tuple[Any, ...], statistic: Any) -> Interval | None:
    """Percentile bootstrap; None if it does not vary: a width of 0 would claim false certainty."""
    import numpy as np
    from scipy.stats import bootstrap

    if len(samples[0]) < 2 or all(len(np.unique(sample)) == 1 for sample in samples):
        return None
    found = bootstrap(
        samples, statistic, n_resamples=RESAMPLES, batch=BATCH, vectorized=True, paired=True,
        method="percentile", rng=np.random.default_rng(SEED),
    ).confidence_interval  # fmt: skip
    low, high = float(found.low), float(found.high)
    # Sums of equal values differ by rounding.
    return None if isclose(low, high, rel_tol=1e-12) else Interval(low, high)


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided McNemar test of the discordant pairs."""
    from scipy.stats import binomtest

    discordant = only_first + only_second
    return float(binomtest(only_first, discordant).pvalue) if discordant else 1.0


def permutation(differences: Series) -> float:
    """Two-sided permutation test of the mean difference, by exchanging the two sides of tasks.

    It counts all patterns of signs up to 14 tasks that differ, and draws SIGNS of them beyond.
    """
    import numpy as np
    from scipy.stats import permutation_test

    differing = differences[differences != 0].to_numpy(float)
    if len(differing) < 2:
        return 1.0  # of one difference both signs are as extreme
    test = permutation_test(
        (differing,), np.mean, permutation_type="samples", vectorized=True, n_resamples=SIGNS,
        batch=BATCH * 10, rng=np.random.default_rng(SEED),
    )  # fmt: skip
    return float(test.pvalue)


def wilcoxon(differences: Series) -> float:
    """Wilcoxon's signed-rank test; 1 if no pair differs."""
    from scipy.stats import wilcoxon as test

    return float(test(differences).pvalue) if differences.any() else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values with Holm's correction for multiple comparisons."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = highest
    return adjusted


@dataclass(frozen=True)
class Pair:
    """Two arms over the tasks that both finished without an error.

    Attributes:
        n: the number of these tasks.
        only_first: the tasks that only the first won; with repeats, that it won more often.
        only_second: the same for the second.
        difference: second minus first in the primary figure, with its paired interval.
        p_wins: McNemar's exact test of the wins; with repeats the permutation test of their shares.
        p: the test of the primary figure: of the wins, or of floored scores Wilcoxon's; for several
            runs the permutation test.
    """

    n: int
    only_first: int
    only_second: int
    difference: Mean
    p_wins: float
    p: float


def pair(first: DataFrame, second: DataFrame, metric: str, repeated: bool = False) -> Pair:
    """Compare two arms task by task, with all repeats of a task at once."""
    import pandas

    def gains(column: str) -> Series:
        """Second minus first over the tasks of both, in the order of the first."""
        sides = [per_task(first, column), per_task(second, column)]
        both = pandas.concat(sides, axis=1, join="inner")
        return (both.iloc[:, 1] - both.iloc[:, 0]).round(DIGITS)

    won, gain = gains("success"), gains(metric)
    only_first, only_second = int((won < 0).sum()), int((won > 0).sum())
    whole = won.isin([-1, 0, 1]).all()
    p = p_wins = mcnemar(only_first, only_second) if whole else permutation(won)
    if metric != "success":
        p = (permutation if repeated else wilcoxon)(gain)
    return Pair(
        n=len(won),
        only_first=only_first,
        only_second=only_second,
        difference=Mean(gain.mean(), mean_interval(gain)) if len(gain) else Mean(),
        p_wins=p_wins,
        p=p,
    )
