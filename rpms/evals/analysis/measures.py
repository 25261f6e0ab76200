"""Statistics of episodes: rates, means, intervals, paired tests, interaction.

Every task counts once: the value of a task with several repeats is the mean over them. Callers pass
episodes without errors and report how many were left out. Intervals resample tasks, because the
episodes of one task under several conditions belong together, and so do the steps of one episode.
Resampling is seeded, so that the same run gives the same report. Each statistic agrees with SciPy,
which the tests check; SciPy is no dependency because it is a third of the whole download.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import comb, erfc, fsum, gcd, isclose, lcm, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from rpms.envs import get_environment
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Episode

SEED = 20240
RESAMPLES = 9_999
# The largest number of pairs for an exact signed-rank test: without ties and zeros, and with them.
EXACT, EXACT_TIED = 50, 13
# Shares of wins are compared exactly up to this common denominator, which allows for ten repeats of
# a task with any of them missing.
FINEST = 2_520
# The largest work of an exact permutation test: tasks times the sum of their differences; beyond it
# the test draws this many patterns of signs.
LARGEST, FLIPS = 20_000_000, 100_000
# Mean scores that agree to this many digits are equal.
DIGITS = 9
# Resamples are drawn in batches to save memory.
BATCH = 500
# The resamples of up to this many tasks are kept in memory.
KEPT = 400
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A 95% interval."""

    low: float
    high: float


def wilson(wins: int, n: int) -> Interval | None:
    """Wilson's score interval of a share; None for n = 0."""
    if not n:
        return None
    z, share = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2), wins / n
    center, whole = 2 * wins + z**2, 2 * (n + z**2)
    reach = z * sqrt(4 * wins * (1 - share) + z**2)
    # At the ends the formula gives 0 and 1 but for rounding.
    low = (center - reach) / whole if wins else 0.0
    return Interval(low, (center + reach) / whole if wins < n else 1.0)


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided McNemar test of the discordant pairs."""
    discordant, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(comb(discordant, heads) for heads in range(fewer + 1))
    return min(1.0, 2 * tail / (1 << discordant))


def wilcoxon(differences: Sequence[float]) -> float:
    """Wilcoxon's signed-rank test of paired differences; 1 if no pair differs.

    Pairs without a difference are left out. The test is exact for few pairs; otherwise it uses the
    normal approximation with a correction for ties.
    """
    sizes = Counter(abs(value) for value in differences if value)
    if not sizes:
        return 1.0
    # Equal sizes share the mean of their ranks. Ranks are doubled, which makes them whole.
    ends = accumulate(sizes[size] for size in sorted(sizes))
    doubled = {
        size: 2 * end - sizes[size] + 1 for size, end in zip(sorted(sizes), ends, strict=True)
    }
    ranks = [doubled[abs(value)] for value in differences if value]
    positive = sum(doubled[value] for value in differences if value > 0)
    distinct = len(sizes) == len(differences)
    if len(differences) <= EXACT_TIED or (distinct and len(differences) <= EXACT):
        return _sign_patterns(ranks, positive)
    n = len(ranks)
    ties = sum(count**3 - count for count in sizes.values())
    spread = sqrt((n * (n + 1) * (2 * n + 1) - ties / 2) / 24)
    return erfc(abs(positive / 2 - n * (n + 1) / 4) / spread / sqrt(2))


def _sign_patterns(ranks: Sequence[int], positive: int) -> float:
    """Two-sided share of all sign patterns with a rank sum at least as extreme."""
    sums = Counter({0: 1})
    for rank in ranks:
        sums = sums + Counter({total + rank: patterns for total, patterns in sums.items()})
    below = sum(patterns for total, patterns in sums.items() if total <= positive)
    above = sum(patterns for total, patterns in sums.items() if total >= positive)
    return min(1.0, 2 * min(below, above) / (1 << len(ranks)))


def sign_flip(differences: Sequence[Fraction]) -> float:
    """Two-sided permutation test of the mean difference, over all patterns of signs.

    For differences of -1, 0 and 1 it is McNemar's exact test. It is exact unless the differences
    are too many and too fine (``is_exact``); then it draws FLIPS patterns with a fixed seed.
    """
    values = _whole(differences)
    sizes = [abs(value) for value in values if value]
    positive = sum(value for value in values if value > 0)
    if not is_exact(differences):
        return _drawn_flips(sizes, positive)
    # shares[n] is the share of sign patterns whose positive differences sum to n.
    shares = np.ones(1)
    for size in sizes:
        gap = np.zeros(size)
        shares = (np.concatenate([shares, gap]) + np.concatenate([gap, shares])) / 2
    below, above = shares[: positive + 1].sum(), shares[positive:].sum()
    return min(1.0, 2 * float(min(below, above)))


def is_exact(differences: Sequence[Fraction]) -> bool:
    """True if ``sign_flip`` counts every pattern of signs."""
    values = _whole(differences)
    return len(values) * sum(map(abs, values)) <= LARGEST


def _whole(differences: Sequence[Fraction]) -> list[int]:
    """The differences in the largest unit in which all are whole numbers."""
    scale = min(FINEST, lcm(*(difference.denominator for difference in differences)))
    values = [round(difference * scale) for difference in differences]
    unit = gcd(*values) or 1
    return [value // unit for value in values]


def _drawn_flips(sizes: Sequence[int], positive: int) -> float:
    """The share of drawn sign patterns at least as extreme; the observed pattern is one of them."""
    rng, whole = np.random.default_rng(SEED), sum(sizes)
    extreme = abs(2 * positive - whole)
    hits = 0
    for drawn in range(0, FLIPS, BATCH):
        signs = rng.integers(0, 2, (min(BATCH, FLIPS - drawn), len(sizes)))
        hits += int(np.sum(np.abs(2 * (signs @ np.asarray(sizes)) - whole) >= extreme))
    return (hits + 1) / (FLIPS + 1)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Bootstrap interval of a mean; None if all values are equal."""
    return _bootstrap((values, [1] * len(values)))


