"""The command line inside the test's process, and ``rpms eval`` as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command_line import Done, Rpms, in_process
from tests.processes import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def rpms(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rpms:
    """Commands in this process, without keys."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return in_process(monkeypatch, capsys)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No key, and a response cache of the test's own."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, "RPMS_RESPONSE_CACHE": str(tmp_path / "responses.sqlite")}


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Start]:
    """Starts ``rpms eval`` as a process of its own; none is left behind."""
    started: list[subprocess.Popen[str]] = []

    def run(out: Path, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "rpms", "eval", "--out", str(out), *words]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def rpms_eval(start: Start) -> Callable[..., Done]:
    def run(out: Path, *words: str) -> Done:
        process = start(out, *words)
        told, said = process.communicate(timeout=PATIENCE_S)
        return Done(process.returncode, told, said)

    return run
