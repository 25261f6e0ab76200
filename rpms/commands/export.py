"""``rpms export``: a run, or expert play, as training data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rpms.commands.help_text import OUTPUT, RUN
from rpms.commands.options import (
    AGAIN,
    EnvOption,
    SplitOption,
    WorkersOption,
    limit_option,
    option,
    refuse_empty,
    with_settings,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.output import print_wrapped, quantity


@with_settings("run", "knowledge", "memory", "guard", "prompt")
def export(
    env: EnvOption,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The folder of an evaluation.", show_default=False),
    ] = None,
    *,
    out: Annotated[
        str,
        option(
            OUTPUT,
            "The file to write; what is known of each line goes to FILE.meta.jsonl.",
            callback=refuse_empty,
            metavar="FILE.jsonl",
        ),
    ],
    conditions: Annotated[
        str, option(RUN, "Export these conditions, separated by commas; by default all.")
    ] = "",
    per: Annotated[
        str,
        option(
            OUTPUT,
            "Write a line for each decision or for each episode.",
            metavar="decision|episode",
        ),
    ] = "decision",
    most: Annotated[
        int,
        option(
            OUTPUT,
            "Write at most this many decisions of an episode, evenly spaced; 0 means all.",
            min=0,
        ),
    ] = 0,
    expert: Annotated[
        bool,
        option(RUN, "Let the rules' procedure act, or correct DIR.", "--expert"),
    ] = False,
    split: SplitOption = "",
    limit: Annotated[
        int, limit_option("With --expert: run this many tasks; 0 means the whole split.")
    ] = 0,
    spread: Annotated[
        bool,
        option(
            RUN,
            "With --expert and --limit: take a sample of the whole split, stratified over task "
            "types, instead of its first tasks.",
            "--spread",
        ),
    ] = False,
    won: Annotated[
        int,
        limit_option(
            "With --expert: stop after this many successful episodes, balanced over task types."
        ),
    ] = 0,
    mistakes: Annotated[
        float,
        option(
            RUN,
            "With --expert: let it err with this probability, at most 0.5, and recover.",
            min=0,
            max=0.5,
        ),
    ] = 0.0,
    arm: Annotated[
        list[str] | None,
        option(
            RUN,
            f"With --expert: also run an arm of your own.{AGAIN}",
            metavar="LABEL:SETTING=VALUE,...",
        ),
    ] = None,
    workers: WorkersOption = None,
    settings: RunContext,
) -> None:
    """Write a run's won episodes as chat messages to tune a model on; nothing is sent anywhere.

    With --expert no run is needed: the guard's policy acts on tasks of a learning split under the
    settings given here, and its decisions become training data. With both, the expert answers each
    prompt of the run.
    """
    from rpms.evals.records.run_folder import read_run
    from rpms.evals.running.export_chat import PER, export_chat, export_expert
    from rpms.evals.running.plan_file import condition_names
    from rpms.vocabulary.errors import RpmsError

    if not expert and folder is None:
        raise RpmsError("give DIR, a run of 'rpms eval', or --expert, or both")
    if per not in PER:
        raise RpmsError(f"unknown --per '{per}'; choose from {', '.join(PER)}")
    target, chosen = Path(out), condition_names(conditions)
    if folder is None:
        done = export_expert(
            env, target, split=split, limit=limit, spread=spread, won=won,
            conditions=chosen, arms=arm or (), settings=settings, mistakes=mistakes, per=per,
            most=most, workers=workers, show=True,
        )  # fmt: skip
    else:
        done = export_chat(read_run(folder), target, chosen, per, most, corrected=expert)
    lost = f"; left out, as lost: {done.lost}" if done.lost else ""
    print_wrapped(
        f"written: {out} ({quantity(done.lines, 'line')}, {quantity(done.targets, 'decision')} to "
        f"learn, {quantity(done.episodes - done.lost, 'episode')}{lost})"
    )
    if won and done.short:
        missing = ", ".join(f"{kind} {count}" for kind, count in done.short.items())
        print_wrapped(f"rpms: not won, and so missing of their share: {missing}", file=sys.stderr)
