"""``make demo``: the 2x2 idea in both worlds, with the built-in planner instead of an LLM."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from envs import Environment, Task, get_environment
from evals import Tally, run_conditions
from models.sim import LABEL
from vocabulary.errors import RpmsError

NAMES = {"A": "A baseline", "B": "B rules", "C": "C memory", "D": "D full"}
# World, split, and how many tasks of each type; the second world is a glimpse.
BY_DEFAULT = [("alfworld", "generated_unseen", 5), ("scienceworld", "dev_mini", 2)]


def run_demo(conditions: Sequence[str], env: str, split: str, count: int) -> None:
    """Run the conditions in one world, or by default in each, and print what came of it."""
    unknown = [name for name in conditions if name not in NAMES]
    if unknown or not conditions:
        raise RpmsError(f"unknown condition '{','.join(unknown)}'; choose from A,B,C,D")
    if count < 0:
        raise RpmsError("--tasks must not be negative")
    if split and not env:
        raise RpmsError(f"--split {split} needs --env, to say which world has it")
    if env:
        get_environment(env)
    console = Console()
    console.print(f"[bold]RPMS demo[/], model: {LABEL}\n")
    for name, usual, each in BY_DEFAULT:
        if env not in ("", name):
            continue
        world = get_environment(name)
        chosen = split or usual
        listed = world.tasks(chosen, count or None)
        tasks = listed[:count] if count else spread(world, listed, each)
        show_comparison(console, world, chosen, compare(console, conditions, tasks))
    console.print(
        "Planner demo: these figures show the pipeline at work. They are not results of a "
        "language model."
    )


def spread(world: Environment, tasks: Sequence[Task], each: int) -> list[Task]:
    """The first few tasks of every type, in the order of the split."""
    chosen: list[Task] = []
    for kind in world.goal_types():
        mine = (task for task in tasks if world.parse_goal(task["goal"])["type"] == kind)
        chosen += islice(mine, each)
    return sorted(chosen, key=lambda task: task["index"])


def compare(console: Console, conditions: Sequence[str], tasks: Sequence[Task]) -> dict[str, Tally]:
    """Play every task under every condition behind a progress bar."""
    tallies: dict[str, Tally] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("playing", total=len(tasks) * len(conditions))
        for _, _, _, tallies in run_conditions(conditions, tasks):
            won = ", ".join(f"{name} {t.wins}/{t.episodes}" for name, t in tallies.items())
            progress.update(bar, advance=1, description=f"won: {won}")
    return tallies


def show_comparison(
    console: Console, world: Environment, split: str, tallies: dict[str, Tally]
) -> None:
    """The table of a world, and the interaction of rules and memory below it."""
    console.print(result_table(world, split, tallies))
    if set(NAMES) <= set(tallies):
        console.print(interaction_line(tallies, graded=world.graded) + "\n")


def result_table(world: Environment, split: str, tallies: dict[str, Tally]) -> Table:
    """Wins and mean steps per task type and condition; the score where a world grades."""
    table = Table(title=f"{world.name} {split}: won, mean steps\nmodel: {LABEL}")
    table.add_column("task type", no_wrap=True)
    for name in tallies:
        table.add_column(NAMES[name], justify="right", no_wrap=True)
    kinds = sorted({kind for tally in tallies.values() for kind in tally.by_type})
    for kind in kinds:
        rows = [tally.by_type.get(kind, Tally()) for tally in tallies.values()]
        short = kind.removeprefix("pick_").removesuffix("_in_recep")
        table.add_row(short, *(f"{t.wins}/{t.episodes} {t.mean_steps:4.1f}" for t in rows))
        if world.graded:
            table.add_row("  score", *(f"{t.mean_score:.1f}" for t in rows))
    table.add_section()
    rows = list(tallies.values())
    table.add_row("all", *(f"{t.wins}/{t.episodes} {t.mean_steps:4.1f}" for t in rows))
    if world.graded:
        table.add_row("mean score", *(f"{t.mean_score:.1f}" for t in rows))
        table.add_row("  raw (-100 kept)", *(f"{t.mean_raw_score:.1f}" for t in rows))
    else:
        table.add_row("success rate", *(f"{t.rate:.1f}%" for t in rows))
    table.add_row("refused actions", *(f"{t.invalid_rate:.1f}%" for t in rows))
    if any(t.errors for t in rows):
        table.add_row("errors (not counted)", *(str(t.errors) for t in rows))
    return table


def interaction_line(tallies: dict[str, Tally], graded: bool = False) -> str:
    """(D - A) - (B - A) - (C - A): what rules and memory do together beyond their sum."""
    figures = [tallies[name].mean_score if graded else tallies[name].rate for name in "ABCD"]
    a, b, c, d = figures
    unit = "points" if graded else "pp"
    return (
        f"rules {b - a:+.1f} {unit}, memory {c - a:+.1f} {unit}, both {d - a:+.1f} {unit}; "
        f"interaction {d - b - c + a:+.1f} {unit}"
    )
