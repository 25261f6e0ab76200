"""The bar of a run."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from rpms.evals.running.progress import ConditionTally, RunProgress, show_bar


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
