"""``rpms learn`` on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from rpms import completion
from rpms.options import (
    ConcurrencyOption,
    EnvOption,
    MaxStepsOption,
    ModelOption,
    PatienceOption,
    ReplayOption,
    RulesOption,
    SplitOption,
    WithoutOption,
    WorkersOption,
    limit_option,
    refuse_empty,
)
from rpms.vocabulary.limits import MOST_TIMES


def learn(
    out: Annotated[str, typer.Option(callback=refuse_empty, help="Snapshot to write (JSONL).")],
    env: EnvOption,
    split: SplitOption = "",
    model: ModelOption = "sim",
    rounds: Annotated[int, typer.Option(min=1, max=MOST_TIMES, help="1 to 3 in the paper.")] = 1,
    limit: Annotated[int, limit_option("Tasks per round; 0: the whole split.")] = 0,
    method: Annotated[
        str, typer.Option(help="Whose memory: rpms, another by name, or MODULE:CLASS.")
    ] = "rpms",
    from_runs: Annotated[str, typer.Option(help="Learn from recorded runs instead.")] = "",
    runs: Annotated[str, typer.Option(help="Where to keep the runs; default OUT.runs.")] = "",
    condition: Annotated[
        str,
        typer.Option(
            autocompletion=completion.condition, help="Play, or take from runs; else Rules-only."
        ),
    ] = "",
    allow: Annotated[
        str, typer.Option(help="Why not Rules-only on a learning split; kept in the header.")
    ] = "",
    rules: RulesOption = "",
    without_rule: WithoutOption = None,
    workers: WorkersOption = None,
    concurrency: ConcurrencyOption = 32,
    max_steps: MaxStepsOption = 0,
    replay_arm: ReplayOption = None,
    base_url: Annotated[str, typer.Option(help="OpenAI-compatible server.")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds per model call; 0: as usual.")] = 0.0,
    patience: PatienceOption = 300.0,
) -> None:
    """Play the seen split under Rules-only and learn from it; run it again to go on."""
    from rpms.evaluating import Effort
    from rpms.learning import learn as learn_all
    from rpms.nodes.context import RunContext

    context = RunContext(
        model=model, base_url=base_url, timeout_s=timeout, patience_s=patience, max_steps=max_steps,
        rules_dir=rules, without_rules=",".join(without_rule or []),
    )  # fmt: skip
    learn_all(
        out, env=env, split=split, context=context, method=method, rounds=rounds, limit=limit,
        from_runs=from_runs, runs=runs, condition=condition, allow=allow,
        effort=Effort(workers, concurrency, replay_arms=replay_arm or ()),
    )  # fmt: skip
