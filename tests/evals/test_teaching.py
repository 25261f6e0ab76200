from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import children, wait_until, wait_until_gone

CALLED = [
    *("-m", "rpms", "export", "--format", "chat", "--expert"),
    *("--limit", "400", "--workers", "2", "--out"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes")
@pytest.mark.parametrize("when", ["they are starting", "they play"])
def test_nobody_plays_on_when_the_writer_is_killed(tmp_path: Path, when: str) -> None:
    out = tmp_path / "lines.jsonl"
    with subprocess.Popen([sys.executable, *CALLED, str(out)], stderr=subprocess.DEVNULL) as writer:
        try:
            if when == "they play":
                wait_until(lambda: out.exists() and out.stat().st_size, writer)
            # Two who play, and the process with which Python tidies up after them.
            wait_until(lambda: len(children(writer.pid)) >= 3, writer)
            started = children(writer.pid)
        finally:
            writer.kill()
    wait_until_gone(started)
