"""``make demo``: the 2x2 idea in a minute, with the built-in planner instead of an LLM."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from evals import Tally, run_conditions
from models.sim import LABEL
from vocabulary.errors import RpmsError

NAMES = {"A": "A baseline", "B": "B rules", "C": "C memory", "D": "D full"}


def run_demo(conditions: Sequence[str], split: str, count: int) -> dict[str, Tally]:
    """Run the conditions on generated homes, show progress, print success and steps by type."""
    unknown = [name for name in conditions if name not in NAMES]
    if unknown or not conditions:
        raise RpmsError(f"unknown condition '{','.join(unknown)}'; choose from A,B,C,D")
    if count < 1:
        raise RpmsError("--tasks must be at least 1")
    console = Console()
    console.print(f"[bold]RPMS demo[/]: {count} tasks of {split}, model: {LABEL}\n")
    tallies: dict[str, Tally] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        bar = progress.add_task("playing", total=count * len(conditions))
        for _, _, _, tallies in run_conditions(
            conditions, env="alfworld", split=split, count=count
        ):
            won = ", ".join(f"{name} {t.wins}/{t.episodes}" for name, t in tallies.items())
            progress.update(bar, advance=1, description=f"won: {won}")
    console.print(result_table(conditions, tallies, split))
    if set("ABCD") <= set(tallies):
        console.print(interaction_line(tallies))
    console.print(
        "Planner demo: these figures show the pipeline at work. They are not results of a "
        "language model."
    )
    return tallies


def result_table(conditions: Sequence[str], tallies: dict[str, Tally], split: str) -> Table:
    """Wins and mean steps per task type and condition."""
    table = Table(title=f"ALFWorld {split}: won, mean steps\nmodel: {LABEL}")
    table.add_column("task type", no_wrap=True)
    for name in conditions:
        table.add_column(NAMES[name], justify="right", no_wrap=True)
    kinds = sorted({kind for tally in tallies.values() for kind in tally.by_type})
    for kind in kinds:
        rows = [tallies[name].by_type.get(kind, Tally()) for name in conditions]
        short = kind.removeprefix("pick_").removesuffix("_in_recep")
        table.add_row(short, *(f"{t.wins}/{t.episodes} {t.mean_steps:4.1f}" for t in rows))
    table.add_section()
    rows = [tallies[name] for name in conditions]
    table.add_row("all", *(f"{t.wins}/{t.episodes} {t.mean_steps:4.1f}" for t in rows))
    table.add_row("success rate", *(f"{t.rate:.1f}%" for t in rows))
    table.add_row("refused actions", *(f"{t.invalid_rate:.1f}%" for t in rows))
    return table


def interaction_line(tallies: dict[str, Tally]) -> str:
    """(D - A) - (B - A) - (C - A): what rules and memory do together beyond their sum."""
    a, b, c, d = (tallies[name].rate for name in "ABCD")
    return (
        f"rules {b - a:+.1f} pp, memory {c - a:+.1f} pp, both {d - a:+.1f} pp; "
        f"interaction {d - b - c + a:+.1f} pp"
    )
