"""The bar of a run."""

from __future__ import annotations

from contextlib import nullcontext
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from rpms.evals.records.schema import Episode
from rpms.evals.running.progress import ConditionTally, RunProgress, print_lines, show_bar
from rpms.vocabulary.error_place import ErrorPlace
from tests.evals.sample_runs import line


@pytest.mark.parametrize("width", [40, 80])
def test_the_bar_fits_however_many_arms_there_are(width: int) -> None:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    now = RunProgress(14, spent_tokens=1_234_567, cache_hits=1)
    with show_bar(console, now) as watch:
        for label in ("A", "S", "B", "C", "D", "A+verify", "D+verify", "D theta=0.8"):
            now.tallies[label] = ConditionTally(1, 2, errors=1)
        now.done = 12
        watch(now)
    shown = out.getvalue().rpartition("\x1b[2K")[2]  # what stays after the last drawing
    assert all(cell_len(line) <= width for line in shown.splitlines())
    assert "12/14" in shown and "1 cached reply" in " ".join(shown.split())
    assert "D theta=0.8 1/2 (1 error)" in " ".join(shown.split())


PLACE: ErrorPlace = {"stage": "scf", "file": "/home/me/mine.py", "line": 7, "frames": "",
                     "traceback": ""}  # fmt: skip


def failed(condition: str, number: int, **place: int) -> Episode:
    return line(
        condition, number, False, failure_mode="infrastructure_error", error="KeyError: 'foo'",
        error_place={**PLACE, **place},
    )  # fmt: skip


@pytest.mark.parametrize("terminal", [True, False])
def test_the_first_error_of_each_arm_is_shown_at_once(terminal: bool) -> None:
    out = StringIO()
    console = Console(file=out, width=80, force_terminal=terminal, color_system=None)
    progress = RunProgress(100)
    error = "at /home/me/mine.py:7: KeyError: 'foo'"
    shown = [f"error in {arm} {error}" for arm in ("mine", "yours")]
    stopped = f"mine stopped: every episode failed {error}"
    with (
        show_bar(console, progress)
        if terminal
        else nullcontext(print_lines(console, progress)) as watch
    ):
        watch(progress)
        for number in range(2):
            progress.add(failed("mine", number, line=7 + number))
            watch(progress)
        assert (shown[0] in out.getvalue() or terminal) and shown[1] not in out.getvalue()
        progress.stopped["mine"] = "/home/me/mine.py:7"
        watch(progress)
        progress.add(failed("yours", 0))
        watch(progress)
    text = " ".join(out.getvalue().split())
    assert all(text.count(line) == 1 or (terminal and line in text) for line in [*shown, stopped])


def test_an_arm_is_hopeless_if_all_its_episodes_failed_at_one_line() -> None:
    progress = RunProgress(100)
    for number in range(2):
        progress.add(failed("mine", number))
        progress.add(line("D", number, False))
    assert progress.line_of_all("mine") == ""
    progress.add(failed("mine", 2))
    assert progress.line_of_all("mine") == "/home/me/mine.py:7" and not progress.line_of_all("D")
    progress.add(failed("mine", 3, line=8))
    assert progress.line_of_all("mine") == ""
