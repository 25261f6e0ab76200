"""A run that is killed or stopped in the middle loses nothing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rpms.evals.records.run_folder import EPISODES, MANIFEST
from tests.command_line import Rpms
from tests.commands.conftest import Start
from tests.evals.sample_runs import histories_of, keys_of, lines_of
from tests.openai_server import Answer, OpenAIServer
from tests.processes import RETRY_DEADLINE_S, children, running, wait_until, wait_until_gone


class Gate:
    """A model whose replies depend on the prompt, and that falls silent until it is opened.

    So a run is in the middle for as long as the test wants it to be.
    """

    def __init__(self, replies: int, silence: Callable[[], None] = lambda: None) -> None:
        self._replies, self._silence = replies, silence
        self._lock = threading.Lock()
        self.opened = threading.Event()

    def __call__(self, request: dict[str, Any]) -> Answer:
        with self._lock:
            self._replies -= 1
            silent = self._replies < 0
        if silent and not self.opened.is_set():
            self._silence()
            self.opened.wait()
        mark = hashlib.sha256(json.dumps(request["messages"]).encode()).digest()[0]
        return Answer(f"Action: {('look', 'inventory', 'open fridge 1')[mark % 3]}")


class Gated(NamedTuple):
    gate: Gate
    words: tuple[str | Path, ...]


class Halted(NamedTuple):
    process: subprocess.Popen[str]
    workers: list[int]


@pytest.fixture
def gated(openai_server: OpenAIServer, tmp_path: Path) -> Iterator[Gated]:
    """A run of 8 episodes, two at a time, that stands still after 2 of them or a few more."""
    gate = Gate(replies=8)
    openai_server.plays_by(gate)
    words = ["--conditions", "A,B", "--limit", "4", "--workers", "1", "--concurrency", "2"]
    words += ["--max-steps", "2", "--model", "openai:m", "--base-url", openai_server.url]
    yield Gated(gate, ("eval", "--out", tmp_path / "run", *words))
    gate.opened.set()


@pytest.fixture
def halted(tmp_path: Path, start: Start, gated: Gated) -> Halted:
    """That run in the middle, and its workers."""
    process = start(*gated.words)
    wait_until(lambda: len(lines_of(tmp_path / "run")) >= 2, process)
    return Halted(process, children(process.pid))


@pytest.mark.engine
def test_a_run_killed_with_9_goes_on_where_it_was(
    tmp_path: Path, rpms: Rpms, gated: Gated, halted: Halted
) -> None:
    killed, workers = halted
    assert workers
    killed.kill()
    killed.wait()
    wait_until_gone(workers)
    file = tmp_path / "run" / EPISODES
    whole = file.read_bytes()
    whole = whole[: whole.rfind(b"\n") + 1]
    assert 2 <= whole.count(b"\n") < 8
    file.write_bytes(whole + b'{"condition": "A", "task": "torn')  # killed while writing
    gated.gate.opened.set()
    done = rpms(*gated.words, "--workers", "0")
    assert done.code == 0, done.err
    assert "episodes are finished already" in done.err
    assert file.read_bytes().startswith(whole)
    assert len(keys_of(tmp_path / "run")) == len({*keys_of(tmp_path / "run")}) == 8
    manifest = json.loads((tmp_path / "run" / MANIFEST).read_text())
    assert manifest["finished"] and len(manifest["sessions"]) == 2
    again = (*gated.words, "--out", tmp_path / "again", "--workers", "0")
    assert rpms(*again).code == 0
    assert histories_of(tmp_path / "run") == histories_of(tmp_path / "again")


@pytest.mark.engine
def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(
    tmp_path: Path, rpms: Rpms, gated: Gated, halted: Halted
) -> None:
    process, workers = halted
    for pid in [process.pid, *workers]:  # a terminal sends it to the whole group
        if running(pid):
            os.kill(pid, signal.SIGINT)
    # The model is still silent: nothing but the signal ends the run.
    _, err = process.communicate(timeout=RETRY_DEADLINE_S)
    assert process.returncode == 130
    assert "Traceback" not in err
    finished = len(lines_of(tmp_path / "run"))
    assert f"stopped; {finished} of 8 episodes are finished" in err
    assert "Run the same command again to continue." in err
    wait_until_gone(workers)
    assert (tmp_path / "run" / EPISODES).read_bytes().endswith(b"\n")
    gated.gate.opened.set()
    assert rpms(*gated.words, "--workers", "0").code == 0
    assert len(keys_of(tmp_path / "run")) == len({*keys_of(tmp_path / "run")}) == 8


@pytest.mark.engine
def test_ctrl_c_while_learning_loses_nothing(
    tmp_path: Path, rpms: Rpms, openai_server: OpenAIServer
) -> None:
    """In this very process: the signal comes while the model is thinking."""
    gate = Gate(replies=5, silence=lambda: os.kill(os.getpid(), signal.SIGINT))
    openai_server.plays_by(gate)
    memory, played = tmp_path / "m.jsonl", tmp_path / "m.jsonl.runs" / "round1"
    server = ("--model", "openai:m", "--base-url", openai_server.url)
    alone = ("--workers", "0", "--concurrency", "1")
    words = ("learn", "--out", memory, "--limit", "4", "--max-steps", "2", *alone, *server)
    stopped = rpms(*words)
    assert stopped.code == 130 and not memory.exists()
    assert "stopped; 2 of 4 episodes are finished" in stopped.err
    assert "Run the same command again to continue." in stopped.err
    whole = (played / EPISODES).read_bytes()
    gate.opened.set()
    done = rpms(*words)
    assert done.code == 0 and "2 of 4 episodes are finished already" in done.err
    assert (played / EPISODES).read_bytes().startswith(whole) and len(keys_of(played)) == 4
    assert "from 4 episodes" in done.out and rpms("memory", "check", memory).code == 0
