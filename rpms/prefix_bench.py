"""``rpms bench --only prefix``: tokens a real server evaluates per step, in both layouts."""

from __future__ import annotations

from rich.table import Table

from rpms.console import Console
from rpms.evals.bench.prefix import PrefixResult, bench_prefix
from rpms.models.local import missing


def print_prefix(console: Console, steps: int) -> None:
    """The table, or one line that says why there is none."""
    if absent := missing():
        console.print(
            f"prefix: left out, {' and '.join(absent)} not installed; run 'make local'",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip
        return
    with console.status("loading the local model") as status:
        result = bench_prefix(
            steps=steps, watch=lambda layout, step: status.update(f"{layout}: step {step}")
        )
    console.print(prefix_table(result))
    console.print(
        f"after the first step: {result.evaluated('paper'):.0f} tokens evaluated per step in "
        f"layout paper, {result.evaluated('cache_friendly'):.0f} in cache_friendly: "
        f"{result.ratio:.1f} times fewer",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def prefix_table(result: PrefixResult) -> Table:
    """One row per step, and the share of repeated tokens below."""
    table = Table(
        "step", "prompt", "paper", "seconds", "cache_friendly", "seconds",
        title="Tokens evaluated by SmolLM2-135M, one episode, condition D",
    )  # fmt: skip
    rows = zip(result.steps["paper"], result.steps["cache_friendly"], strict=True)
    for number, pair in enumerate(rows, start=1):
        cells = [t for read in pair for t in (str(read.evaluated), f"{read.seconds:.1f}")]
        table.add_row(str(number), str(pair[0].prompt_tokens), *cells)
    shares = [f"{result.repeated(layout):.0%} kept" for layout in ("paper", "cache_friendly")]
    table.add_row("2+", "", shares[0], "", shares[1], "")
    return table
