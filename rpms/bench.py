"""``rpms bench``: ratios measured in one run, so that they mean the same on any machine."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from envs import get_environment
from evals.bench.engine import bench_engine
from evals.bench.memory import SIZES, bench_memory
from rpms.prefix_bench import print_prefix
from vocabulary.errors import RpmsError

PARTS = ("engine", "memory", "prefix")


def run_bench(only: str, games: int, largest: int, steps: int) -> None:
    """Print each part's table."""
    if only and only not in PARTS:
        raise RpmsError(f"unknown benchmark '{only}'; choose from {', '.join(PARTS)}")
    console = Console()
    if only in ("", "engine"):
        console.print(engine_table(games))
    if only in ("", "memory"):
        console.print(memory_table(largest))
    if only in ("", "prefix"):
        print_prefix(console, steps)


def engine_table(games: int) -> Table:
    """Our engine against stock TextWorld on the same generated games."""
    tasks = get_environment("alfworld").tasks("generated_seen", games)
    result = bench_engine([Path(task["source"]) for task in tasks], steps=10)
    table = Table("engine", "stock", "ours", "times faster", title=f"{games} generated games")
    for part in ("load", "reset", "step"):
        stock, ours = result[f"stock_{part}_s"], result[f"ours_{part}_s"]
        table.add_row(
            part, f"{stock * 1000:.1f} ms", f"{ours * 1000:.2f} ms", f"{stock / ours:.0f}x"
        )
    return table


def memory_table(largest: int) -> Table:
    """Per-step cost of retrieval + SCF + arbitration as the memory grows."""
    rows = bench_memory([size for size in SIZES if size <= largest])
    table = Table("entries", "load", "peak memory", "per step", "ratio to smallest")
    for row in rows:
        table.add_row(
            f"{row['entries']:,.0f}",
            f"{row['load_s']:.2f} s",
            f"{row['peak_mb']:.0f} MB",
            f"{row['step_ms']:.3f} ms",
            f"{row['step_ratio']:.2f}",
        )
    return table
