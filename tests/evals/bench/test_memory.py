from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from rpms.evals.bench.memory import situations, step_cost, write_synthetic
from rpms.memory_store import load_index
from rpms.rules import load_manual

# In a process of its own: peak memory is a property of the process.
SCRIPT = """
import json
from rpms.evals.bench.memory import bench_memory
print(json.dumps(bench_memory([233, 100_000], rounds=1)))
"""


def lines_run(file: Path) -> int:
    """How much Python a step runs with a memory: the same on every machine, busy or not.

    Lines, each turn of a loop on one line counted: opcodes are not told to the first trace of a
    process by Python 3.12, nor all of them by 3.13.
    """
    index = load_index(file, "alfworld", load_manual("alfworld").domain.categories)
    states = list(situations())
    for state in states:
        step_cost(index, state)  # what is kept per goal is there from now on
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for state in states:
            step_cost(index, state)
    finally:
        sys.settrace(before)
    return count


def test_a_hundred_times_the_memories_are_no_more_work_per_step(tmp_path: Path) -> None:
    """How long a step takes, with up to a million of them, is for ``rpms bench`` to say."""
    work = []
    for size in (233, 20_000):
        write_synthetic(tmp_path / "memory.jsonl", size)
        work.append(lines_run(tmp_path / "memory.jsonl"))
    assert 0 < work[1] <= 2 * work[0]


def test_a_memory_takes_two_kilobytes_at_most() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=True
    )
    few, many = json.loads(done.stdout)
    assert (few["entries"], many["entries"]) == (233, 100_000)
    assert 0 < (many["peak_mb"] - few["peak_mb"]) * 1024 / 100_000 < 2
    assert many["step_ratio"] == pytest.approx(many["step_ms"] / few["step_ms"])
