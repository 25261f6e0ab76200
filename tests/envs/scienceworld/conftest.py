"""One JVM for all tests of this folder that need just any; they share a test worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.envs.base import Task
from rpms.envs.scienceworld.simulator import ScienceWorldGame, Simulator
from rpms.envs.scienceworld.tasks import list_tasks


@pytest.fixture(scope="session")
def game() -> Iterator[ScienceWorldGame]:
    """A game to reset."""
    running = ScienceWorldGame()
    yield running
    running.close()


@pytest.fixture
def simulator(game: ScienceWorldGame) -> Simulator:
    """The same game's simulator, to load tasks into."""
    if game._simulator is None:
        game.reset(list_tasks("test", 1)[0])
    return game._running()


@pytest.fixture(scope="session")
def gold() -> dict[str, list[str]]:
    """Gold actions of two test episodes of each task, written by tools/record_scienceworld.py."""
    recorded: dict[str, list[str]] = json.loads(Path(__file__).with_name("gold.json").read_text())
    return recorded


@pytest.fixture(scope="session")
def episodes() -> dict[str, Task]:
    """The test split by id."""
    return {task["id"]: task for task in list_tasks("test")}
