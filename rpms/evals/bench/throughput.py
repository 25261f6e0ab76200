"""Do many episodes wait for their model side by side?

A server answers every request after the same time. Ideally a run takes that time once per step,
however many episodes there are; a plain loop takes it once per step of every episode. Both are
measured against the same server in one run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rpms.evals.plan import RunPlan, make_plan
from rpms.evals.presets import letters
from rpms.evals.runner import Run, capacity_of, local_pool
from rpms.graph import build_graph, run_episode
from rpms.models import open_model
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError

SERVER = Path(__file__).with_name("slow_server.py")
REPLY = "Thought: I look around.\nAction: look"


class SlowModel(NamedTuple):
    """A running server."""

    port: int

    @property
    def url(self) -> str:
        """What ``--base-url`` takes."""
        return f"http://127.0.0.1:{self.port}/v1"

    def ask(self, path: str) -> dict[str, Any]:
        """``/stats`` or ``/forget``."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def slow_model(latency: float) -> Iterator[SlowModel]:
    """Start the server as a process of its own; it ends with the block."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), str(latency), REPLY], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield SlowModel(int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()


def bench_throughput(
    episodes: int = 60,
    steps: int = 20,
    latency: float = 1.0,
    concurrency: int = 60,
    workers: int = 2,
    loop_steps: int = 5,
) -> dict[str, float]:
    """Run the episodes side by side, then a few steps of one of them in a plain loop.

    Returns:
        ``ideal_s``; ``run_s`` from the first request to the last episode on disk and
        ``startup_s`` before it; ``ratio`` of run to ideal; ``most_in_flight`` requests;
        ``loop_step_s`` of the plain loop, ``loop_s`` what it would take for everything, and
        ``speedup``.
    """
    if min(episodes, steps, concurrency, workers, loop_steps) < 1 or latency <= 0:
        raise RpmsError("bench: every count must be at least 1, and the latency above 0")
    with slow_model(latency) as server, TemporaryDirectory(prefix="rpms-bench-") as folder:
        context = RunContext(model="openai:slow", base_url=server.url, max_steps=steps)
        plan = make_plan("alfworld", "generated_unseen", letters(["D"], context), episodes)
        began = time.time()
        _play(plan, Path(folder), workers, concurrency)
        ended, stats = time.time(), server.ask("/stats")
        loop_step = _loop(context.with_(max_steps=loop_steps), plan) / loop_steps
    if stats["requests"] != episodes * steps:
        raise RpmsError(f"bench: {stats['requests']} requests instead of {episodes * steps}")
    ideal = steps * latency * -(-episodes // concurrency)
    run = ended - stats["first"]
    return {
        "episodes": episodes,
        "steps": steps,
        "ideal_s": ideal,
        "startup_s": stats["first"] - began,
        "run_s": run,
        "ratio": run / ideal,
        "most_in_flight": stats["most"],
        "loop_step_s": loop_step,
        "loop_s": loop_step * steps * episodes,
        "speedup": loop_step * steps * episodes / run,
    }


def _play(plan: RunPlan, folder: Path, workers: int, concurrency: int) -> None:
    run = Run(plan, folder)
    try:
        capacity = capacity_of(plan.env, workers, concurrency)
        run.play(local_pool(plan, workers), capacity, lambda progress: None)
    finally:
        run.close()


def _loop(context: RunContext, plan: RunPlan) -> float:
    """Seconds of one episode in a plain loop, once client and game are loaded."""
    chat = open_model(context.model, base_url=context.base_url, timeout_s=context.timeout_s)
    graph = build_graph(model=chat)
    index, split = plan.tasks[0]["index"], plan.split
    run_episode(index, split=split, context=context.with_(max_steps=1), graph=graph)
    began = time.perf_counter()
    run_episode(index, split=split, context=context, graph=graph)
    return time.perf_counter() - began
