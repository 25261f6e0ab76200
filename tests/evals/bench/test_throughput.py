from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.bench.throughput import bench_throughput
from rpms.evals.plan import make_plan
from rpms.evals.presets import letters
from rpms.evals.runner import Run, local_pool
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.openai_server import Answer, OpenAIServer


@pytest.mark.engine
def test_many_episodes_wait_for_their_model_side_by_side(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """No reply comes before all twelve have asked, so that one by one they would wait forever."""
    everyone = threading.Barrier(12)

    def reply(request: dict[str, Any]) -> Answer:
        everyone.wait()
        return Answer()

    openai_server.plays_by(reply)
    context = RunContext(model="openai:m", base_url=openai_server.url, max_steps=2, timeout_s=500)
    plan = make_plan("alfworld", "generated_unseen", letters(["D"], context), 12)
    run = Run(plan, tmp_path)
    run.play(local_pool(plan, 2), 6, lambda progress: None)
    run.close()
    assert len(openai_server.requests) == 24
    assert run.progress.done == 12


@pytest.mark.engine
def test_what_the_benchmark_says_about_itself() -> None:
    """How fast it is depends on the machine and is for ``rpms bench`` to say."""
    found = bench_throughput(
        episodes=3, steps=2, latency=0.05, concurrency=3, workers=1, loop_steps=1
    )
    assert found["ideal_s"] == 0.1
    assert 1 <= found["most_in_flight"] <= 3
    assert found["ratio"] == pytest.approx(found["run_s"] / 0.1)
    assert found["loop_s"] == pytest.approx(found["loop_step_s"] * 6) and found["loop_s"] >= 0.3
    assert found["speedup"] == pytest.approx(found["loop_s"] / found["run_s"])
    assert found["ratio"] >= 1, "faster than the server answers"


def test_nonsense_is_refused() -> None:
    with pytest.raises(RpmsError, match="at least 1"):
        bench_throughput(episodes=0)