def ratio_interval(parts: Sequence[float], wholes: Sequence[float]) -> Interval | None:
    """Bootstrap interval of sum(parts) / sum(wholes), resampling pairs.

    Steps of one episode are correlated, so resampling single steps would be too narrow.
    """
    pairs = [(part, whole) for part, whole in zip(parts, wholes, strict=True) if whole]
    if not pairs:
        return None
    return _bootstrap(tuple(zip(*pairs, strict=True)))


def interaction(
    ground: Sequence[float], b: Sequence[float], c: Sequence[float], d: Sequence[float]
) -> tuple[float, Interval | None]:
    """(D - ground) - (B - ground) - (C - ground) over the same tasks, with its paired interval.

    Above 0, rules and memory together gain more than the sum of their separate gains.
    """
    contrasts = [w - x - y + z for w, x, y, z in zip(d, b, c, ground, strict=True)]
    if not contrasts:
        return 0.0, None
    return float(np.mean(contrasts)), mean_interval(contrasts)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values with Holm's correction for multiple comparisons."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = highest
    return adjusted


def _bootstrap(samples: Sequence[Sequence[float]]) -> Interval | None:
    """Percentile bootstrap of the ratio of two sums; None if the values do not vary.

    Equal values give equal resamples, and an interval of width 0 would claim a false certainty.
    """
    if (n := len(samples[0])) < 2:
        return None
    parts, wholes = (np.asarray(sample, dtype=float) for sample in samples)
    batches = _kept_resamples(n) if n <= KEPT else _resamples(n)
    estimates = [(counts @ parts) / (counts @ wholes) for counts in batches]
    outside = (1 - CONFIDENCE) / 2
    low, high = map(float, np.quantile(np.concatenate(estimates), (outside, 1 - outside)))
    # Sums of equal values differ by rounding.
    return None if isclose(low, high, rel_tol=1e-12) else Interval(low, high)


@lru_cache(maxsize=4)
def _kept_resamples(n: int) -> list[Any]:
    """The resamples of n values, which the intervals of one report share."""
    return [*_resamples(n)]


def _resamples(n: int) -> Iterator[Any]:
    """For each resample how often it drew each of n values, in batches."""
    rng = np.random.default_rng(SEED)
    for drawn in range(0, RESAMPLES, BATCH):
        size = min(BATCH, RESAMPLES - drawn)
        rows = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(rows.ravel(), minlength=size * n).reshape(size, n).astype(float)


Metric = Literal["success", "score"]


def metric_of(env: str) -> Metric:
    """The primary figure of an environment: score if it grades parts of a task, else success."""
    return "score" if get_environment(env).graded else "success"


def merit(episode: Episode, metric: Metric) -> float:
    """The primary figure of one episode: success or the floored score."""
    return episode.floored if metric == "score" else float(episode.success)


@dataclass(frozen=True)
class Rate:
    """A success rate.

    Attributes:
        wins: the number of won episodes.
        n: the number of episodes.
        share: the mean over tasks, 0 to 1; None without episodes.
        interval: over tasks; Wilson's if each task was won always or never, else bootstrap.
    """

    wins: int
    n: int
    share: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Mean:
    """A mean with its bootstrap interval."""

    value: float | None
    n: int
    interval: Interval | None


