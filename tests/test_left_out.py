"""Without a browser the tests that need one are left out by name, not passed over in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = "tests/evals/report/test_browser.py"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_browser_tests_are_named_when_there_is_no_browser(workers: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers, FILE],
        cwd=ROOT, env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    _, _, told = done.stdout.partition("= left out =")
    assert "no browser found; looked for chromium" in told
    assert f"{FILE}::test_two_conditions_side_by_side" in told
    assert " passed" not in told
