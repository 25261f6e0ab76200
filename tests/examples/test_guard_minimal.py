"""examples/guard_minimal.py: the rules of the file stop three calls of four."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "guard_minimal.py"


def test_three_calls_are_refused_and_one_reaches_its_tool(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(SCRIPT), run_name="__main__")
    unseen, too_much, right, flown = capsys.readouterr().out.splitlines()
    assert "[P-FLOWN]" in unseen and "[P-FEE]" in unseen
    assert unseen.endswith("First: get_booking(booking_id='B1').")
    assert "[P-FEE]" in too_much and "[P-FLOWN]" not in too_much
    assert right == "B1 is cancelled for a fee of 20."
    assert "[P-FLOWN]" in flown and "[P-FEE]" not in flown
