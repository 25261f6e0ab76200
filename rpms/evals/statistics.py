"""The statistics of the tables: intervals, paired tests, and the interaction of two factors.

What is resampled is always the task: episodes of one task under several conditions belong
together, and so do the steps of one episode. Resampling is seeded, so that the same run gives the
same report. Each function gives what SciPy gives, and the tests hold it to that; SciPy itself is a
third of a set-up's download for the few lines used of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import comb, erfc, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

SEED = 20240
RESAMPLES = 9_999
# Up to so many pairs the signed-rank test is exact: without ties or zeros, and with them.
EXACT, EXACT_TIED = 50, 13
# Of resamples drawn at once, so that a long run does not need all of them in memory.
BATCH = 500
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A 95% interval."""

    low: float
    high: float


def wilson(wins: int, n: int) -> Interval | None:
    """Wilson's score interval of a share; nothing where nothing was counted."""
    if not n:
        return None
    z, share = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2), wins / n
    center, whole = 2 * wins + z**2, 2 * (n + z**2)
    reach = z * sqrt(4 * wins * (1 - share) + z**2)
    # At the ends the formula gives 0 and 1 but for rounding.
    low = (center - reach) / whole if wins else 0.0
    return Interval(low, (center + reach) / whole if wins < n else 1.0)


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided McNemar test: were the discordant pairs split like fair coins?"""
    discordant, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(comb(discordant, heads) for heads in range(fewer + 1))
    return min(1.0, 2 * tail / (1 << discordant))


def wilcoxon(differences: Sequence[float]) -> float:
    """Signed-rank test of paired differences; 1 where no pair differs.

    Pairs that do not differ are left out, as Wilcoxon did. Few pairs, or distinct ones, are
    compared with every pattern of signs; the rest with the normal curve, corrected for ties.
    """
    sizes = Counter(abs(difference) for difference in differences if difference)
    if not sizes:
        return 1.0
    # Equal sizes share the mean of their ranks. Ranks are doubled, which makes them whole.
    ends = accumulate(sizes[size] for size in sorted(sizes))
    doubled = {
        size: 2 * end - sizes[size] + 1 for size, end in zip(sorted(sizes), ends, strict=True)
    }
    ranks = [doubled[abs(difference)] for difference in differences if difference]
    positive = sum(doubled[difference] for difference in differences if difference > 0)
    distinct = len(sizes) == len(differences)
    if len(differences) <= EXACT_TIED or (distinct and len(differences) <= EXACT):
        return _sign_patterns(ranks, positive)
    n = len(ranks)
    ties = sum(count**3 - count for count in sizes.values())
    spread = sqrt((n * (n + 1) * (2 * n + 1) - ties / 2) / 24)
    return erfc(abs(positive / 2 - n * (n + 1) / 4) / spread / sqrt(2))


def _sign_patterns(ranks: Sequence[int], positive: int) -> float:
    """Two-sided share of all sign patterns with a rank sum at least as far out."""
    sums = Counter({0: 1})
    for rank in ranks:
        sums = sums + Counter({total + rank: ways for total, ways in sums.items()})
    below = sum(ways for total, ways in sums.items() if total <= positive)
    above = sum(ways for total, ways in sums.items() if total >= positive)
    return min(1.0, 2 * min(below, above) / (1 << len(ranks)))


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Bootstrap interval of a mean; where all values are alike there is none."""
    return _bootstrap((values,), np.mean)


def ratio_interval(parts: Sequence[float], wholes: Sequence[float]) -> Interval | None:
    """Bootstrap interval of sum(parts) / sum(wholes), resampling episodes.

    Steps of one episode are alike, so an interval that counted them one by one would be too
    narrow.
    """
    pairs = [(part, whole) for part, whole in zip(parts, wholes, strict=True) if whole]
    if not pairs:
        return None
    return _bootstrap(tuple(zip(*pairs, strict=True)), _ratio)


def interaction(
    a: Sequence[float], b: Sequence[float], c: Sequence[float], d: Sequence[float]
) -> tuple[float, Interval | None]:
    """(D - A) - (B - A) - (C - A) over the same tasks, with its paired bootstrap interval.

    Above 0, rules and memory together give more than the sum of what each gives alone.
    """
    contrasts = [w - x - y + z for w, x, y, z in zip(d, b, c, a, strict=True)]
    if not contrasts:
        return 0.0, None
    return float(np.mean(contrasts)), mean_interval(contrasts)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: with many pairs some would look different by chance alone."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = highest
    return adjusted


def _ratio(parts: Any, wholes: Any, axis: int = -1) -> Any:
    return np.sum(parts, axis=axis) / np.sum(wholes, axis=axis)


def _bootstrap(
    samples: Sequence[Sequence[float]], statistic: Callable[..., Any]
) -> Interval | None:
    """Percentile bootstrap; None where nothing varies.

    Tasks that all agree give resamples that all agree: an interval of no width would claim a
    certainty that a handful of tasks cannot give.
    """
    if len(samples[0]) < 2:
        return None
    rng, n = np.random.default_rng(SEED), len(samples[0])
    columns = [np.asarray(sample) for sample in samples]
    resampled: list[Any] = []
    for drawn in range(0, RESAMPLES, BATCH):
        rows = rng.integers(0, n, (min(BATCH, RESAMPLES - drawn), n))
        resampled.append(statistic(*(column[rows] for column in columns), axis=-1))
    outside = (1 - CONFIDENCE) / 2
    low, high = map(float, np.quantile(np.concatenate(resampled), (outside, 1 - outside)))
    return Interval(low, high) if low < high else None
