"""The progress of a run: counts of finished episodes, shown as a bar or as lines of a log."""

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
class ConditionTally:
    """The results of one condition so far; errors are counted separately."""

    wins: int = 0
    decided: int = 0
    errors: int = 0


class EpisodeEnd(NamedTuple):
    mode: FailureMode | None
    error: str
    place: ErrorPlace | None = None
    condition: str = ""

    @property
    def line(self) -> str:
        """``file:line`` of an error in the user's code; empty without one."""
        return f"{self.place['file']}:{self.place['line']}" if self.place else ""


@dataclass
class RunProgress:
    """Counts of a whole run.

    Attributes:
        total: the number of episodes of the complete run.
        done: the number of finished episodes, of this and earlier sessions.
        spent_tokens: the tokens of this session's model calls.
        cost_usd: their cost; None without a price.
        cache_hits: the number of replies from the cache.
        tallies: results by condition, in the order of the plan.
        history: the ends of this session's episodes, in order.
        hopeless: the model errors that ended episodes since the last call that worked.
        stopped: the arms that were stopped because every episode failed at the same line, with it.
    """

    total: int
    done: int = 0
    spent_tokens: int = 0
    cost_usd: float | None = None
    cache_hits: int = 0
    tallies: dict[str, ConditionTally] = field(default_factory=dict)
    history: list[EpisodeEnd] = field(default_factory=list)
    hopeless: list[str] = field(default_factory=list)
    stopped: dict[str, str] = field(default_factory=dict)
    _tokens: int = 0

    def add(self, episode: Episode, last: bool = True) -> None:
        """Count one episode of this session; a task counts as done with its last trial."""
        if last:
            self.count(episode)
        self.spent_tokens += episode.spent_prompt_tokens + episode.spent_output_tokens
        self.cache_hits += episode.cache_hits
        if episode.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + episode.cost_usd
        self.history.append(
            EpisodeEnd(episode.failure_mode, episode.error, episode.error_place, episode.condition)
        )

    def line_of_all(self, condition: str) -> str:
        """The line of code at which every episode of an arm failed, after enough of them."""
        lines = [end.line for end in self.history if end.condition == condition]
        same = len(lines) >= ENOUGH and len({*lines}) == 1
        return lines[0] if same and not self.tallies[condition].decided else ""

    @property
    def first_errors(self) -> dict[str, EpisodeEnd]:
        """For each arm, the first episode of this session that failed in the user's code."""
        return {end.condition: end for end in reversed(self.history) if end.place}

    def judge(self, episode: Episode, tokens: int) -> None:
        """Update ``hopeless``; ``tokens`` are those of all calls, also of episodes in flight."""
        if tokens > self._tokens or episode.failure_mode != "model_error":
            self.hopeless.clear()
        else:
            self.hopeless.append(episode.error)
        self._tokens = tokens

    @property
    def expected_usd(self) -> float | None:
        """The expected cost of this session, from the mean cost of its episodes so far."""
        if not self.cost_usd or self.done >= self.total:
            return None
        return self.cost_usd * (1 + (self.total - self.done) / len(self.history))

    def count(self, episode: Episode) -> None:
        """Count a finished task of this or an earlier session."""
        self.done += 1
        tally = self.tallies.setdefault(episode.condition, ConditionTally())
        if episode.is_error:
            tally.errors += 1
        else:
            tally.decided += 1
            tally.wins += episode.failure_mode is None


Watch = Callable[[RunProgress], None]
ENOUGH = 3
"""An arm is stopped after this many episodes if all of them failed at the same line."""
EVERY_S = 30.0
"""Without a terminal, a line is printed at least this often."""
SHARE = 0.1
"""A line is also printed after each such share of the run."""
PLACES = 3
"""The maximal number of error places that are printed."""


def print_error_places(progress: RunProgress) -> None:
    """Print each place at which episodes failed, the most frequent first."""
    places = [end.place for end in progress.history if end.place]
    by_line = {(place["file"], place["line"]): place for place in places}
    counts = Counter((place["file"], place["line"]) for place in places)
    for line, count in counts.most_common(PLACES):
        print_error_place(by_line[line], f"{quantity(count, 'episode')} failed")
    if (more := len(by_line) - PLACES) > 0:
        print_safe(f"rpms: and at {more} other places, which the report lists", file=sys.stderr)


class RunBar(Progress):
    """A progress bar with the results of all arms on the lines below it."""

    below = "starting"

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        yield Text(self.below)


@contextmanager
def show_bar(console: Console, progress: RunProgress) -> Iterator[Watch]:
    """A progress bar for a terminal."""
    times = TimeElapsedColumn(), TimeRemainingColumn(elapsed_when_finished=True)
    with RunBar(BarColumn(), MofNCompleteColumn(), *times, console=console) as bar:
        task = bar.add_task("", total=progress.total, completed=progress.done)

        def watch(progress: RunProgress) -> None:
            lines = [f"{results_text(progress)}; {spending_text(progress)}", *error_lines(progress)]
            bar.below = "\n".join(lines)
            bar.update(task, completed=progress.done)

        yield watch


def print_lines(console: Console, progress: RunProgress) -> Watch:
    """Progress lines for a log."""
    last = (time.monotonic(), progress.done)
    errors = list[str]()

    def watch(progress: RunProgress) -> None:
        nonlocal last
        for line in error_lines(progress):
            if line not in errors:
                errors.append(line)
                console.print(line, soft_wrap=True, markup=False)
        (moment, printed), done, total = last, progress.done, progress.total
        due = done - printed >= max(1, total * SHARE) and done < total
        if due or time.monotonic() - moment >= EVERY_S:
            last = (time.monotonic(), done)
            console.print(
                f"{done} of {total} episodes; {results_text(progress)}; {spending_text(progress)}",
                soft_wrap=True,
            )

    return watch


def error_lines(progress: RunProgress) -> list[str]:
    """The first error of the user's code in each arm, and the arms that stopped."""
    lines, errors = [], progress.first_errors
    for condition in filter(errors.__contains__, progress.tallies):
        end = errors[condition]
        place = f"at {end.line}: {end.error}"
        lines.append(f"error in {condition} {place}")
        if condition in progress.stopped:
            lines.append(f"{condition} stopped: every episode failed {place}")
    return [visible(line) for line in lines]


def results_text(progress: RunProgress) -> str:
    """``A 3/10, D 7/10 (1 error)``."""
    parts = []
    for label, tally in progress.tallies.items():
        errors = f" ({quantity(tally.errors, 'error')})" if tally.errors else ""
        if tally.decided or tally.errors:
            parts.append(f"{label} {tally.wins}/{tally.decided}{errors}")
    return visible(", ".join(parts)) or "starting"  # rich's bar prints it itself


def spending_text(progress: RunProgress) -> str:
    """Tokens, cost and replies from the cache."""
    text = f"{progress.spent_tokens:,} tokens"
    if progress.cost_usd:
        text += f", ${progress.cost_usd:.4f}"
    if progress.expected_usd:
        text += f" of about ${progress.expected_usd:.2f}"
    hits = progress.cache_hits
    return f"{text}, {quantity(hits, 'cached reply')}" if hits else text
