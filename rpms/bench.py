"""``rpms bench``: ratios measured in one run, so that they mean the same on any machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from rpms.console import Console
from rpms.envs import get_environment
from rpms.envs.alfworld.stock import missing_stock
from rpms.evals.bench.engine import PARTS as BENCHED
from rpms.evals.bench.engine import bench_engine
from rpms.evals.bench.memory import SIZES, bench_memory
from rpms.evals.bench.pipeline import bench_pipeline, bench_stages
from rpms.evals.bench.prefix import bench_prefix
from rpms.evals.bench.startup import bench_startup
from rpms.evals.bench.throughput import bench_throughput
from rpms.models.local import missing
from rpms.options import print_json
from rpms.prefix_bench import print_prefix
from rpms.vocabulary.errors import RpmsError

PARTS = ("engine", "memory", "pipeline", "throughput", "prefix", "startup")


def run_bench(
    only: str, games: int, largest: int, latency: float, steps: int, as_json: bool = False
) -> None:
    """Print each part's table, or what was measured for it."""
    if only and only not in PARTS:
        raise RpmsError(f"unknown benchmark '{only}'; choose from {', '.join(PARTS)}")
    measures: dict[str, Callable[[], Any]] = {
        "engine": lambda: measure_engine(games),
        "memory": lambda: bench_memory([size for size in SIZES if size <= largest]),
        "pipeline": lambda: {**bench_pipeline(games), "stages": bench_stages(games)},
        "throughput": lambda: {**bench_throughput(latency=latency), "latency_s": latency},
        "prefix": lambda: None if missing() else bench_prefix(steps=steps).plain(),
        "startup": bench_startup,
    }
    chosen = [part for part in PARTS if only in ("", part)]
    if as_json:
        print_json({part: measures[part]() for part in chosen})
        return
    console = Console()
    for part in chosen:
        if part == "prefix":  # it takes minutes, and shows how far it is
            print_prefix(console, steps)
        else:
            console.print(TABLES[part](measures[part]()))


def measure_engine(games: int) -> dict[str, float] | None:
    """Both engines on the same generated games; None where one of them is not there."""
    if missing_stock():
        return None
    tasks = get_environment("alfworld").tasks("generated_seen", games)
    return bench_engine([Path(task["source"]) for task in tasks], steps=10)


def engine_table(found: dict[str, float] | None) -> Table | str:
    """Our engine against stock TextWorld on the same generated games."""
    if found is None:
        return (
            f"engine: stock TextWorld is not installed ({', '.join(missing_stock())} missing), so "
            "there is nothing to compare with; pip install 'rpms[textworld]'"
        )
    table = Table("engine", "stock", "ours", "times faster", title="generated games")
    for part in BENCHED:
        stock, ours = found[f"stock_{part}_s"], found[f"ours_{part}_s"]
        table.add_row(
            part, f"{stock * 1000:.1f} ms", f"{ours * 1000:.2f} ms", f"{stock / ours:.0f}x"
        )
    return table


def memory_table(rows: list[dict[str, float]]) -> Table:
    """Per-step cost of retrieval + SCF + arbitration as the memory grows."""
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


def pipeline_table(found: dict[str, Any]) -> Group:
    """What a step costs besides the model, next to what the engine takes for it."""
    found["stages_ms"] = found["own_ms"] - found["interface_ms"]
    table = Table(
        "one step, all stages on", "processor time", "of our engine's step", "of LangGraph's share"
    )
    for name, key in (
        ("our engine", "engine_ms"),
        ("stock TextWorld", "stock_ms"),
        ("agent without model and engine", "pipeline_ms"),
        ("  of which LangGraph between stages", "langgraph_ms"),
        ("  of which LangChain's way to a chat model", "interface_ms"),
        ("  of which our stages", "stages_ms"),
    ):
        if key in found:
            to_engine, to_moving = (
                found[key] / found["engine_ms"],
                found[key] / found["langgraph_ms"],
            )
            table.add_row(name, f"{found[key]:.2f} ms", f"{to_engine:.1f}x", f"{to_moving:.2f}x")
        else:
            table.add_row(name, "not installed", "", "")
    return Group(table, stages_table(found["stages"]))


def stages_table(found: dict[str, float]) -> Table:
    """What each stage takes within a running agent, which is more than it would take alone."""
    all_of_them = sum(found.values())
    table = Table("each stage where it runs, with what it calls", "processor time", "of all")
    for name, spent in found.items():
        table.add_row(name, f"{spent:.2f} ms", f"{spent / all_of_them:.0%}")
    return table


def throughput_table(found: dict[str, float]) -> Table:
    """60 episodes of 20 steps against a server that answers after a fixed time."""
    table = Table(
        "{episodes:.0f} episodes of {steps:.0f} steps, {latency_s:g} s per reply".format(**found),
        "time", "of the ideal",
    )  # fmt: skip
    ideal = found["ideal_s"]
    table.add_row("ideal: one reply per step", f"{ideal:.1f} s", "1.00x")
    table.add_row("rpms eval, from the first request", f"{found['run_s']:.1f} s",
                  f"{found['ratio']:.2f}x")  # fmt: skip
    table.add_row("  start-up before that", f"{found['startup_s']:.1f} s", "")
    table.add_row("plain loop (one step measured, multiplied)", f"{found['loop_s']:.0f} s",
                  f"{found['loop_s'] / ideal:.1f}x")  # fmt: skip
    table.add_row("requests in flight at most", f"{found['most_in_flight']:.0f}", "")
    return table


def startup_table(found: dict[str, float]) -> Table:
    """What every call of the command line pays before it does anything."""
    bare = found["python -c pass"]
    table = Table("start-up", "processor time", "of a bare Python")
    for command, seconds in found.items():
        table.add_row(command, f"{seconds:.2f} s", f"{seconds / bare:.1f}x")
    return table


TABLES: dict[str, Callable[[Any], RenderableType]] = {
    "engine": engine_table, "memory": memory_table, "pipeline": pipeline_table,
    "throughput": throughput_table, "startup": startup_table,
}  # fmt: skip
