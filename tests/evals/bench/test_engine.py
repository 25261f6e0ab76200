from __future__ import annotations

from pathlib import Path

import pytest

from rpms.evals.bench.engine import PARTS, bench_engine
from rpms.vocabulary.errors import RpmsError


@pytest.mark.engine
def test_both_engines_are_measured_in_every_part_and_compared(
    official_games: list[Path], stock_textworld: None
) -> None:
    """What is measured and reported; how fast a machine is today is no matter for a test."""
    by_size = sorted(official_games, key=lambda path: (path.stat().st_size, path))
    figures = bench_engine([by_size[0], by_size[len(by_size) // 2]], steps=6)
    engines = {f"{engine}_{part}_s" for engine in ("ours", "stock") for part in PARTS}
    assert set(figures) == engines | {f"{part}_ratio" for part in PARTS}
    assert all(figure > 0 for figure in figures.values())
    for part in PARTS:
        assert figures[f"{part}_ratio"] == figures[f"stock_{part}_s"] / figures[f"ours_{part}_s"]


def test_nothing_to_measure_is_an_error(official_games: list[Path]) -> None:
    with pytest.raises(RpmsError):
        bench_engine([], steps=3)
    with pytest.raises(RpmsError):
        bench_engine(official_games[:1], steps=0)
