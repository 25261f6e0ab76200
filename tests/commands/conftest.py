"""The command line inside the test's process, and ``rpms eval`` as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpms.models import forget_models
from tests.command_line import Rpms, in_process

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def rpms(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Rpms]:
    """Commands in this process, without keys."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    forget_models()
    yield in_process(monkeypatch, capsys)
    forget_models()


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a command as a process of its own, without keys; none is left behind."""
    started: list[subprocess.Popen[str]] = []
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}

    def run(*words: str | Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "rpms", *map(str, words)], cwd=ROOT, text=True,
            env=plain,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()
