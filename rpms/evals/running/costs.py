"""The cost of a run and its budget.

Without a price for the model the cost is unknown. All workers share the meter and check it before
every call: episodes are long and many are in flight, so a check at the end of each would overrun
the budget many times over. An episode over the budget waits until the run is stopped.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rpms.evals.records.schema import Episode, Session
from rpms.models.prices import Rates, rates_for
from rpms.vocabulary.errors import RpmsError

DIGITS = 9
"""Decimal places of a cost in dollars; a call may cost a few millionths."""


class Tokens(NamedTuple):
    """Tokens of one or many calls; ``cached_tokens`` are the reused part of the prompts."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, Any]) -> Tokens:
        return cls(*(counts.get(name, 0) for name in cls._fields))

    def plus(self, other: Tokens, sign: int = 1) -> Tokens:
        """The sum, or with ``sign=-1`` the difference."""
        return Tokens(*(a + sign * b for a, b in zip(self, other, strict=True)))


def cost_of(spent: Tokens, rates: Rates | None) -> float | None:
    """The cost in dollars; None without a price."""
    return None if rates is None else round(rates.cost(*spent), DIGITS)


class Total(NamedTuple):
    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: Total) -> Total:
        return Total(self.tokens + other.tokens, self.usd + other.usd)


@dataclass(frozen=True)
class Budget:
    """Limits for all sessions of a run folder; 0 for no limit."""

    usd: float = 0.0
    tokens: int = 0

    def check(self, model: str, base_url: str) -> None:
        """Raise an error for a budget that cannot be checked."""
        if not self.usd >= 0 or self.tokens < 0:
            raise RpmsError("--budget-usd and --budget-tokens must not be negative")
        if self.usd and rates_for(model, base_url) is None:
            raise RpmsError(
                f"--budget-usd needs a price, and none is known for '{model}' at this address; add "
                "it to the file of RPMS_PRICES (docs/evaluation.md), or give --budget-tokens"
            )

    def overrun_by(self, spent: Total) -> str:
        """The limit that is reached, as text; empty if none is."""
        if self.tokens and spent.tokens >= self.tokens:
            return f"{self.tokens:,} tokens spent ({spent.tokens:,} tokens so far)"
        if self.usd and spent.usd >= self.usd:
            return f"${self.usd:g} spent (${spent.usd:.4f} so far)"
        return ""


NO_LIMIT = Budget()
NO_COST = Total()


class Meter:
    """The cost of all sessions of a run folder so far, shared by all processes."""

    def __init__(self, budget: Budget = NO_LIMIT, before: Total = NO_COST) -> None:
        """Start at ``before``, the cost of earlier sessions."""
        self.budget = budget
        # Workers are spawned, so the shared array must come from that context.
        self._sums = multiprocessing.get_context("spawn").Array("d", [*before])
        self._before = before

    def add(self, spent: Tokens, cost: float | None) -> None:
        with self._sums.get_lock():
            self._sums[0] += spent.prompt_tokens + spent.output_tokens
            self._sums[1] += cost or 0.0

    @property
    def total(self) -> Total:
        """The cost of all sessions."""
        with self._sums.get_lock():
            return Total(int(self._sums[0]), self._sums[1])

    @property
    def session(self) -> Total:
        """The cost of this session."""
        total = self.total
        return Total(total.tokens - self._before.tokens, total.usd - self._before.usd)

    @property
    def is_spent(self) -> bool:
        """No further call may be made."""
        return bool(self.budget.overrun_by(self.total))

    def stop_if_spent(self) -> None:
        """Stop the session if the budget is spent; the folder can be continued later."""
        if overrun := self.budget.overrun_by(self.total):
            raise RpmsError(
                f"stopped: budget of {overrun}; raise it and run the same command again to continue"
            )


def spent_before(episodes: Iterable[Episode], sessions: Iterable[Session]) -> Total:
    """The cost of a run folder: the sum of its episodes or of its sessions, whichever is more.

    Sessions include the calls of interrupted episodes. A killed session recorded no cost, but its
    finished episodes did.
    """
    tokens, usd = 0, 0.0
    for episode in episodes:
        tokens += episode.spent_prompt_tokens + episode.spent_output_tokens
        usd += episode.cost_usd or 0.0
    bills = [session.spent for session in sessions if session.spent]
    return Total(
        max(tokens, sum(bill.tokens for bill in bills)),
        max(usd, sum(bill.usd or 0.0 for bill in bills)),
    )
