"""What a run's new tokens cost, what it may spend, and what it has spent.

Prices come from a table; without one the cost is unknown. The meter is shared by all workers and
looked at before every call: episodes are long and many are in flight, so a limit that is only
looked at when one ends would be overrun many times over. An episode that may not go on waits; the
run is then stopped.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from typing_extensions import TypedDict

from rpms.evals.records import Episode, Session
from rpms.models.prices import Rates, rates_for
from rpms.vocabulary.errors import RpmsError

DIGITS = 9
"""A call may cost a few millionths of a dollar; a billionth is below every price."""


class Spent(TypedDict):
    """Tokens of the calls that were really made; replayed replies cost nothing."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


def nothing_spent() -> Spent:
    """Where counting begins."""
    return Spent(prompt_tokens=0, cached_tokens=0, output_tokens=0)


def spent_in(episode: Episode) -> Spent:
    """What an episode's line says was spent."""
    return Spent(
        prompt_tokens=episode.spent_prompt_tokens,
        cached_tokens=episode.spent_cached_tokens,
        output_tokens=episode.spent_output_tokens,
    )


def cost_of(spent: Spent, rates: Rates | None) -> float | None:
    """Dollars for the tokens of one model; None where its price is not known."""
    if rates is None:
        return None
    cost = rates.cost(spent["prompt_tokens"], spent["cached_tokens"], spent["output_tokens"])
    return round(cost, DIGITS)


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


class Total(NamedTuple):
    """Tokens and dollars together."""

    tokens: int = 0
    usd: float = 0.0


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

    def add(self, spent: Spent, cost: float | None) -> None:
        """Count the tokens of calls that were made."""
        with self._sums.get_lock():
            self._sums[0] += spent["prompt_tokens"] + spent["output_tokens"]
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
        limits, now = self.budget, self.total
        return bool(
            (limits.tokens and now.tokens >= limits.tokens)
            or (limits.usd and now.usd >= limits.usd)
        )

    def stop_if_spent(self) -> None:
        """End the session; the folder stays as it is and can be gone on with."""
        if not self.is_spent:
            return
        limits, now = self.budget, self.total
        by_tokens = limits.tokens and now.tokens >= limits.tokens
        what = f"{limits.tokens:,} tokens" if by_tokens else f"${limits.usd:g}"
        used = f"{now.tokens:,} tokens" if by_tokens else f"${now.usd:.4f}"
        raise RpmsError(
            f"stopped: budget of {what} spent ({used} so far); raise it and run the same command "
            "again to go on"
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
    known = [session.spent for session in sessions if session.spent]
    return Total(
        max(tokens, sum(spent.tokens for spent in known)),
        max(usd, sum(spent.usd or 0.0 for spent in known)),
    )
