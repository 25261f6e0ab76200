"""What an episode's new tokens cost. Prices come from a table; without one the cost is unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import TypedDict

from rpms.models.prices import Rates

DIGITS = 9
"""A call may cost a few millionths of a dollar; a billionth is below every price."""


class Spent(TypedDict):
    """Tokens of the calls that were really made; replayed replies cost nothing."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


Price = Callable[[Spent], float | None]
"""Dollars for tokens; None when no price is known."""


def nothing_spent() -> Spent:
    """Where counting begins."""
    return Spent(prompt_tokens=0, cached_tokens=0, output_tokens=0)


def spent_in(line: Mapping[str, Any]) -> Spent:
    """What an episode's line says was spent."""
    return Spent(
        prompt_tokens=line["spent_prompt_tokens"],
        cached_tokens=line["spent_cached_tokens"],
        output_tokens=line["spent_output_tokens"],
    )


def unknown_price(spent: Spent) -> float | None:
    """For models on no price list."""
    return None


def price_by(rates: Rates | None) -> Price:
    """How to price the tokens of one model, given its rates."""
    if rates is None:
        return unknown_price

    def price(spent: Spent) -> float | None:
        cost = rates.cost(spent["prompt_tokens"], spent["cached_tokens"], spent["output_tokens"])
        return round(cost, DIGITS)

    return price
