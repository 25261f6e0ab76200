"""Set-up for tests of the engine: a cache of their own, and a game they may damage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpms.envs.alfworld import memo
from rpms.envs.alfworld.engine import GameEngine


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, with nothing remembered in this process either."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RPMS_CACHE", str(folder))
    memo.forget()
    return folder


@pytest.fixture
def engine(own_cache: Path) -> Iterator[GameEngine]:
    engine = GameEngine()
    yield engine
    engine.close()


@pytest.fixture
def game(official_games: list[Path], tmp_path: Path) -> Path:
    """A private copy of the smallest game."""
    smallest = min(official_games, key=lambda path: path.stat().st_size)
    return Path(shutil.copy(smallest, tmp_path / "game.tw-pddl"))
