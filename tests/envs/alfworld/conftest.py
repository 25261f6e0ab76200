"""Set-up for tests of the engine: an engine, and a game they may damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rpms.envs.alfworld.engine import GameEngine


@pytest.fixture
def engine() -> GameEngine:
    return GameEngine()


@pytest.fixture
def game(official_games: list[Path], tmp_path: Path) -> Path:
    """A private copy of the smallest game."""
    smallest = min(official_games, key=lambda path: path.stat().st_size)
    return Path(shutil.copy(smallest, tmp_path / "game.tw-pddl"))
