"""The statistics, held to SciPy's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from rpms.evals.analysis import measures
from rpms.evals.analysis.measures import (
    holm,
    interaction,
    is_exact,
    mcnemar,
    mean_interval,
    ratio_interval,
    sign_flip,
    wilcoxon,
    wilson,
)

counts = st.integers(min_value=0, max_value=80)
SAME = 1e-9


@given(counts, counts)
def test_the_tests_of_shares_are_scipys(b: int, c: int) -> None:
    assume(b + c)
    theirs = stats.binomtest(b, b + c)
    assert mcnemar(b, c) == pytest.approx(theirs.pvalue, abs=SAME)
    interval, ours = theirs.proportion_ci(method="wilson"), wilson(b, b + c)
    assert ours and (ours.low, ours.high) == pytest.approx(tuple(interval), abs=SAME)


# Few values make ties and zeros, many make none; both sides of 13 and of 50 pairs. SciPy goes
# through the patterns of signs one by one, so of the thousands that 13 pairs have it goes once.
@settings(max_examples=30)
@example([3, -1, 2, 0, 2, 3, -2, 1, 1, -3, 2, 2, 1])
@given(
    st.tuples(
        st.sampled_from([3, 40, 10**6]), st.one_of(st.integers(1, 8), st.integers(14, 70))
    ).flatmap(lambda drawn: st.lists(st.integers(-drawn[0], drawn[0]), min_size=drawn[1],
                                     max_size=drawn[1]))
)  # fmt: skip
def test_the_signed_rank_test_is_scipys(differences: list[int]) -> None:
    assume(any(differences))
    theirs = stats.wilcoxon(differences).pvalue
    assert wilcoxon(differences) == pytest.approx(theirs, abs=SAME)


SHARES = st.sampled_from([Fraction(a, b) for b in (1, 2, 3, 4) for a in range(-b, b + 1)])


@settings(deadline=None, max_examples=30)
@given(st.lists(SHARES, min_size=2, max_size=9))
def test_the_permutation_test_is_scipys_and_of_whole_differences_mcnemars(
    differences: list[Fraction],
) -> None:
    """Like the exact tests above it doubles the smaller tail."""
    scaled = [int(12 * difference) for difference in differences]
    theirs = stats.permutation_test(
        (scaled, [0] * len(scaled)), lambda x, y, axis: np.sum(x - y, axis=axis), vectorized=True,
        permutation_type="samples", n_resamples=np.inf,
    )  # fmt: skip
    assert sign_flip(differences) == pytest.approx(theirs.pvalue, abs=1e-9)
    whole = [Fraction(round(difference)) for difference in differences]
    assert sign_flip(whole) == pytest.approx(mcnemar(whole.count(-1), whole.count(1)), abs=1e-12)


def test_fine_differences_of_many_tasks_are_drawn_and_agree_with_the_exact_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    differences = [Fraction(int(value)) for value in rng.integers(-300, 400, 40)]
    exact = sign_flip(differences)
    assert is_exact(differences) and 0.01 < exact < 0.9
    monkeypatch.setattr(measures, "LARGEST", 1000)
    assert not is_exact(differences)
    drawn = sign_flip(differences)
    assert drawn == pytest.approx(exact, abs=0.01) and drawn == sign_flip(differences) != exact


@settings(deadline=None, max_examples=5)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 50)), min_size=2, max_size=40))
def test_the_bootstrap_is_scipys(pairs: list[tuple[int, int]]) -> None:
    parts, wholes = zip(*pairs, strict=True)

    def ratio(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return np.sum(x, axis=axis) / np.sum(y, axis=axis)

    for ours, sample, statistic in (
        (mean_interval(parts), (parts,), np.mean),
        (ratio_interval(parts, wholes), (parts, wholes), ratio),
    ):
        low, high = stats.bootstrap(
            sample, statistic, n_resamples=9_999, paired=len(sample) > 1, vectorized=True,
            method="percentile", rng=np.random.default_rng(20240),
        ).confidence_interval  # fmt: skip
        if ours is None:
            assert low == high
        else:
            assert (ours.low, ours.high) == pytest.approx((low, high), abs=SAME)


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(36, 16, 0.0078), (43, 20, 0.0052), (37, 21, 0.0479), (28, 25, 0.784)]
)
def test_mcnemar_of_the_papers_counts(gained: int, lost: int, p: float) -> None:
    places = 3 if p > 0.1 else 4
    assert round(mcnemar(gained, lost), places) == p
    assert mcnemar(lost, gained) == mcnemar(gained, lost)


def test_a_ratio_resamples_whole_episodes() -> None:
    """All refusals in a few long episodes: the interval is wider than Wilson's over steps."""
    refused, steps = [20, 20, 0, 0, 0, 0, 0, 0], [50] * 8
    resampled, naive = ratio_interval(refused, steps), wilson(40, 400)
    assert resampled and naive
    assert resampled.low < 0.1 < resampled.high
    assert resampled.high - resampled.low > 2 * (naive.high - naive.low)
    # Where nothing varies there is no interval.
    assert ratio_interval([0], [0]) is ratio_interval([0] * 3, [9] * 3) is wilson(0, 0) is None
    assert mean_interval([4.0]) is mean_interval([5.0] * 9) is None


def test_the_interaction_of_a_constructed_square() -> None:
    # Four kinds of tasks; the last are won only by both together.
    a = [1.0] * 5 + [0.0] * 15
    b = [1.0] * 10 + [0.0] * 10
    c = [1.0] * 5 + [0.0] * 5 + [1.0] * 2 + [0.0] * 8
    d = [1.0] * 16 + [0.0] * 4
    value, interval = interaction(a, b, c, d)
    assert value == pytest.approx((16 - 10 - 7 + 5) / 20)
    assert interval and 0 < interval.low < value < interval.high
    sums = [y + z - x for x, y, z in zip(a, b, c, strict=True)]
    assert interaction(a, b, c, sums) == (0, None), "effects that add up"


def test_small_samples_by_hand() -> None:
    assert wilcoxon([0.0, 0.0, 0.0]) == 1.0
    # All 8 differences positive and distinct: 2 of the 2^8 sign patterns are as extreme.
    assert wilcoxon([1, 2, 3, 4, 5, 6, 7, 8]) == pytest.approx(2 / 256)
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_only_raises_and_keeps_the_order(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(q >= p for p, q in zip(ps, adjusted, strict=True)) and max(adjusted) <= 1
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)
