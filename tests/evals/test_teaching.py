from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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


def children(pid: int) -> set[int]:
    """Processes of that parent, by /proc; those of a process that is gone have another one."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after_name[1]) == pid and after_name[0] != "Z":
            found.add(int(stat.parent.name))
    return found


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes")
def test_nobody_plays_on_when_the_writer_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "lines.jsonl"
    with subprocess.Popen(
        [sys.executable, *CALLED, "--out", str(out)], stderr=subprocess.DEVNULL
    ) as writer:
        while not out.exists() or not out.stat().st_size:
            assert writer.poll() is None
            time.sleep(0.1)
        started = children(writer.pid)
        assert len(started) >= 2
        os.kill(writer.pid, signal.SIGKILL)
    for _ in range(600):
        if not any(map(alive, started)):
            break
        time.sleep(0.1)
    assert not any(map(alive, started))
