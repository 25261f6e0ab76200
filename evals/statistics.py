"""The statistics of the tables: intervals, paired tests, and the interaction of two factors.

Everything is computed by SciPy. What is resampled is always the task: episodes of one task under
several conditions belong together, and so do the steps of one episode. Resampling is seeded, so
that the same run gives the same report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

SEED = 20240
RESAMPLES = 9_999
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
    found = stats.binomtest(wins, n).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(float(found.low), float(found.high))


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided McNemar test: were the discordant pairs split like fair coins?"""
    discordant = only_first + only_second
    return float(stats.binomtest(only_first, discordant).pvalue) if discordant else 1.0


def wilcoxon(differences: Sequence[float]) -> float:
    """Signed-rank test of paired differences; 1 where no pair differs."""
    if not any(differences):
        return 1.0
    return float(stats.wilcoxon(differences).pvalue)


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
    found = stats.bootstrap(
        samples,
        statistic,
        n_resamples=RESAMPLES,
        batch=500,
        paired=len(samples) > 1,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    low, high = float(found.low), float(found.high)
    return Interval(low, high) if low < high else None
