from __future__ import annotations

from pathlib import Path

import pytest

from rpms.evals.bench.engine import bench_engine
from rpms.vocabulary.errors import RpmsError


@pytest.mark.engine
def test_the_engine_is_many_times_faster_than_stock(
    official_games: list[Path], stock_textworld: None
) -> None:
    by_size = sorted(official_games, key=lambda path: (path.stat().st_size, path))
    games = [by_size[len(by_size) * part // 6] for part in range(1, 6)]
    figures = bench_engine(games, steps=6)
    assert figures["reset_ratio"] >= 10
    assert figures["step_ratio"] >= 8
    assert figures["load_ratio"] > 3
    assert figures["episode_ratio"] > 3
    assert figures["stock_step_s"] / figures["ours_step_s"] == figures["step_ratio"]


def test_nothing_to_measure_is_an_error(official_games: list[Path]) -> None:
    with pytest.raises(RpmsError):
        bench_engine([], steps=3)
    with pytest.raises(RpmsError):
        bench_engine(official_games[:1], steps=0)
