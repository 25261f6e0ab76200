"""``rpms eval`` on the command line."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rpms.commands.help_text import EXECUTION, OUTPUT, RUN
from rpms.commands.options import (
    AGAIN,
    BudgetTokensOption,
    BudgetUsdOption,
    CacheOption,
    ConcurrencyOption,
    EnvOption,
    JsonOption,
    PlanOption,
    SplitOption,
    SpreadOption,
    WorkersOption,
    limit_option,
    option,
    print_json,
    refuse_empty,
    typed_names,
    with_settings,
)
from rpms.vocabulary.context import ABLATION, TITLES, RunContext, condition_title
from rpms.vocabulary.limits import MOST_TIMES

TITLED = ", ".join(map(condition_title, TITLES))


@with_settings()
def evaluate(
    out: Annotated[
        str,
        option(
            OUTPUT,
            "The run folder; an existing run is continued.",
            callback=refuse_empty,
            metavar="DIR",
        ),
    ],
    env: EnvOption,
    split: SplitOption = "",
    plan: PlanOption = "",
    conditions: Annotated[
        str,
        option(
            RUN,
            f"Run these: {TITLED}, or with a guard, as D+verify; by default {','.join(ABLATION)}.",
            metavar="A,B,...",
        ),
    ] = "",
    arm: Annotated[
        list[str] | None,
        option(RUN, f"Run an arm of your own.{AGAIN}", metavar="LABEL:SETTING=VALUE,..."),
    ] = None,
    compare: Annotated[
        list[str] | None,
        option(
            RUN,
            f"Test this pair in the report.{AGAIN}",
            metavar="FIRST:SECOND",
        ),
    ] = None,
    limit: Annotated[int, limit_option("Run this many tasks; 0 means the whole split.")] = 0,
    spread: SpreadOption = False,
    tasks: Annotated[
        str,
        option(RUN, "Run only the tasks with these ids.", metavar="ID,...|@FILE"),
    ] = "",
    types: Annotated[
        str, option(RUN, "Run only tasks of these goal types.", metavar="TYPE,...")
    ] = "",
    trials: Annotated[
        int,
        option(
            RUN,
            "N trials of a task, with cross-trial memory.",
            min=1,
            max=MOST_TIMES,
            show_default=False,
        ),
    ] = 1,
    repeats: Annotated[
        int,
        option(
            RUN,
            "Run everything N times, with other seeds.",
            min=1,
            max=MOST_TIMES,
            show_default=False,
        ),
    ] = 1,
    workers: WorkersOption = None,
    concurrency: ConcurrencyOption = 32,
    ray: Annotated[
        str,
        option(
            EXECUTION,
            "Run on a Ray cluster; 'local' starts one.",
            metavar="ADDRESS",
        ),
    ] = "",
    cache: CacheOption = "",
    truth: Annotated[
        bool,
        option(EXECUTION, "Compare beliefs with the simulator (the default)."),
    ] = True,
    *,
    settings: RunContext,
    budget_usd: BudgetUsdOption = 0.0,
    budget_tokens: BudgetTokensOption = 0,
    as_json: JsonOption = False,
    command_line: typer.Context,
) -> None:
    """Evaluate arms on a split, or continue and extend the run in the same folder."""
    from rpms.evals.running.arms import listed
    from rpms.evals.running.costs import Budget
    from rpms.evals.running.evaluate import ExecutionOptions
    from rpms.evals.running.evaluate import evaluate as run_all
    from rpms.evals.running.plan_file import choose_arms

    options: dict[str, Any] = {
        "env": env, "split": split, "limit": limit, "spread": spread, "ids": [*listed(tasks)],
        "types": [*listed(types)], "trials": trials, "repeats": repeats,
    }  # fmt: skip
    names = [{"tasks": "ids"}.get(name, name) for name in typed_names(command_line)]
    typed = {name: options[name] for name in options if name in names}
    selection, arms, pairs = choose_arms(
        typed, settings, conditions, arm or (), compare or (), plan, names
    )
    chosen = {**selection.model_dump(exclude={"ids"}), "env": selection.env or env}
    report = run_all(
        arms, out=out, **chosen, tasks=selection.ids, compare=pairs, truth=truth,
        cache=cache, show=not as_json, plan_name=plan,
        execution=ExecutionOptions(workers, concurrency, ray, Budget(budget_usd, budget_tokens)),
    )  # fmt: skip
    if as_json:
        print_json(report.as_json())
