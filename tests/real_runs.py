"""Small real runs, played once per test session for all tests that look at one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rpms.commands.main import app

CONDITIONS = "A,S,B,C,D"
TASKS = 2
Play = Callable[..., Path]


@pytest.fixture(scope="session")
def play_once(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """A run by its name, played by the first test worker that needs it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def play(name: str, *words: str) -> Path:
        folder = shared / f"played-{name}"
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            played = folder.with_suffix(".played")
            if not played.exists():
                command = ["eval", *words, "--workers", "0", "--out", str(folder)]
                done = CliRunner().invoke(app, command)
                assert done.exit_code == 0, done.output
                played.touch()
        return folder

    return play


@pytest.fixture(scope="session")
def real_run(play_once: Play) -> Path:
    """The built-in planner in two generated homes, under every condition of the ablation."""
    words = ["--split", "generated_unseen", "--conditions", CONDITIONS, "--limit", str(TASKS)]
    return play_once("alfworld", *words)


@pytest.fixture(scope="session")
def random_run(play_once: Play) -> Path:
    """Whoever picks any action, in a generated home."""
    words = ["--split", "generated_unseen", "--conditions", "A", "--limit", "1"]
    return play_once("random", *words, "--model", "random")


@pytest.fixture(scope="session")
def science_run(play_once: Play) -> Path:
    """The built-in planner in ScienceWorld."""
    words = ["--env", "scienceworld", "--split", "train_mini", "--conditions", "A", "--limit", "1"]
    return play_once("scienceworld", *words, "--max-steps", "20")
