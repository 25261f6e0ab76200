"""``rpms eval`` on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from rpms.options import (
    ConstrainOption,
    ContextOption,
    EngineOption,
    EnvOption,
    ModelOption,
    SplitOption,
    TimeoutOption,
    choose,
)


def evaluate(
    out: Annotated[str, typer.Option(help="Run folder; an unfinished run in it goes on.")],
    env: EnvOption,
    split: SplitOption = "",
    conditions: Annotated[str, typer.Option(help="By comma; A,B,C,D by default.")] = "",
    preset: Annotated[
        str, typer.Option(help="A sweep of evals/presets.yaml instead, such as 2x2 or guard.")
    ] = "",
    model: ModelOption = "sim",
    memory: Annotated[str, typer.Option(help="Memory snapshot (JSONL).")] = "",
    limit: Annotated[int, typer.Option(help="Tasks; 0: the whole split.")] = 0,
    spread: Annotated[
        bool, typer.Option("--spread", help="With --limit: from all over the split.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Environment processes; 0: none, play in this one.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Episodes in flight, over all workers.")] = 32,
    max_steps: Annotated[int, typer.Option(help="0: the environment's own budget.")] = 0,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Play model and infrastructure errors again.")
    ] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Ask for every reply anew.")] = False,
    truth: Annotated[bool, typer.Option(help="Compare each belief with the true state.")] = True,
    ray: Annotated[str, typer.Option(help="Play on this Ray cluster ('local': a new one).")] = "",
    scf: Annotated[str, typer.Option(help="off | occupancy | preconditions")] = "occupancy",
    arbitration: Annotated[str, typer.Option(help="none | soft | hard | hard+soft")] = "hard+soft",
    guard: Annotated[str, typer.Option(help="off | reask | shortlist | constrain")] = "off",
    layout: Annotated[str, typer.Option(help="paper | cache_friendly")] = "paper",
    base_url: Annotated[str, typer.Option(help="OpenAI-compatible server.")] = "",
    timeout: TimeoutOption = 0.0,
    constrain: ConstrainOption = "off",
    context_tokens: ContextOption = 0,
    budget_usd: Annotated[float, typer.Option(help="Stop when DIR has cost this; 0: never.")] = 0.0,
    budget_tokens: Annotated[int, typer.Option(help="The same, in tokens.")] = 0,
    engine: EngineOption = "",
) -> None:
    """Play a whole split under several conditions; run it again to go on where it stopped."""
    choose(engine)
    from rpms.evals.budget import Budget
    from rpms.evaluating import Effort
    from rpms.evaluating import evaluate as run_all
    from rpms.nodes.context import RunContext

    base = RunContext(
        scf=scf,  # type: ignore[arg-type]
        arbitration=arbitration,  # type: ignore[arg-type]
        guard=guard,  # type: ignore[arg-type]
        layout=layout,  # type: ignore[arg-type]
        max_steps=max_steps,
        model=model,
        base_url=base_url,
        timeout_s=timeout,
        constrain=constrain,  # type: ignore[arg-type]
        context_tokens=context_tokens,
        memory_file=memory,
    )
    budget = Budget(budget_usd, budget_tokens)
    effort = Effort(workers, concurrency, ray, retry_failed, budget)
    run_all(
        env, split, out, base=base, conditions=conditions, preset=preset, limit=limit,
        spread=spread, truth=truth, cache=not no_cache, effort=effort,
    )  # fmt: skip
