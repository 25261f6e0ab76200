"""How a run stands: counted as episodes finish, and what is being played right now.

The latter lies in a small file beside the run, for whoever follows it. Nothing depends on it: a
disk that is full, or a reader that comes at the wrong moment, costs no episode. A run that was
killed leaves the file behind; it counts for as long as it is fresh.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from rpms.evals.costs import Total
from rpms.evals.records import Episode, JobKey
from rpms.vocabulary.error_place import ErrorPlace
from rpms.vocabulary.turn import FailureMode


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

    def resume(self, finished: Iterable[Episode]) -> None:
        """Count what earlier sessions finished."""
        for episode in finished:
            self._count(episode)

    def add(self, episode: Episode, last: bool = True) -> None:
        """Count one episode of this session; a task counts as done with its last trial."""
        if last:
            self._count(episode)
        self.spent_tokens += episode.spent_prompt_tokens + episode.spent_output_tokens
        self.cache_hits += episode.cache_hits
        if episode.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + episode.cost_usd
        self.history.append(Ended(episode.failure_mode, episode.error, episode.error_place))

    def judge(self, episode: Episode, tokens: int) -> None:
        """Note whether anything still works; ``tokens`` are of all calls, those in flight too."""
        if tokens > self._tokens or episode.failure_mode != "model_error":
            self.hopeless.clear()
        else:
            self.hopeless.append(episode.error)
        self._tokens = tokens

    @property
    def expected_usd(self) -> float | None:
        """What this session will have cost in the end, if the rest is like what was played."""
        if not self.cost_usd or self.done >= self.total:
            return None
        return self.cost_usd * (1 + (self.total - self.done) / len(self.history))

    def _count(self, episode: Episode) -> None:
        self.done += 1
        standing = self.standings.setdefault(episode.condition, Standing())
        if episode.is_error:
            standing.errors += 1
        else:
            standing.played += 1
            standing.wins += episode.failure_mode is None


IN_FLIGHT = "in_flight.json"
APART_S = 1.0
"""Two writings are at least so far apart."""
BEAT_S = 5.0
"""And at most so far: the file's age tells whether the run still goes on."""
FRESH_S = 20.0


class Flying(NamedTuple):
    """An episode that is being played, and since when."""

    key: JobKey
    since: float


class InFlight(BaseModel):
    """The file: when it was written, the episodes, and what the whole run has spent so far."""

    at: float
    tokens: int
    usd: float
    episodes: list[Flying]


class FlightNotes:
    """Keeps the file while a run is played."""

    def __init__(self, folder: Path) -> None:
        """Nothing is written yet."""
        self._file = folder / IN_FLIGHT
        self._since: dict[JobKey, float] = {}
        self._written = 0.0

    def note(self, keys: Iterable[JobKey], spent: Total) -> None:
        """Tell what is in flight; called as often as anybody likes."""
        now = time.time()
        since = {key: self._since.get(key, now) for key in keys}
        due = APART_S if since.keys() != self._since.keys() else BEAT_S
        if now - self._written < due:
            return
        self._since, self._written = since, now
        episodes = [Flying(key, begun) for key, begun in since.items()]
        state = InFlight(at=now, tokens=spent.tokens, usd=spent.usd, episodes=episodes)
        work = self._file.with_name(f".{IN_FLIGHT}.{os.getpid()}")
        with suppress(OSError):
            work.write_text(state.model_dump_json(), encoding="utf-8")
            work.replace(self._file)

    def end(self) -> None:
        """Nothing is in flight any more."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def read_in_flight(folder: Path) -> InFlight | None:
    """What is in flight; None when nobody plays this run now."""
    try:
        state = InFlight.model_validate(json.loads((folder / IN_FLIGHT).read_bytes()))
    except (OSError, ValueError, ValidationError, RecursionError):
        return None
    return state if abs(time.time() - state.at) < FRESH_S else None
