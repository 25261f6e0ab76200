"""What a run may spend, and what it has: shared by all workers, looked at before every call.

Episodes are long and many are in flight; a limit that is only looked at when one ends would be
overrun many times over. So every worker adds each call to one counter in shared memory and asks
it before the next call. An episode that may not go on waits; the run is then stopped.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rpms.evals.costs import Spent
from rpms.models.prices import rates_for
from rpms.vocabulary.errors import RpmsError


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


def spent_before(lines: Iterable[Mapping[str, Any]], sessions: Iterable[Any]) -> Total:
    """What a run folder has cost: by its episodes, or by its sessions where that is more.

    Sessions also know the calls of episodes that never ended; a session that was killed could
    not write down what it knew, but its finished episodes are there.
    """
    tokens, usd = 0, 0.0
    for line in lines:
        tokens += line.get("spent_prompt_tokens", 0) + line.get("spent_output_tokens", 0)
        usd += line.get("cost_usd") or 0.0
    told = [session.get("spent") or {} for session in sessions]
    return Total(
        max(tokens, sum(one.get("tokens", 0) for one in told)),
        max(usd, sum(one.get("usd") or 0.0 for one in told)),
    )
