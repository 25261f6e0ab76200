"""``rpms export`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rpms import completion
from rpms.options import (
    EnvOption,
    SplitOption,
    conditions_option,
    limit_option,
    refuse_empty,
    with_settings,
)
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.limits import MOST_WORKERS


@with_settings("knowledge", "memory", "protocol")
def export(
    env: EnvOption,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            autocompletion=completion.runs,
            help="A run of 'rpms eval'.",
            show_default=False,
        ),
    ] = None,
    *,
    format: Annotated[
        str,
        typer.Option(
            autocompletion=completion.one_of("atif", "chat"),
            help="atif: agent trajectories; chat: messages to tune a model on.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            callback=refuse_empty,
            help="FILE.jsonl, a line per episode; atif: or a folder, a file per episode.",
        ),
    ],
    conditions: Annotated[str, conditions_option("Which, by comma; else all.")] = "",
    prompts: Annotated[bool, typer.Option(help="Also every prompt as it was sent.")] = False,
    per: Annotated[str, typer.Option(help="chat: a line per decision | episode.")] = "decision",
    most: Annotated[
        int, typer.Option(min=0, help="chat: of an episode so many decisions, evenly; 0: all.")
    ] = 0,
    expert: Annotated[
        bool, typer.Option("--expert", help="chat: no run; the rules' own procedure plays.")
    ] = False,
    split: SplitOption = "",
    limit: Annotated[int, limit_option("--expert: how many tasks; 0: all.")] = 0,
    spread: Annotated[
        bool, typer.Option(help="--expert: tasks from the whole split, not its first ones.")
    ] = False,
    mistakes: Annotated[
        float, typer.Option(min=0, max=0.5, help="--expert: how often it errs, and then recovers.")
    ] = 0.0,
    arm: Annotated[
        list[str] | None,
        typer.Option(help="--expert: LABEL:SETTING=VALUE,... besides the conditions; again."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, max=MOST_WORKERS, help="--expert: processes; 0: play in this one."),
    ] = None,
    settings: RunContext,
) -> None:
    """Write a run's episodes in a format that other tools read; nothing is sent anywhere.

    With --expert no run is needed: the guard's policy plays tasks of a learning split, and its
    decisions become training data. Settings of a run, from --scf on, are those it plays under.
    """
    from rpms.evals.arms import condition_names
    from rpms.exporting import Expertise, export_expert, export_folder
    from rpms.vocabulary.errors import RpmsError

    if expert == (folder is not None):
        raise RpmsError("give either DIR, a run of 'rpms eval', or --expert")
    chosen = condition_names(conditions)
    if folder is not None:
        print(export_folder(folder, format, Path(out), chosen, prompts, per, most))
        return
    if format != "chat":
        raise RpmsError(f"--expert writes training data: give --format chat, not {format}")
    play = Expertise(env, split, limit, spread, mistakes, settings, workers)
    print(export_expert(play, Path(out), per, chosen, arm or [], most))
