"""How a run stands: counted as episodes finish, and shown as a bar or as lines of a log."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from rpms.evals.records.schema import Episode
from rpms.vocabulary.error_place import ErrorPlace
from rpms.vocabulary.output import print_error_place, print_safe, quantity
from rpms.vocabulary.safe_text import visible
from rpms.vocabulary.turn import FailureMode


@dataclass
class Tally:
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
    standings: dict[str, Tally] = field(default_factory=dict)
    history: list[Ended] = field(default_factory=list)
    hopeless: list[str] = field(default_factory=list)
    _tokens: int = 0

    def add(self, episode: Episode, last: bool = True) -> None:
        """Count one episode of this session; a task counts as done with its last trial."""
        if last:
            self.count(episode)
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

    def count(self, episode: Episode) -> None:
        """Count a task as done, in this session or in an earlier one."""
        self.done += 1
        standing = self.standings.setdefault(episode.condition, Tally())
        if episode.is_error:
            standing.errors += 1
        else:
            standing.played += 1
            standing.wins += episode.failure_mode is None


Watch = Callable[[RunProgress], None]
EVERY_S = 30.0
"""How often a log gets a line while nobody watches a terminal."""
SHARE = 0.1
"""And after how much of the run."""
PLACES = 3
"""So many places where episodes broke off are shown."""


def print_error_places(progress: RunProgress) -> None:
    """Each place where episodes broke off once, the most frequent first."""
    places = [ended.place for ended in progress.history if ended.place]
    known = {(place["file"], place["line"]): place for place in places}
    often = Counter((place["file"], place["line"]) for place in places)
    for where, count in often.most_common(PLACES):
        print_error_place(known[where], f"{quantity(count, 'episode')} broke off")
    if (more := len(known) - PLACES) > 0:
        print_safe(f"rpms: and at {more} other places; the report has each", file=sys.stderr)


class RunBar(Progress):
    """A bar, and below it, on as many lines as that takes, what many arms have no room beside."""

    below = "starting"

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar first."""
        yield from super().get_renderables()
        yield Text(self.below)


@contextmanager
def show_bar(console: Console, progress: RunProgress) -> Iterator[Watch]:
    """A bar, for a terminal."""
    times = TimeElapsedColumn(), TimeRemainingColumn(elapsed_when_finished=True)
    with RunBar(BarColumn(), MofNCompleteColumn(), *times, console=console) as bar:
        task = bar.add_task("", total=progress.total, completed=progress.done)

        def watch(now: RunProgress) -> None:
            bar.below = f"{standings(now)}; {spending(now)}"
            bar.update(task, completed=now.done)

        yield watch


def print_lines(console: Console, progress: RunProgress) -> Watch:
    """A line now and then, for a log."""
    last = (time.monotonic(), progress.done)

    def watch(now: RunProgress) -> None:
        nonlocal last
        when, done = last
        much = now.done - done >= max(1, now.total * SHARE) and now.done < now.total
        if much or time.monotonic() - when >= EVERY_S:
            last = (time.monotonic(), now.done)
            console.print(
                f"{now.done} of {now.total} episodes; {standings(now)}; {spending(now)}",
                soft_wrap=True,
            )

    return watch


def standings(progress: RunProgress) -> str:
    """Success so far per condition, errors apart."""
    parts = []
    for label, standing in progress.standings.items():
        errors = f" ({quantity(standing.errors, 'error')})" if standing.errors else ""
        if standing.played or standing.errors:
            parts.append(f"{label} {standing.wins}/{standing.played}{errors}")
    return visible(", ".join(parts)) or "starting"  # rich's bar prints it itself


def spending(progress: RunProgress) -> str:
    """Tokens, cost where something is paid, and replies that cost nothing."""
    text = f"{progress.spent_tokens:,} tokens"
    if progress.cost_usd:
        text += f", ${progress.cost_usd:.4f}"
    if progress.expected_usd:
        text += f" of about ${progress.expected_usd:.2f}"
    hits = progress.cache_hits
    return f"{text}, {quantity(hits, 'cached reply')}" if hits else text
