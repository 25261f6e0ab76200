from __future__ import annotations

import os
from pathlib import Path

import pytest

from rpms.envs.alfworld import memo
from rpms.envs.alfworld.engine import GameEngine
from rpms.vocabulary.folders import cache_dir

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("own_cache")]


@pytest.mark.parametrize("damaged", [b"", b"nonsense", b"0" * 64 + b"\n{}", None])
def test_a_damaged_cache_entry_is_made_again(
    damaged: bytes | None, game: Path, engine: GameEngine, own_cache: Path
) -> None:
    engine.load(game)
    start = engine.reset()
    (entry,) = own_cache.rglob("*.sas")
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2] if damaged is None else damaged)
    memo.forget()
    engine.load(game)
    assert engine.reset() == start
    assert entry.read_bytes() == whole
    assert [path.name for path in entry.parent.iterdir()] == [entry.name]


def test_a_stored_translation_is_used_and_equal(
    game: Path, engine: GameEngine, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.load(game)
    start = engine.reset()
    memo.forget()

    def never(domain: str, problem: str) -> memo.Translation:
        raise AssertionError("translated again")

    monkeypatch.setattr(memo, "_translate", never)
    engine.load(game)
    assert engine.reset() == start


def test_an_unwritable_cache_only_costs_time(
    game: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.write_text("a file where the folder should be")
    engine = GameEngine()
    engine.load(game)
    assert engine.reset().admissible_commands
    engine.close()
    uncached = GameEngine(cache=False)
    memo.forget()
    uncached.load(game)
    assert uncached.reset().admissible_commands
    uncached.close()
    assert own_cache.read_text().startswith("a file")


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_dir() == Path(os.environ["RPMS_CACHE"])
    monkeypatch.delenv("RPMS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_dir() == Path("/somewhere/rpms")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "rpms"
