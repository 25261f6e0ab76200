"""Equality with stock TextWorld: against transcripts everywhere, live where it is installed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rpms.envs.alfworld.engine import GameEngine
from tests.refusal import refused
from tools import compare_engines
from tools.compare_engines import StockEngine, compare

pytestmark = pytest.mark.engine

RECORDED = compare_engines.read_transcripts()


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_plays_as_stock_did(number: int, tmp_path: Path) -> None:
    """Word for word and fact for fact what stock TextWorld said, without having it."""
    entries = RECORDED[number]
    ours = compare_engines.replay(entries, tmp_path)
    recorded = [json.dumps(entry, separators=(",", ":")) for entry in entries]
    for mine, theirs in zip(ours.splitlines(), recorded, strict=True):
        assert mine == theirs


def test_the_transcripts_cover_what_they_should() -> None:
    heads = [entries[0] for entries in RECORDED]
    assert [
        (h["split"], h["dialect"], h["index"]) for h in heads
    ] == compare_engines.recorded_homes()
    assert len(heads) >= 40
    assert Counter(h["dialect"] for h in heads) == {"move": 24, "put": 24}
    steps = [entry for entries in RECORDED for entry in entries[1:]]
    assert sum(entry[1] == "Nothing happens." for entry in steps) > 40
    assert sum(entry[2] for entry in steps) >= len(heads)  # every home is won


def test_recording_again_gives_the_same_bytes(stock_textworld: None) -> None:
    whole = compare_engines.OUT.read_text(encoding="utf-8")
    for kind in (compare_engines.recorded_homes()[1], compare_engines.recorded_homes()[-1]):
        assert compare_engines.record(kind) in whole


@pytest.mark.parametrize("part", range(4))
def test_plays_as_stock_does(
    part: int, official_games: list[Path], put_games: list[Path], stock_textworld: None
) -> None:
    """Live, in official games of both wordings where they are at hand; stock is slow."""
    by_size = sorted(official_games, key=lambda path: (path.stat().st_size, path))
    games = [*by_size[:4], *by_size[:: max(1, len(by_size) // 4)][:4], *put_games[:4]]
    ours, theirs = GameEngine(), StockEngine()
    for file in games[part::4]:
        count, difference = compare(file, ours, theirs, steps=9)
        assert not difference, file
        assert count > 12


def test_a_missing_stock_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_engines, "_STOCK", ("no_such_package",))
    with refused("no_such_package", "make textworld"):
        compare_engines.main(["no such game"])
