from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

# In a process of its own: peak memory is a property of the process.
SCRIPT = (
    "import json; from evals.bench.memory import bench_memory; print(json.dumps(bench_memory()))"
)


def test_a_million_memories_cost_no_more_per_step_than_a_few_hundred() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, check=True
    )
    rows = json.loads(done.stdout)
    print(done.stdout)
    assert [row["entries"] for row in rows] == [233, 10_000, 100_000, 1_000_000]
    assert rows[-1]["step_ratio"] <= 2
    assert rows[-1]["step_ms"] < 1
    assert rows[-1]["load_s"] < 30
    assert rows[-1]["peak_mb"] < 2048
