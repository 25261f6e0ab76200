"""``rpms eval`` on the command line."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rpms.commands.generation import YesOption
from rpms.commands.help_text import EXECUTION, OUTPUT, RUN
from rpms.commands.options import (
    AGAIN,
    BudgetTokensOption,
    BudgetUsdOption,
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
            "The run folder; a run that is there is continued or extended.",
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
            f"Run these conditions, separated by commas ({TITLED}; D+verify is D with a guard); by "
            f"default {','.join(ABLATION)}.",
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
            f"Test this pair of arms in the report, the one to compare with first.{AGAIN}",
            metavar="FIRST:SECOND",
        ),
    ] = None,
    limit: Annotated[int, limit_option("Run this many tasks; 0 means the whole split.")] = 0,
    spread: SpreadOption = False,
    tasks: Annotated[
        str,
        option(RUN, "Run only the tasks with these ids, separated by commas or listed in @FILE."),
    ] = "",
    types: Annotated[
        str, option(RUN, "Run only tasks of these goal types, separated by commas.")
    ] = "",
    trials: Annotated[
        int,
        option(
            RUN,
            "Try each task up to this often until it is solved, with cross-trial memory.",
            min=1,
            max=MOST_TIMES,
        ),
    ] = 1,
    repeats: Annotated[
        int,
        option(
            RUN,
            "Run everything this often, independently and with other seeds.",
            min=1,
            max=MOST_TIMES,
        ),
    ] = 1,
    workers: WorkersOption = None,
    concurrency: ConcurrencyOption = 32,
    ray: Annotated[
        str,
        option(
            EXECUTION,
            "Run the episodes on the Ray cluster at this address; 'local' starts one.",
            metavar="ADDRESS",
        ),
    ] = "",
    keep_failed: Annotated[
        bool,
        option(EXECUTION, "Do not run episodes again that ended in an error.", "--keep-failed"),
    ] = False,
    no_cache: Annotated[
        bool, option(EXECUTION, "Do not use cached replies of earlier runs.", "--no-cache")
    ] = False,
    yes: YesOption = False,
    truth: Annotated[
        bool,
        option(EXECUTION, "Compare each belief with the simulator's true state (on by default)."),
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
        cache=not no_cache, show=not as_json,
        execution=ExecutionOptions(
            workers, concurrency, ray, keep_failed, Budget(budget_usd, budget_tokens)
        ),
    )  # fmt: skip
    if as_json:
        print_json(report.as_json())
