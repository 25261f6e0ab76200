"""What an episode's new tokens cost. Prices come from a table; without one the cost is unknown."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import TypedDict


class Spent(TypedDict):
    """Tokens of the calls that were really made; replayed replies cost nothing."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


Price = Callable[[str, Spent], float | None]
"""Dollars for a model's tokens; None when no price is known."""


def unknown_price(model: str, spent: Spent) -> float | None:
    """No table yet: only nothing is known to cost nothing."""
    return None
