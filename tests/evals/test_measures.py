"""The statistics: every task counts once, and the tests are SciPy's on the right figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame, Series

from rpms.evals.analysis.measures import (
    holm,
    mcnemar,
    mean_interval,
    pair,
    permutation,
    share,
    task_mean,
    wilcoxon,
)


def side(wins: list[float], repeats: int = 1, **columns: list[float]) -> DataFrame:
    """Episodes of tasks 0, 1, ..., each with so many repeats."""
    tasks = [str(number // repeats) for number in range(len(wins))]
    score = [100 * win for win in wins]
    return DataFrame({"task": tasks, "success": wins, "floored": score, **columns})


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(36, 16, 0.0078), (43, 20, 0.0052), (37, 21, 0.0479), (28, 25, 0.784)]
)
def test_mcnemar_of_the_papers_counts(gained: int, lost: int, p: float) -> None:
    places = 3 if p > 0.1 else 4
    assert round(mcnemar(gained, lost), places) == p
    assert mcnemar(lost, gained) == mcnemar(gained, lost)


def test_each_task_counts_once() -> None:
    """A task with a lost repeat is half won; wins without such a task have Wilson's interval."""
    mixed = task_mean(side([1, 1, 1, 0, 0, 0], repeats=2), "success")
    assert mixed.value == 0.5 and mixed.interval == mean_interval([1.0, 0.5, 0.0])
    wilson = task_mean(side([1, 1, 0, 0], repeats=2), "success")
    assert wilson.interval and wilson.interval.low == pytest.approx(0.0945, abs=1e-4)
    assert task_mean(side([]), "success").value is None


def test_a_ratio_resamples_whole_tasks() -> None:
    """All refusals in a few long episodes: the interval is wider than one over steps would be."""
    refused, steps = [20.0, 20, 0, 0, 0, 0, 0, 0], [50.0] * 8
    resampled = share(side([0] * 8, refused=refused, steps=steps), "refused", "steps")
    assert resampled.value == 0.1 and resampled.interval
    assert resampled.interval.high - resampled.interval.low > 0.12
    # Where nothing varies there is no interval.
    assert share(side([0], part=[0.0], whole=[0.0]), "part", "whole").value is None
    assert share(side([0] * 3, part=[0.0] * 3, whole=[9.0] * 3), "part", "whole").interval is None
    assert mean_interval([4.0]) is mean_interval([5.0] * 9) is None


def test_a_pair_is_over_the_tasks_that_both_finished() -> None:
    first, second = side([1, 0, 0, 1]), side([1, 1, 1])
    compared = pair(first, second, "success")
    assert (compared.n, compared.only_first, compared.only_second) == (3, 0, 2)
    assert compared.difference.value == pytest.approx(2 / 3)
    assert compared.p == mcnemar(0, 2) == 0.5
    assert pair(first, side([]), "success").difference.value is None


def test_repeats_are_compared_by_permutation() -> None:
    """All three differences are upwards: 2 of the 2^3 patterns of signs are as far out."""
    often = pair(side([0, 0, 1, 0, 0, 0], 2), side([1, 0, 1, 1, 1, 0], 2), "success", True)
    assert often.p == often.p_wins == pytest.approx(2 / 2**3)
    assert permutation(Series([0.0, 0.0])) == permutation(Series([0.5])) == 1.0


def test_small_samples_by_hand() -> None:
    assert wilcoxon(Series([0.0, 0.0, 0.0])) == 1.0
    # All 8 differences positive and distinct: 2 of the 2^8 sign patterns are as extreme.
    assert wilcoxon(Series([1, 2, 3, 4, 5, 6, 7, 8])) == pytest.approx(2 / 256)
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_only_raises_and_keeps_the_order(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(q >= p for p, q in zip(ps, adjusted, strict=True)) and max(adjusted) <= 1
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)
