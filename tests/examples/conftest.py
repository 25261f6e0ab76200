"""``rpms`` as it is called from a folder of somebody's own."""

from __future__ import annotations

import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpms.envs import get_environment
from tests.command_line import Done, Rpms

Shell = Callable[[str, Path], Done]


@pytest.fixture
def shell(
    rpms: Rpms,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    no_workers: None,
) -> Iterator[Shell]:
    """Runs the lines of a script in a folder until one fails; all that was printed."""
    folders, path = set[Path](), [*sys.path]
    monkeypatch.setenv("COLUMNS", "200")

    def run(script: str, folder: Path) -> Done:
        monkeypatch.chdir(folder)
        folders.add(folder)
        sys.path[:] = [entry for entry in path if entry]  # the command finds the folder itself
        printed, done = "", Done(0, "", "")
        for line in script.splitlines():
            program, *words = shlex.split(line, comments=True) or [""]
            if program == "python" and words[0] == "-m":  # a module of the folder, from anew
                module = [sys.executable, *words]
                printed += subprocess.run(module, check=True, capture_output=True, text=True).stdout
                continue
            if program == "python":  # a script of the page
                monkeypatch.setattr(sys, "argv", words)
                sys.path.insert(0, str(Path(words[0]).parent.resolve()))
                runpy.run_path(words[0], run_name="__main__")
                printed += capsys.readouterr().out
                continue
            assert program == "rpms", line
            done = rpms(*words)
            printed += done.out
            if done.code:
                break
        return done._replace(out=printed)

    yield run
    sys.path[:] = path
    get_environment.cache_clear()
    for name, module in [*sys.modules.items()]:  # the next script's are called the same
        if folders & {*Path(getattr(module, "__file__", None) or "/").parents}:
            del sys.modules[name]
