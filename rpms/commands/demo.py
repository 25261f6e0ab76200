"""``make demo``: every mechanism at work in every world that has a part in it, by the planner.

It is an evaluation like any other: the same runner, the same files, the same report. What it
shows is not a score: memories recalled, dropped, removed and warned about, refusals explained,
circles broken, each step of it in a report to open.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rpms.commands.options import (
    JsonOption,
    OnlyEnvOption,
    limit_option,
    print_json,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.output import open_console

if TYPE_CHECKING:
    from rpms.envs import Environment, Task
    from rpms.evals.plan import RunPlan
    from rpms.evals.run_folder import Run
    from rpms.evals.tables import Table

# Enough to see everything happen; a whole budget of steps only makes the page longer.
STEPS = 50
# What an episode's line counts of each mechanism.
MECHANISMS = {
    "memories recalled": ("recalled",),
    "dropped by SCF": ("dropped_scf",),
    "removed by the arbiter": ("dropped_arbitration",),
    "warned by the arbiter": ("warned",),
    "actions refused": ("invalid_actions",),
    "vetoed by the guard": ("asked_again", "replaced", "fell_back"),
}
CIRCLES = "of them circles broken"
# The principle "do something else"; a veto that cites it broke a repetition or a circle.
CIRCLE_RULE = "U-FAIL-001"


def demo(
    tasks: Annotated[int, limit_option("How many; 0: some of every type.")] = 0,
    conditions: Annotated[
        str, typer.Option(help="Which, by comma; else those of the preset 'demo'.")
    ] = "",
    env: OnlyEnvOption = "",
    out: Annotated[str, typer.Option(help="Folder for the runs.")] = "runs",
    as_json: JsonOption = False,
) -> None:
    """Watch every mechanism at work with the built-in planner; no key, no download."""
    from rpms.commands.terminal_tables import print_tables
    from rpms.envs import environment_names, get_environment
    from rpms.evals.arms import condition_names
    from rpms.evals.conditions import letters, preset_contexts
    from rpms.evals.evaluate import ExecutionOptions, play_plan
    from rpms.evals.report import read_report
    from rpms.evals.report.page import write_report
    from rpms.models.sim import LABEL

    worlds = [get_environment(name) for name in ([env] if env else environment_names())]
    base = RunContext(max_steps=STEPS)
    names = condition_names(conditions)
    contexts = letters(names, base) if names else preset_contexts("demo", base)
    console = open_console(highlight=False, quiet=as_json)
    console.print(f"[bold]RPMS demo[/], model: {LABEL}; at most {STEPS} steps a task\n")
    pages, reports = [], {}
    for world in worlds:
        if env or world.demo:
            plan = _plan(world, contexts, tasks)
            folder = Path(out or "runs") / f"demo-{datetime.now():%Y%m%d-%H%M%S}-{world.name}"
            play_plan(plan, str(folder), ExecutionOptions(), show=not as_json)
            report = read_report(folder)
            reports[world.name] = report.as_json()
            # What was at work, and the main table; the page has them all, and every step.
            main = [table for table in report.tables if table.id == "main"]
            print_tables(console, [mechanism_table(report.run), *main])
            pages += [file for file in write_report(report, None) if file.suffix == ".html"]
    console.print(
        "Planner demo: these figures show the pipeline at work. They are not results of a "
        "language model.\n"
    )
    for page in pages:
        console.print(f"report, every episode step by step: {page}", soft_wrap=True)
    if as_json:
        print_json(reports)


def mechanism_table(run: Run) -> Table:
    """A row for each mechanism, a column for each condition: sums over all episodes."""
    from rpms.evals.protocol_card import protocol_of
    from rpms.evals.report.source import source_of
    from rpms.evals.tables import Table, count, label

    episodes = [run.played(name) for name in run.conditions]
    counts = {
        title: [sum(getattr(e, field) for e in played for field in fields) for played in episodes]
        for title, fields in MECHANISMS.items()
    }
    counts[CIRCLES] = [sum(e.vetoes.get(CIRCLE_RULE, 0) for e in played) for played in episodes]
    return Table(
        "mechanisms", "How often each mechanism was at work", source_of(run),
        ["", *run.conditions],
        [[label(title), *map(count, row)] for title, row in counts.items()],
        notes=["Summed over the steps: a memory recalled at ten steps counts ten times."],
        protocol=protocol_of(run.manifest),
    )  # fmt: skip


def _plan(world: Environment, contexts: dict[str, RunContext], count: int) -> RunPlan:
    """The first tasks of the world's demo, or without a count the first few of every type."""
    from rpms.envs import Demo
    from rpms.evals.plan import make_plan

    usual = world.demo or Demo(world.splits()[0], 1)
    plan = make_plan(world.name, usual.split, contexts, count)
    if count:
        return plan
    by_type: dict[str, list[Task]] = {}
    for task in plan.tasks:
        by_type.setdefault(world.parse_goal(task["goal"])["type"], []).append(task)
    spread = [task for tasks in by_type.values() for task in tasks[: usual.each]]
    return replace(plan, tasks=sorted(spread, key=lambda task: task["index"]))
