"""``rpms learn`` on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from rpms.commands.options import (
    ConcurrencyOption,
    EnvOption,
    SplitOption,
    WorkersOption,
    limit_option,
    refuse_empty,
    with_settings,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.limits import MOST_TIMES


@with_settings()
def learn(
    out: Annotated[str, typer.Option(callback=refuse_empty, help="Snapshot to write (JSONL).")],
    env: EnvOption,
    split: SplitOption = "",
    rounds: Annotated[int, typer.Option(min=1, max=MOST_TIMES, help="1 to 3 in the paper.")] = 1,
    limit: Annotated[int, limit_option("Tasks per round; 0: the whole split.")] = 0,
    method: Annotated[
        str, typer.Option(help="Whose memory: rpms, another by name, or MODULE:CLASS.")
    ] = "rpms",
    from_runs: Annotated[str, typer.Option(help="Learn from recorded runs instead.")] = "",
    runs: Annotated[str, typer.Option(help="Where to keep the runs; default OUT.runs.")] = "",
    condition: Annotated[str, typer.Option(help="Play, or take from runs; else Rules-only.")] = "",
    without_manual: Annotated[
        bool, typer.Option("--without-manual", help="Learn from what happened alone, by no rule.")
    ] = False,
    allow: Annotated[
        str, typer.Option(help="Why not Rules-only on a learning split; kept in the header.")
    ] = "",
    workers: WorkersOption = None,
    concurrency: ConcurrencyOption = 32,
    *,
    settings: RunContext,
) -> None:
    """Play the seen split under Rules-only and learn from it; run it again to go on."""
    from rpms.evals.evaluate import ExecutionOptions
    from rpms.evals.learn import learn as learn_all

    learn_all(
        out, env=env, split=split, context=settings, method=method, rounds=rounds, limit=limit,
        from_runs=from_runs, runs=runs, condition=condition, allow=allow,
        without_manual=without_manual, execution=ExecutionOptions(workers, concurrency),
    )  # fmt: skip
