"""What is being played right now, in a small file beside the run, for whoever follows it.

Nothing depends on it: a disk that is full, or a reader that comes at the wrong moment, costs no
episode. A run that was killed leaves the file behind; it counts for as long as it is fresh.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from rpms.evals.budget import Total
from rpms.evals.run_layout import JobKey

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
        told = InFlight(at=now, tokens=spent.tokens, usd=spent.usd, episodes=episodes)
        work = self._file.with_name(f".{IN_FLIGHT}.{os.getpid()}")
        with suppress(OSError):
            work.write_text(told.model_dump_json(), encoding="utf-8")
            work.replace(self._file)

    def end(self) -> None:
        """Nothing is in flight any more."""
        with suppress(OSError):
            self._file.unlink(missing_ok=True)


def read_in_flight(folder: Path) -> InFlight | None:
    """What is in flight; None when nobody plays this run now."""
    try:
        told = InFlight.model_validate(json.loads((folder / IN_FLIGHT).read_bytes()))
    except (OSError, ValueError, ValidationError, RecursionError):
        return None
    return told if abs(time.time() - told.at) < FRESH_S else None
