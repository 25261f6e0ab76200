"""A run as people follow it: a bar in a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from rpms.evals.progress import RunProgress
from rpms.evals.runner import Run, Watch
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import open_console, say, say_place
from rpms.vocabulary.safe_text import visible
from rpms.vocabulary.turn import ERRORS

EVERY_S = 30.0
"""How often a log gets a line while nobody watches a terminal."""
SHARE = 0.1
"""And after how much of the run."""
PLACES = 3
"""So many places where episodes broke off are shown."""


@contextmanager
def watched(run: Run, out: str, show: bool = True, strict: bool = True) -> Iterator[Watch]:
    """Show a run while it is played, and say at the end how it stands and what to do next.

    A run in which episodes ended in an error has not succeeded: that is raised at the end, unless
    whoever plays it tells them apart anyway (not ``strict``).
    """
    console = open_console(stderr=True, quiet=not show)
    before = run.progress.done
    if before:
        told = f"{out}: {before} of {run.progress.total} episodes were finished before"
        console.print(told, soft_wrap=True)
    if run.damaged:
        told = f"{out}: {run.damaged} damaged lines tell of no episode; theirs are played again"
        console.print(told, soft_wrap=True)
    try:
        if console.is_terminal:
            with _bar(console, run.progress) as watch:
                yield watch
        else:
            yield _lines(console, run.progress)
    except KeyboardInterrupt:
        say(
            f"rpms: stopped; {run.finished()} of {run.progress.total} episodes are finished "
            f"in {out}. {run.again} to go on.",
            file=sys.stderr,
        )
        raise
    finally:
        if show:
            _say_places(run.progress)
    if show:
        total = run.progress.total
        say(f"{out}: {run.progress.done} of {total} episodes; {standings(run.progress)}")
        say(f"{spending(run.progress)} in this session")
    if strict:
        _complain(run, out)
    if show:
        say(f"look into it: rpms report {out}")


def _say_places(progress: RunProgress) -> None:
    """Each place where episodes broke off once, the most frequent first."""
    places = [ended.place for ended in progress.history if ended.place]
    known = {(place["file"], place["line"]): place for place in places}
    for where, count in Counter((one["file"], one["line"]) for one in places).most_common(PLACES):
        say_place(known[where], f"{count} episode{'s' * (count > 1)} broke off")
    if (more := len(known) - PLACES) > 0:
        say(f"rpms: and at {more} other places; the report has each", file=sys.stderr)


def _complain(run: Run, out: str) -> None:
    history = run.progress.history
    failed = [ended for ended in history if ended.mode in ERRORS]
    if failed:
        kind, place = str(failed[0].mode).replace("_", " "), failed[0].place
        where = f" at {place['file']}:{place['line']}" if place else ""
        raise RpmsError(
            f"{len(failed)} of the {len(history)} episodes played now ended in an error; the "
            f"first ({kind}{where}): {failed[0].error}. {run.again} to play them again; 'rpms "
            f"report {out}' shows what is there"
        )


@contextmanager
def _bar(console: Console, progress: RunProgress) -> Iterator[Watch]:
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[extra]}"),
        console=console,
    )
    with bar:
        task = bar.add_task("starting", total=progress.total, completed=progress.done, extra="")

        def watch(now: RunProgress) -> None:
            told = standings(now)
            bar.update(task, completed=now.done, description=told, extra=spending(now))

        yield watch


def _lines(console: Console, progress: RunProgress) -> Watch:
    last = (monotonic(), progress.done)

    def watch(now: RunProgress) -> None:
        nonlocal last
        when, done = last
        much = now.done - done >= max(1, now.total * SHARE) and now.done < now.total
        if much or monotonic() - when >= EVERY_S:
            last = (monotonic(), now.done)
            console.print(
                f"{now.done} of {now.total} episodes; {standings(now)}; {spending(now)}",
                soft_wrap=True,
            )

    return watch


def standings(progress: RunProgress) -> str:
    """Success so far per condition, errors apart."""
    parts = []
    for label, standing in progress.standings.items():
        errors = f" ({standing.errors} errors)" if standing.errors else ""
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
    return f"{text}, {progress.cache_hits:,} cached replies" if progress.cache_hits else text
