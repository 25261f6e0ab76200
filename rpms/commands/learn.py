"""``rpms learn`` on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from rpms.commands.help_text import OUTPUT, RUN
from rpms.commands.options import (
    BudgetTokensOption,
    BudgetUsdOption,
    CacheOption,
    ConcurrencyOption,
    EnvOption,
    PlanOption,
    SplitOption,
    SpreadOption,
    WorkersOption,
    limit_option,
    option,
    refuse_empty,
    typed_names,
    with_settings,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.limits import MOST_TIMES


@with_settings()
def learn(
    out: Annotated[
        str,
        option(
            OUTPUT, "The memory snapshot to write.", callback=refuse_empty, metavar="FILE.jsonl"
        ),
    ],
    env: EnvOption,
    split: SplitOption = "",
    plan: PlanOption = "",
    rounds: Annotated[int, option(RUN, "Learn in N rounds.", min=1, max=MOST_TIMES)] = 1,
    limit: Annotated[int, limit_option("Run this many tasks; 0 means the whole split.")] = 0,
    spread: SpreadOption = False,
    method: Annotated[
        str,
        option(RUN, "The memory method.", metavar="NAME|MODULE:CLASS"),
    ] = "rpms",
    from_runs: Annotated[
        str, option(RUN, "Learn from the runs in this folder instead.", metavar="DIR")
    ] = "",
    condition: Annotated[str, option(RUN, "The condition to learn from; by default B.")] = "",
    without_manual: Annotated[
        bool,
        option(RUN, "Extract memories without the rule manual.", "--without-manual"),
    ] = False,
    allow: Annotated[
        str,
        option(
            RUN,
            "Why to learn from another condition or a test split; the memory's header keeps it.",
            metavar="REASON",
        ),
    ] = "",
    workers: WorkersOption = None,
    concurrency: ConcurrencyOption = 32,
    cache: CacheOption = "",
    *,
    settings: RunContext,
    budget_usd: BudgetUsdOption = 0.0,
    budget_tokens: BudgetTokensOption = 0,
    command_line: typer.Context,
) -> None:
    """Learn a memory from episodes, by default under condition B rules, and write a snapshot."""
    from rpms.evals.running.costs import Budget
    from rpms.evals.running.evaluate import ExecutionOptions
    from rpms.evals.running.learn import learn as learn_all
    from rpms.evals.running.plan_file import plan_context, plan_tasks

    names = typed_names(command_line)
    chosen, context = plan_context(plan, settings, names)
    world = plan_tasks(plan, chosen, {"env": env} if "env" in names else {}).env
    learn_all(
        out, env=world or env, split=split, context=context, method=method, rounds=rounds,
        limit=limit, spread=spread, from_runs=from_runs, condition=condition,
        allow=allow, without_manual=without_manual, execution=ExecutionOptions(
            workers, concurrency, budget=Budget(budget_usd, budget_tokens)
        ), cache=cache,
    )  # fmt: skip
