from __future__ import annotations

import pytest

from rpms.evals.bench.throughput import bench_throughput
from rpms.vocabulary.errors import RpmsError


@pytest.mark.engine
def test_many_episodes_wait_for_their_model_side_by_side() -> None:
    """The full-size measurement is ``rpms bench``; this one fits into a test run.

    Twelve episodes one after the other would take thirty seconds of waiting alone.
    """
    found = bench_throughput(
        episodes=12, steps=5, latency=0.5, concurrency=12, workers=2, loop_steps=2
    )
    assert found["ideal_s"] == 2.5
    assert found["most_in_flight"] >= 10
    assert found["loop_s"] >= 30
    assert found["speedup"] > 3
    assert found["ratio"] >= 1, "faster than the server answers"


def test_nonsense_is_refused() -> None:
    with pytest.raises(RpmsError, match="at least 1"):
        bench_throughput(episodes=0)
