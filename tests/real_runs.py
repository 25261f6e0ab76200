"""Small real runs, played once per test session for all tests that look at one."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.globals import get_llm_cache, set_llm_cache
from typer.testing import CliRunner

from rpms.commands.main import app

CONDITIONS = "A,S,B,C,D"
TASKS = 2
Play = Callable[..., Path]


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all test workers of this session."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def play_once(shared_folder: Path) -> Play:
    """A run by its name, played by the first test worker that needs it."""

    def play(name: str, *words: str) -> Path:
        folder = shared_folder / f"played-{name}"
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


class SessionReplies(BaseCache):
    """What a real model replied in this test session, by the prompt alone: it decodes greedily."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def _file(self, prompt: str) -> Path:
        return self._folder / hashlib.sha256(prompt.encode()).hexdigest()

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        file = self._file(prompt)
        return pickle.loads(file.read_bytes()) if file.is_file() else None

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        self._file(prompt).write_bytes(pickle.dumps(return_val))

    def clear(self, **_: Any) -> None:
        raise NotImplementedError


@pytest.fixture
def shipped_model(local_model: str, shared_folder: Path) -> Iterator[None]:
    """The tuned model that comes with us, which is asked each prompt once per session.

    One test at a time: the next finds its weights merged and the replies to the same prompts.
    """
    before = get_llm_cache()
    with (shared_folder / "shipped-model.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        set_llm_cache(SessionReplies(shared_folder / "shipped-model"))
        yield
        set_llm_cache(before)
