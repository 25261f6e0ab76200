from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import children, wait_until, wait_until_gone

CALLED = (
    "-m",
    "rpms",
    "export",
    "--format",
    "chat",
    "--expert",
    "--limit",
    "5000",
    "--workers",
    "2",
)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes")
def test_nobody_plays_on_when_the_writer_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "lines.jsonl"
    with subprocess.Popen(
        [sys.executable, *CALLED, "--out", str(out)], stderr=subprocess.DEVNULL
    ) as writer:
        wait_until(lambda: out.exists() and out.stat().st_size, writer)
        started = children(writer.pid)
        assert len(started) >= 2
        os.kill(writer.pid, signal.SIGKILL)
    wait_until_gone(started)
