"""Pages and examples, run as by somebody who has RPMS installed: ``rpms`` in their own folder."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command_line import Done, in_process

ROOT = Path(__file__).resolve().parents[2]
Shell = Callable[..., Done]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """Runs the ``rpms`` lines of a script in a folder until one fails; all that was printed.

    What is imported from ``paths`` (and from the folder, as the command does itself) is forgotten
    afterwards; worker processes are given the same paths.
    """
    rpms, before, path = in_process(monkeypatch, capsys), {*sys.modules}, [*sys.path]
    monkeypatch.setenv("COLUMNS", "200")

    def run(script: str, folder: Path, *paths: Path) -> Done:
        monkeypatch.chdir(folder)
        sys.path[:] = [*map(str, paths), *(name for name in path if name not in ("", str(ROOT)))]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
        out = ""
        for line in script.splitlines():
            program, *words = shlex.split(line)
            assert program == "rpms", line
            done = rpms(*words)
            out += done.out
            if done.code:
                break
        return done._replace(out=out)

    yield run
    sys.path[:] = path
    for name in {*sys.modules} - before:
        if not name.startswith("rpms"):
            del sys.modules[name]
