"""``rpms learn`` on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from rpms.options import EnvOption, ModelOption, SplitOption


def learn(
    out: Annotated[str, typer.Option(help="Snapshot to write (JSONL).")],
    env: EnvOption,
    split: SplitOption = "",
    model: ModelOption = "sim",
    rounds: Annotated[int, typer.Option(help="1 to 3 in the paper.")] = 1,
    limit: Annotated[int, typer.Option(help="Tasks per round; 0: the whole split.")] = 0,
    from_runs: Annotated[str, typer.Option(help="Learn from recorded runs instead.")] = "",
    runs: Annotated[str, typer.Option(help="Where to keep the runs; default OUT.runs.")] = "",
    base_url: Annotated[str, typer.Option(help="OpenAI-compatible server.")] = "",
) -> None:
    """Play the seen split under Rules-only and turn what happened into memory."""
    from rpms.learning import learn_from_folder, learn_rounds

    if from_runs:
        learn_from_folder(from_runs, out, env)
    else:
        learn_rounds(out, env, split, model, rounds, limit or None, runs or f"{out}.runs", base_url)
