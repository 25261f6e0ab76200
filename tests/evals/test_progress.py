"""What is being played now: told while a run goes on, and worth nothing when it is old."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from rpms.evals import progress
from rpms.evals.costs import Total
from rpms.evals.progress import (
    IN_FLIGHT,
    FlightNotes,
    InFlight,
    RunProgress,
    Tally,
    read_in_flight,
    show_bar,
)
from rpms.evals.records import JobKey
from tests.evals.sample_runs import play_short, short_plan

FIRST, SECOND = JobKey("A", "one"), JobKey("B", "two", 2, 3)


@pytest.mark.parametrize("width", [40, 80])
def test_the_bar_fits_however_many_arms_there_are(width: int) -> None:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    now = RunProgress(14, spent_tokens=1_234_567, cache_hits=1)
    with show_bar(console, now) as watch:
        for label in ("A", "S", "B", "C", "D", "A+verify", "D+verify", "D theta=0.8"):
            now.standings[label] = Tally(1, 2, errors=1)
        now.done = 12
        watch(now)
    shown = out.getvalue().rpartition("\x1b[2K")[2]  # what stays after the last drawing
    assert all(cell_len(line) <= width for line in shown.splitlines())
    assert "12/14" in shown and "1 cached reply" in " ".join(shown.split())
    assert "D theta=0.8 1/2 (1 error)" in " ".join(shown.split())


class Clock:
    """A time that stands still until it is moved."""

    now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_episodes_are_told_with_since_when(tmp_path: Path, clock: Clock) -> None:
    notes = FlightNotes(tmp_path)
    notes.note([FIRST], Total(10, 0.5))
    clock.now += 2
    notes.note([FIRST, SECOND], Total(20, 1.0))
    state = read_in_flight(tmp_path)
    assert state and (state.tokens, state.usd) == (20, 1.0)
    assert [tuple(flying) for flying in state.episodes] == [(FIRST, 1000.0), (SECOND, 1002.0)]
    notes.end()
    notes.end()
    assert read_in_flight(tmp_path) is None and not list(tmp_path.iterdir())


def test_nothing_is_written_more_often_than_needed(tmp_path: Path, clock: Clock) -> None:
    notes = FlightNotes(tmp_path)
    notes.note([FIRST], Total())
    clock.now += progress.APART_S / 2
    notes.note([SECOND], Total())
    clock.now += progress.APART_S / 2
    assert [flying.key for flying in in_flight(tmp_path).episodes] == [FIRST]
    notes.note([SECOND], Total())
    assert [flying.key for flying in in_flight(tmp_path).episodes] == [SECOND]
    clock.now += progress.BEAT_S
    notes.note([SECOND], Total(7))
    assert in_flight(tmp_path).tokens == 7


def in_flight(folder: Path) -> InFlight:
    state = read_in_flight(folder)
    assert state
    return state


@pytest.mark.parametrize("text", ["", "[]", "{", '{"at": "now"}', "[" * 100_000, "\xff"])
def test_a_file_that_is_damaged_or_old_counts_no_more(
    tmp_path: Path, text: str, clock: Clock
) -> None:
    (tmp_path / IN_FLIGHT).write_text(text, encoding="latin-1")
    assert read_in_flight(tmp_path) is None
    FlightNotes(tmp_path).note([FIRST], Total())
    assert read_in_flight(tmp_path)
    clock.now += progress.FRESH_S
    assert read_in_flight(tmp_path) is None
    # A folder that cannot be written costs nothing.
    notes = FlightNotes(tmp_path / "gone")
    notes.note([FIRST], Total())
    notes.end()
    assert read_in_flight(tmp_path / "gone") is None


def test_a_real_run_tells_what_it_plays_and_tidies_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "APART_S", 0.0)
    plan = short_plan("AB", 1, max_steps=4)
    seen: set[JobKey] = set()

    def watch(progress: object) -> None:
        if state := read_in_flight(tmp_path):
            seen.update(flying.key for flying in state.episodes)

    play_short(plan, tmp_path, watch=watch)
    assert seen and seen <= {job.key for job in plan.jobs()}
    assert not (tmp_path / IN_FLIGHT).exists()
