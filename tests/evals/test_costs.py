from __future__ import annotations

from rpms.evals.costs import Spent, cost_of, nothing_spent
from rpms.models.prices import NOTHING, Rates

CALL = Spent(prompt_tokens=1000, cached_tokens=600, output_tokens=10)


SMALL = Spent(prompt_tokens=1, cached_tokens=0, output_tokens=0)


def test_cost_is_the_sum_over_kinds_of_tokens_and_no_price_is_not_nothing() -> None:
    assert cost_of(CALL, None) is None and cost_of(nothing_spent(), None) is None
    assert cost_of(CALL, NOTHING) == 0.0
    assert cost_of(CALL, Rates(10, 1, 100)) == round((400 * 10 + 600 + 1000) / 1e6, 9)
    assert cost_of(SMALL, Rates(0.03, 0.03, 0.05)) == 3e-8, "small calls are not rounded away"
