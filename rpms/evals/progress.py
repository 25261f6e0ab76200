"""How a run stands: counted as episodes finish, shown by whoever watches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rpms.evals.plan import Ending
from rpms.evals.run_layout import JobKey
from rpms.vocabulary.error_place import ErrorPlace
from rpms.vocabulary.turn import ERRORS, FailureMode


@dataclass
class Standing:
    """Success so far of one condition; errors are kept apart from failures."""

    wins: int = 0
    played: int = 0
    errors: int = 0


class Ended(NamedTuple):
    """How one episode ended."""

    mode: FailureMode | None
    error: str
    place: ErrorPlace | None = None


@dataclass
class RunProgress:
    """Counts of a whole run.

    Attributes:
        total: episodes of the complete run.
        done: episodes that are finished, in this session or an earlier one.
        spent_tokens: tokens of the model calls that this session made.
        cost_usd: what they cost; None when no price is known.
        cache_hits: replies that needed no call.
        standings: by condition, in the order of the plan.
        history: how this session's episodes ended, in order.
        hopeless: the model errors that ended episodes since a call last worked.
    """

    total: int
    done: int = 0
    spent_tokens: int = 0
    cost_usd: float | None = None
    cache_hits: int = 0
    standings: dict[str, Standing] = field(default_factory=dict)
    history: list[Ended] = field(default_factory=list)
    hopeless: list[str] = field(default_factory=list)
    _tokens: int = 0

    def resume(self, finished: Mapping[JobKey, Ending]) -> None:
        """Count what earlier sessions finished; a win is an ending without a failure mode."""
        for key, ending in finished.items():
            self._count(key.condition, ending.mode)

    def add(self, line: Mapping[str, Any], last: bool = True) -> None:
        """Count one episode of this session; a task counts as done with its last trial."""
        if last:
            self._count(line["condition"], line["failure_mode"])
        self.spent_tokens += line["spent_prompt_tokens"] + line["spent_output_tokens"]
        self.cache_hits += line["cache_hits"]
        if line["cost_usd"] is not None:
            self.cost_usd = (self.cost_usd or 0.0) + line["cost_usd"]
        self.history.append(Ended(line["failure_mode"], line["error"], line.get("error_place")))

    def judge(self, line: Mapping[str, Any], tokens: int) -> None:
        """Note whether anything still works; ``tokens`` are of all calls, those in flight too."""
        if tokens > self._tokens or line["failure_mode"] != "model_error":
            self.hopeless.clear()
        else:
            self.hopeless.append(line["error"])
        self._tokens = tokens

    @property
    def expected_usd(self) -> float | None:
        """What this session will have cost in the end, if the rest is like what was played."""
        if not self.cost_usd or self.done >= self.total:
            return None
        return self.cost_usd * (1 + (self.total - self.done) / len(self.history))

    def _count(self, label: str, mode: FailureMode | None) -> None:
        self.done += 1
        standing = self.standings.setdefault(label, Standing())
        if mode in ERRORS:
            standing.errors += 1
        else:
            standing.played += 1
            standing.wins += mode is None
