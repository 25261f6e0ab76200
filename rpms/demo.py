"""``make demo``: the 2x2 in every world that has a part in it, with the built-in planner.

It is an evaluation like any other: the same runner, the same files, the same report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from rich.console import Console

from rpms.envs import Demo, Environment, Task, environment_names, get_environment
from rpms.evals.plan import RunPlan, make_plan
from rpms.evals.presets import letters
from rpms.evals.report import Report, read_report
from rpms.evals.report.files import write_report
from rpms.evaluating import Effort, play_plan
from rpms.models.sim import LABEL
from rpms.nodes.context import RunContext
from rpms.reporting import print_tables
from rpms.vocabulary.errors import RpmsError

SHOWN = ("main", "square", "types")


def run_demo(conditions: Sequence[str], env: str, split: str, count: int, out: str) -> None:
    """Run the conditions in one world, or by default in each, and write the reports."""
    if count < 0:
        raise RpmsError("--tasks must not be negative")
    if split and not env:
        raise RpmsError(f"--split {split} needs --env, to say which world has it")
    worlds = [get_environment(name) for name in ([env] if env else environment_names())]
    contexts = letters(conditions, RunContext())
    console = Console(highlight=False)
    console.print(f"[bold]RPMS demo[/], model: {LABEL}\n")
    pages = []
    for world in worlds:
        if env or world.demo:
            plan = _plan(world, split, contexts, count)
            folder = Path(out or "runs") / f"demo-{datetime.now():%Y%m%d-%H%M%S}-{world.name}"
            play_plan(plan, str(folder), Effort())
            report = read_report(folder)
            pages.append(_show(console, report))
    console.print(
        "Planner demo: these figures show the pipeline at work. They are not results of a "
        "language model.\n"
    )
    for page in pages:
        console.print(f"report, every episode step by step: {page}", soft_wrap=True)


def _plan(world: Environment, split: str, contexts: dict[str, RunContext], count: int) -> RunPlan:
    usual = world.demo or Demo(world.splits()[0], 1)
    plan = make_plan(world.name, split or usual.split, contexts, count)
    if count:
        return plan
    return replace(plan, tasks=spread(world, plan.tasks, usual.each))


def spread(world: Environment, tasks: Sequence[Task], each: int) -> list[Task]:
    """The first few tasks of every type, in the order of the split."""
    chosen: list[Task] = []
    for kind in world.goal_types():
        mine = (task for task in tasks if world.parse_goal(task["goal"])["type"] == kind)
        chosen += islice(mine, each)
    return sorted(chosen, key=lambda task: task["index"])


def _show(console: Console, report: Report) -> Path:
    """The tables that matter at first sight; the page has them all."""
    print_tables(console, [table for table in report.tables if table.id in SHOWN])
    return next(file for file in write_report(report, None) if file.suffix == ".html")
