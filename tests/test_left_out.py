"""Without a browser the tests that need one are left out by name, not passed over in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = "tests/evals/report/test_browser.py"


def test_browser_tests_are_named_when_there_is_no_browser(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", FILE],
        cwd=ROOT, env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    _, _, summary = done.stdout.partition("= left out =")
    assert "no browser found; looked for chromium" in summary
    assert f"{FILE}::test_two_conditions_side_by_side" in summary
    assert " passed" not in summary
