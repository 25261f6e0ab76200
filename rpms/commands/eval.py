"""``rpms eval`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rpms.commands.options import (
    ConcurrencyOption,
    EngineOption,
    EnvOption,
    JsonOption,
    SplitOption,
    WorkersOption,
    choose,
    given,
    limit_option,
    print_json,
    refuse_empty,
    with_settings,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.limits import MOST_TIMES


@with_settings()
def evaluate(
    out: Annotated[
        str, typer.Option(callback=refuse_empty, help="Run folder; a run in it goes on, or grows.")
    ],
    env: EnvOption,
    split: SplitOption = "",
    conditions: Annotated[
        str, typer.Option(help="By comma, as B or B+verify; A,S,B,C,D by default.")
    ] = "",
    preset: Annotated[
        str, typer.Option(help="A sweep by name, such as 2x2, or FILE.yaml:NAME of your own.")
    ] = "",
    arm: Annotated[
        list[str] | None, typer.Option(help="An arm of your own: LABEL:SETTING=VALUE,...")
    ] = None,
    plan: Annotated[Path | None, typer.Option(help="Arms and tasks in a YAML file.")] = None,
    protocol: Annotated[str, typer.Option(help="Steps, examples and the like, by name.")] = "",
    limit: Annotated[int, limit_option("Tasks; 0: the whole split.")] = 0,
    spread: Annotated[
        bool,
        typer.Option(
            "--spread",
            help="With --limit: a sample of the whole split, stratified over task types (each in "
            "proportion to its number of tasks, at least one), instead of its first tasks.",
        ),
    ] = False,
    tasks: Annotated[str, typer.Option(help="Only these ids, by comma, or @FILE.")] = "",
    types: Annotated[str, typer.Option(help="Only these goal types, by comma.")] = "",
    trials: Annotated[
        int, typer.Option(min=1, max=MOST_TIMES, help="Tries per task, with memory carried along.")
    ] = 1,
    repeats: Annotated[
        int, typer.Option(min=1, max=MOST_TIMES, help="Independent repeats, with other seeds.")
    ] = 1,
    workers: WorkersOption = None,
    concurrency: ConcurrencyOption = 32,
    keep_failed: Annotated[
        bool, typer.Option("--keep-failed", help="Leave episodes that ended in an error alone.")
    ] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Ask for every reply anew.")] = False,
    truth: Annotated[bool, typer.Option(help="Compare each belief with the true state.")] = True,
    ray: Annotated[str, typer.Option(help="Play on this Ray cluster ('local': a new one).")] = "",
    *,
    settings: RunContext,
    budget_usd: Annotated[
        float, typer.Option(min=0, help="Stop when DIR has cost this; 0: never.")
    ] = 0.0,
    budget_tokens: Annotated[int, typer.Option(min=0, help="The same, in tokens.")] = 0,
    engine: EngineOption = "",
    as_json: JsonOption = False,
    command_line: typer.Context,
) -> None:
    """Play a whole split under several arms; run it again to go on, or with more to add that."""
    choose(engine)
    from rpms.evals.arms import TaskSelection, choose_arms, listed
    from rpms.evals.costs import Budget
    from rpms.evals.evaluate import ExecutionOptions
    from rpms.evals.evaluate import evaluate as run_all
    from rpms.evals.protocol_card import apply_protocol

    # What a protocol decides is passed on only if it was typed, be it the default.
    typed = given(command_line)
    asked = {"split": split, "trials": trials, "repeats": repeats}
    asked = {name: value for name, value in asked.items() if name in typed}
    if protocol:
        values = {name: value for name, value in settings.plain.items() if name in typed}
        apply_protocol(protocol, settings, env, values)
    selection = TaskSelection(
        env=env, protocol=protocol, limit=limit, spread=spread, tasks=list(listed(tasks)),
        types=list(listed(types)),
    ).model_copy(update=asked)  # fmt: skip
    selection, arms = choose_arms(selection, settings, conditions, preset, arm or (), plan)
    report = run_all(
        arms, out=out, **selection.model_dump(exclude={"protocol"}), truth=truth,
        cache=not no_cache, show=not as_json,
        execution=ExecutionOptions(
            workers, concurrency, ray, keep_failed, Budget(budget_usd, budget_tokens)
        ),
    )  # fmt: skip
    if as_json:
        print_json(report.as_json())
