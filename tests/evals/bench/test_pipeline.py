from __future__ import annotations

import pytest

from rpms.evals.bench.pipeline import bench_pipeline
from rpms.vocabulary.errors import RpmsError


@pytest.mark.engine
def test_a_step_of_the_whole_agent_costs_a_fraction_of_a_stock_engine_step() -> None:
    found = bench_pipeline(episodes=2, steps=30)
    assert found["engine_ms"] > 0
    assert found["langgraph_ms"] > 0
    if "stock_ms" in found:  # where stock TextWorld is installed
        assert found["engine_ms"] < found["stock_ms"]
        assert found["to_stock"] < 0.5
    # What is ours to answer for stays below what LangGraph takes to pass through nine stages.
    assert found["own_ms"] < 2 * found["langgraph_ms"]
    assert found["to_engine"] == pytest.approx(found["pipeline_ms"] / found["engine_ms"])


def test_nonsense_is_refused() -> None:
    with pytest.raises(RpmsError, match="at least one"):
        bench_pipeline(episodes=0)
