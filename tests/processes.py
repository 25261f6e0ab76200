"""Processes that a test started, directly or not: which there are, and that they end."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RETRY_DEADLINE_S = 300
"""A net for what would never end; nothing here waits for it."""


def children(pid: int) -> list[int]:
    """Those that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def running(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be collected does not."""
    if not Path("/proc/self").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pids: list[int]) -> None:
    """Fails with those that go on."""
    end = time.monotonic() + RETRY_DEADLINE_S
    while alive := [pid for pid in pids if running(pid)]:
        assert time.monotonic() < end, f"still running: {alive}"
        time.sleep(0.05)


def wait_until(ready: Callable[[], object], process: subprocess.Popen[Any]) -> None:
    """Something comes about while a process runs, or as its last act; fails if it does not."""
    end, ended = time.monotonic() + RETRY_DEADLINE_S, False
    while not ready():
        assert not ended, "it ended before that"
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)
        ended = process.poll() is not None  # before the last look, which sees what it left
