from __future__ import annotations

import pytest

from rpms.evals.bench.pipeline import bench_pipeline, bench_stages
from rpms.graph.build import STAGES
from rpms.vocabulary.errors import RpmsError


@pytest.mark.engine
def test_a_step_is_taken_apart_into_engine_langgraph_and_ours() -> None:
    """How large each part is depends on the machine and is for ``rpms bench`` to say."""
    found = bench_pipeline(episodes=1, steps=10)
    assert found["engine_ms"] > 0 and found["langgraph_ms"] > 0
    assert found["own_ms"] + found["langgraph_ms"] == pytest.approx(found["pipeline_ms"])
    assert found["interface_ms"] > 0
    assert found["to_langgraph"] == pytest.approx(found["pipeline_ms"] / found["langgraph_ms"])
    assert found["to_engine"] == pytest.approx(found["pipeline_ms"] / found["engine_ms"])
    assert found["own_to_engine"] == pytest.approx(found["own_ms"] / found["engine_ms"])


@pytest.mark.engine
def test_every_stage_that_is_visited_is_told_apart() -> None:
    """The guard is off, so its stage is not among them."""
    found = bench_stages(episodes=1, steps=5)
    assert list(found) == [name for name in STAGES[1:] if name != "action_arbitration"]
    assert all(spent > 0 for spent in found.values())


def test_nonsense_is_refused() -> None:
    with pytest.raises(RpmsError, match="at least one"):
        bench_pipeline(episodes=0)