@dataclass(frozen=True)
class Pair:
    """Two conditions (or runs) over the tasks that both finished without an error.

    Attributes:
        n: the number of these tasks.
        only_first: the number of tasks that only the first won; with several repeats, that it won
            more often.
        only_second: the same for the second.
        difference: second minus first, in the primary figure.
        interval: paired bootstrap interval of the difference.
        p: exact test of the wins: McNemar's, or ``sign_flip`` for several repeats.
        p_score: test of the floored scores: Wilcoxon's signed-rank test, or ``sign_flip`` over the
            runs of an experiment.
        exact: the permutation test of the scores counts every pattern of signs.
    """

    n: int
    only_first: int
    only_second: int
    difference: float | None
    interval: Interval | None
    p: float
    p_score: float
    exact: bool = True


def rate(episodes: Sequence[Episode]) -> Rate:
    return rate_of(episodes, lambda episode: episode.success)


def rate_of(episodes: Sequence[Episode], counts: Callable[[Episode], bool]) -> Rate:
    """The share of episodes for which ``counts`` is true, each task counted once."""
    shares = per_task(episodes, counts)
    if {*shares.values()} <= {0.0, 1.0}:
        interval = wilson(round(sum(shares.values())), len(shares))
    else:
        interval = mean_interval([*shares.values()])
    wins = sum(map(counts, episodes))
    return Rate(wins, len(episodes), average([*shares.values()]), interval)


def average(values: Sequence[float]) -> float | None:
    """A mean without an interval; None for no values."""
    return sum(values) / len(values) if values else None


def mean(values: Sequence[float]) -> Mean:
    """The mean of values, with its interval."""
    return Mean(average(values), len(values), mean_interval(values))


def task_mean(episodes: Iterable[Episode], value: Callable[[Episode], float]) -> Mean:
    """The mean of a value over episodes, each task counted once."""
    return mean([*per_task(episodes, value).values()])


def share(
    episodes: Iterable[Episode], part: Callable[[Episode], int], whole: Callable[[Episode], int]
) -> Mean:
    """The sum of one count over that of another, e.g. rejected actions per step."""
    tasks = by_task(episodes).values()
    parts, wholes = ([sum(map(count, repeats)) for repeats in tasks] for count in (part, whole))
    total = sum(wholes)
    value = sum(parts) / total if total else None
    return Mean(value, len(parts), ratio_interval(parts, wholes))


def by_task(episodes: Iterable[Episode]) -> dict[str, list[Episode]]:
    """The episodes of each task: its repeats."""
    tasks: dict[str, list[Episode]] = {}
    for episode in episodes:
        tasks.setdefault(episode.task, []).append(episode)
    return tasks


def per_task(episodes: Iterable[Episode], value: Callable[[Episode], float]) -> dict[str, float]:
    """The mean of a value over the repeats of each task."""
    return {
        task: fsum(map(value, repeats)) / len(repeats)
        for task, repeats in by_task(episodes).items()
    }


def shared_tasks(*sides: Mapping[str, object]) -> list[str]:
    """Tasks that every side finished, in the order of the first."""
    return [task for task in sides[0] if all(task in side for side in sides[1:])]


def pair(
    first: Iterable[Episode], second: Iterable[Episode], metric: Metric, pooled: bool = False
) -> Pair:
    """Compare two conditions task by task; of an experiment, all runs of a task at once."""
    before, after = by_task(first), by_task(second)
    pairs = [(before[task], after[task]) for task in shared_tasks(before, after)]
    won = [wins_of(new) - wins_of(old) for old, new in pairs]
    # Rounding removes differences that come from the order of addition.
    scores = [round(_score_of(new) - _score_of(old), DIGITS) for old, new in pairs]
    only_first, only_second = (sum(sign * gain > 0 for gain in won) for sign in (-1, 1))
    points = [_hundredths(new) - _hundredths(old) for old, new in pairs] if pooled else []
    gain = mean(scores if metric == "score" else [float(gain) for gain in won])
    return Pair(
        n=len(pairs),
        only_first=only_first,
        only_second=only_second,
        difference=gain.value,
        interval=gain.interval,
        p=mcnemar(only_first, only_second) if {*won} <= {-1, 0, 1} else sign_flip(won),
        p_score=sign_flip(points) if pooled else wilcoxon(scores),
        exact=is_exact(points),
    )


def wins_of(repeats: Sequence[Episode]) -> Fraction:
    """The share of a task's repeats that were won."""
    return Fraction(sum(episode.success for episode in repeats), len(repeats))


def _score_of(repeats: Sequence[Episode]) -> float:
    return fsum(episode.floored for episode in repeats) / len(repeats)


def _hundredths(repeats: Sequence[Episode]) -> Fraction:
    """The mean score in hundredths of a point, which makes the sum over runs a whole number."""
    return Fraction(sum(round(100 * episode.floored) for episode in repeats), len(repeats))


def groups(run: Run) -> list[str]:
    """Goal types or families of the run, sorted."""
    return sorted({task.type for task in run.manifest.tasks})
