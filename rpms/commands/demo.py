"""``rpms demo``: prints one episode step by step, then runs a few tasks under each condition.

The story shows what each mechanism does, the table how far the planner gets with it. Both run the
pipeline with a planner instead of a language model, so they are no experimental result.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rpms.commands.help_text import OUTPUT, RUN
from rpms.commands.options import EnvOption, JsonOption, limit_option, option, print_json
from rpms.vocabulary.context import RunContext, condition_title
from rpms.vocabulary.output import open_console

if TYPE_CHECKING:
    from rich.console import Console

    from rpms.envs import Demo
    from rpms.evals.analysis.tables import Table
    from rpms.evals.records.run_folder import Run


def demo(
    env: EnvOption,
    tasks: Annotated[
        int, limit_option("Run this many tasks for the table; 0 means the usual number.")
    ] = 0,
    conditions: Annotated[
        str, option(RUN, "Run these conditions, separated by commas; by default the plan 'demo'.")
    ] = "",
    out: Annotated[
        str,
        option(OUTPUT, "Write the run to the folder demo-ENV in this folder, replacing the last."),
    ] = ("runs"),
    show: Annotated[bool, option(OUTPUT, "Also open the page in a browser.", "--open")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one episode and a table of conditions, run by the built-in planner without an API key.

    In an environment of tools, show an agent behind the guard; its scripted model breaks rules.
    """
    from rpms.commands.terminal_tables import print_rows
    from rpms.envs import get_environment
    from rpms.evals.analysis.report import read_report
    from rpms.evals.analysis.report.page import write_report
    from rpms.evals.running.evaluate import ExecutionOptions, play_plan
    from rpms.evals.running.plan import make_plan
    from rpms.evals.running.plan_file import (
        condition_contexts,
        condition_names,
        plan_arms,
        read_plan,
    )

    world = get_environment(env)
    choice = world.demo
    if choice.planted:
        from rpms.commands.guarded_story import print_guarded

        if not print_guarded(open_console(highlight=False), world, choice):
            raise typer.Exit(1)
        return
    base, names = RunContext(max_steps=choice.steps), condition_names(conditions)
    contexts = condition_contexts(names, base)
    if not names:
        shipped = plan_arms(read_plan("demo"), base)
        contexts = {label: arm.settings() for label, arm in shipped.items()}
        contexts |= condition_contexts([choice.condition], base)
    plan = make_plan(world.name, choice.split, contexts, choice.story + (tasks or choice.tasks))
    plan = replace(plan, tasks=plan.tasks[choice.story :])
    folder = Path(out or "runs") / f"demo-{world.name}"
    console = open_console(highlight=False, quiet=as_json)
    if not as_json:
        _print_story(console, world.name, choice)
    _remove_last(folder)
    rest = f" and the next ones, {len(plan.tasks)} in all," if plan.tasks[1:] else ""
    console.print(f"This task{rest} under every condition:\n")
    with console.status("running the episodes; this takes some seconds"):
        # An environment with one live game reuses the process of the story.
        workers = 0 if world.max_live == 1 else None
        play_plan(plan, str(folder), ExecutionOptions(workers), show=False)
    report = read_report(folder)
    (page,) = [file for file in write_report(report, None) if file.suffix == ".html"]
    if as_json:
        print_json(report.as_json())
    else:
        print_rows(console, standings(report.run, world.graded))
        console.print(
            "\nThe planner is not a language model, so this table is no evidence for the method.\n"
            f"The page shows every episode step by step: {page.resolve().as_uri()}",
            soft_wrap=True,
        )
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _print_story(console: Console, env: str, choice: Demo) -> None:
    """Run the demo's episode with every mechanism, and print it while it runs."""
    from rpms.commands.story import Story
    from rpms.graph.run import StepEvent, stream_episode
    from rpms.models.sim import LABEL
    from rpms.nodes.reset_env import find_task

    context = RunContext(max_steps=choice.steps).under(choice.condition)
    task = find_task(env, choice.split, str(choice.story))
    console.print(task["goal"], style="bold", markup=False)
    console.print(f"[dim]{env}; rules, memory and a guard ({choice.condition}); model {LABEL}[/]\n")
    story = Story(console, env, context)
    for event in stream_episode(choice.story, env=env, split=choice.split, context=context):
        if "turn" in event:
            story.print_step(cast(StepEvent, event))
        else:
            story.end(event)


def standings(run: Run, graded: bool) -> Table:
    """The table of the demo: one row for each condition."""
    from rpms.evals.analysis.report.source import source_of
    from rpms.evals.analysis.step_analysis import analyses
    from rpms.evals.analysis.tables import Table, count, label, number

    rows = []
    for name in run.conditions:
        episodes = run.played(name)
        steps = sum(episode.steps for episode in episodes)
        rejected = sum(each.invalid_actions for each in analyses(run, episodes).values())
        score = [number(sum(e.score for e in episodes) / len(episodes))] if graded else []
        won = count(sum(episode.success for episode in episodes))
        rows.append([label(condition_title(name)), won, *score, count(steps), count(rejected)])
    scored = ["mean score"] if graded else []
    columns = ["condition", "won", *scored, "actions", "rejected"]
    return Table("demo", "The demo", source_of(run), columns, rows)


def _remove_last(folder: Path) -> None:
    """Remove the planner's last run; a run of any other model stays."""
    from rpms.evals.records.run_folder import MANIFEST, read_run

    if (folder / MANIFEST).is_file() and read_run(folder).manifest.model == "sim":
        rmtree(folder)
