"""What starting costs: the command line and the import, next to a Python that does nothing.

Processor time of a process of its own, so that a busy machine changes little; the least of some
tries, as the first ones also warm the file system.
"""

from __future__ import annotations

import os
import sys

PROGRAMS = {
    "python -c pass": ("-c", "pass"),
    "import rpms": ("-c", "import rpms"),
    "rpms --version": ("-m", "rpms", "--version"),
    "rpms --help": ("-m", "rpms", "--help"),
    "rpms run --help": ("-m", "rpms", "run", "--help"),
    "from rpms import run_episode": ("-c", "from rpms import run_episode"),
}


def bench_startup(tries: int = 5) -> dict[str, float]:
    """Processor seconds of each program."""
    return {
        name: min(_processor_time(words) for _ in range(tries)) for name, words in PROGRAMS.items()
    }


def _processor_time(words: tuple[str, ...]) -> float:
    quiet = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    pid = os.posix_spawn(sys.executable, [sys.executable, *words], os.environ, file_actions=[quiet])
    _, status, used = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"'{' '.join(words)}' ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime
