"""The ``rpms`` command inside the test's own process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rpms.commands import main as cli


class Done(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


Rpms = Callable[..., Done]


def in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rpms:
    """Runs commands as the entry point does."""

    def run(*words: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["rpms", *map(str, words)])
        with pytest.raises(SystemExit) as exit:
            cli.main()
        captured = capsys.readouterr()
        return Done(int(exit.value.code or 0), captured.out, captured.err)

    return run
