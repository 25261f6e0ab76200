from __future__ import annotations

from rpms.evals.costs import Spent, nothing_spent, price_by, unknown_price
from rpms.models.prices import NOTHING, Rates

CALL = Spent(prompt_tokens=1000, cached_tokens=600, output_tokens=10)


def test_no_price_is_not_nothing() -> None:
    assert price_by(None) is unknown_price
    assert unknown_price(CALL) is None and unknown_price(nothing_spent()) is None
    assert price_by(NOTHING)(CALL) == 0.0


def test_cost_is_the_sum_over_kinds_of_tokens() -> None:
    assert price_by(Rates(10, 1, 100))(CALL) == round((400 * 10 + 600 + 1000) / 1e6, 9)


def test_small_calls_are_not_rounded_away() -> None:
    small = Spent(prompt_tokens=1, cached_tokens=0, output_tokens=0)
    assert price_by(Rates(0.03, 0.03, 0.05))(small) == 3e-8
