"""What a run's new tokens cost, what it may spend, and what it has spent.

Prices come from a table; without one the cost is unknown. The meter is shared by all workers and
looked at before every call: episodes are long and many are in flight, so a limit that is only
looked at when one ends would be overrun many times over. An episode that may not go on waits; the
run is then stopped.
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
"""A call may cost a few millionths of a dollar; a billionth is below every price."""


class Tokens(NamedTuple):
    """Of one call or of many; ``cached_tokens`` are the part of the prompts that was reused."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, Any]) -> Tokens:
        """The counts by their names."""
        return cls(*(counts.get(name, 0) for name in cls._fields))

    def plus(self, other: Tokens, sign: int = 1) -> Tokens:
        """Both together, or with ``sign=-1`` what is more than the other."""
        return Tokens(*(a + sign * b for a, b in zip(self, other, strict=True)))


def cost_of(spent: Tokens, rates: Rates | None) -> float | None:
    """Dollars for the tokens of one model; None where its price is not known."""
    return None if rates is None else round(rates.cost(*spent), DIGITS)


class Total(NamedTuple):
    """Tokens and dollars together."""

    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True)
class Budget:
    """Limits of a whole run folder, over all its sessions; 0 for none."""

    usd: float = 0.0
    tokens: int = 0

    def check(self, model: str, base_url: str) -> None:
        """Refuse what could never be kept to."""
        if not self.usd >= 0 or self.tokens < 0:
            raise RpmsError("--budget-usd and --budget-tokens must not be negative")
        if self.usd and rates_for(model, base_url) is None:
            raise RpmsError(
                f"--budget-usd needs a price, and none is known for '{model}' at this address: "
                "add it to a file named by RPMS_PRICES (docs/costs.md), or give --budget-tokens"
            )

    def overrun_by(self, spent: Total) -> str:
        """The limit that is reached, in words; empty while none is."""
        if self.tokens and spent.tokens >= self.tokens:
            return f"{self.tokens:,} tokens spent ({spent.tokens:,} tokens so far)"
        if self.usd and spent.usd >= self.usd:
            return f"${self.usd:g} spent (${spent.usd:.4f} so far)"
        return ""


NO_LIMIT = Budget()
NOTHING_YET = Total()


class Meter:
    """What the sessions of a run folder have spent so far; any process may add to it."""

    def __init__(self, budget: Budget = NO_LIMIT, before: Total = NOTHING_YET) -> None:
        """``before`` is what earlier sessions spent."""
        self.budget = budget
        # Workers are started afresh ("spawn"), so what they share must be made for that.
        self._sums = multiprocessing.get_context("spawn").Array("d", [*before])
        self._before = before

    def add(self, spent: Tokens, cost: float | None) -> None:
        """Count the tokens of calls that were made."""
        with self._sums.get_lock():
            self._sums[0] += spent.prompt_tokens + spent.output_tokens
            self._sums[1] += cost or 0.0

    @property
    def total(self) -> Total:
        """Everything spent on this folder."""
        with self._sums.get_lock():
            return Total(int(self._sums[0]), self._sums[1])

    @property
    def session(self) -> Total:
        """What this session spent."""
        now = self.total
        return Total(now.tokens - self._before.tokens, now.usd - self._before.usd)

    @property
    def is_spent(self) -> bool:
        """Whether no further call may be made."""
        return bool(self.budget.overrun_by(self.total))

    def stop_if_spent(self) -> None:
        """End the session; the folder stays as it is and can be gone on with."""
        if overrun := self.budget.overrun_by(self.total):
            raise RpmsError(
                f"stopped: budget of {overrun}; raise it and run the same command again to go on"
            )


def spent_before(episodes: Iterable[Episode], sessions: Iterable[Session]) -> Total:
    """What a run folder has cost: by its episodes, or by its sessions where that is more.

    Sessions also know the calls of episodes that never ended; a session that was killed could
    not write down what it knew, but its finished episodes are there.
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
