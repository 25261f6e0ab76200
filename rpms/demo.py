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
    console.print(
        "Planner demo: these figures show the pipeline at work. They are not results of a "
        "language model."
    )
    return tallies


def result_table(conditions: Sequence[str], tallies: dict[str, Tally], split: str) -> Table:
    """Success rate and mean steps per task type and condition."""
    table = Table(title=f"ALFWorld {split}, model: {LABEL}")
    table.add_column("task type")
    for name in conditions:
        table.add_column(f"{NAMES[name]}\nsuccess", justify="right")
        table.add_column("\nsteps", justify="right")
    kinds = sorted({kind for tally in tallies.values() for kind in tally.by_type})
    for kind in kinds:
        table.add_row(
            kind, *_cells([tallies[name].by_type.get(kind, Tally()) for name in conditions])
        )
    table.add_section()
    table.add_row("all", *_cells([tallies[name] for name in conditions]))
    table.add_row(
        "refused actions",
        *(cell for name in conditions for cell in ("", f"{tallies[name].invalid_rate:.1f}%")),
    )
    return table


def _cells(tallies: Sequence[Tally]) -> list[str]:
    return [
        cell
        for tally in tallies
        for cell in (f"{tally.wins}/{tally.episodes} {tally.rate:.0f}%", f"{tally.mean_steps:.1f}")
    ]
