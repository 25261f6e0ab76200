"""``rpms export``: a run in another format, or expert play as training data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rpms.commands.options import EnvOption, SplitOption, limit_option, refuse_empty, with_settings
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.limits import MOST_WORKERS
from rpms.vocabulary.output import print_wrapped, quantity


@with_settings("knowledge", "memory", "protocol")
def export(
    env: EnvOption,
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A run of 'rpms eval'.", show_default=False)
    ] = None,
    *,
    format: Annotated[
        str,
        typer.Option(
            autocompletion=lambda: ["atif", "chat"],
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
    conditions: Annotated[str, typer.Option(help="Which, by comma; else all.")] = "",
    prompts: Annotated[bool, typer.Option(help="Also every prompt as it was sent.")] = False,
    per: Annotated[str, typer.Option(help="chat: a line per decision | episode.")] = "decision",
    most: Annotated[
        int, typer.Option(min=0, help="chat: of an episode so many decisions, evenly; 0: all.")
    ] = 0,
    expert: Annotated[
        bool,
        typer.Option("--expert", help="chat: the rules' own procedure plays, or corrects DIR."),
    ] = False,
    split: SplitOption = "",
    limit: Annotated[int, limit_option("--expert: how many tasks; 0: all.")] = 0,
    spread: Annotated[
        bool,
        typer.Option(
            help="--expert with --limit: a sample of the whole split, stratified over task types, "
            "instead of its first tasks."
        ),
    ] = False,
    won: Annotated[
        int, limit_option("--expert: until so many episodes are won, as many of each task type.")
    ] = 0,
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
    With both, each prompt of the run is answered as it would have been played.
    """
    from rpms.evals.export import CHAT, export_run
    from rpms.evals.export_chat import PER, export_chat, export_expert
    from rpms.evals.plan_file import condition_names
    from rpms.evals.run_folder import read_run
    from rpms.vocabulary.errors import RpmsError

    if not expert and folder is None:
        raise RpmsError("give DIR, a run of 'rpms eval', or --expert, or both")
    if per not in PER:
        raise RpmsError(f"unknown --per '{per}'; choose from {', '.join(PER)}")
    target, chosen = Path(out), condition_names(conditions)
    if expert and format != CHAT:
        raise RpmsError(f"--expert writes training data: give --format chat, not {format}")
    if folder is None:
        done = export_expert(
            env, target, split=split, limit=limit, spread=spread, won=won,
            conditions=chosen, arms=arm or (), settings=settings, mistakes=mistakes, per=per,
            most=most, workers=workers, show=True,
        )  # fmt: skip
    elif format == CHAT:
        done = export_chat(read_run(folder), target, chosen, per, most, corrected=expert)
    else:
        written = export_run(read_run(folder), format, target, chosen, prompts)
        unread = f"; left out, as its step log cannot be read: {written.without_log}"
        episodes = quantity(written.episodes, "episode")
        print_wrapped(f"written: {out} ({episodes}{unread if written.without_log else ''})")
        return
    lost = f"; left out, as lost: {done.lost}" if done.lost else ""
    print_wrapped(
        f"written: {out} ({quantity(done.lines, 'line')}, {quantity(done.targets, 'decision')} to "
        f"learn, {quantity(done.episodes - done.lost, 'episode')}{lost})"
    )
    if won and done.short:
        missing = ", ".join(f"{kind} {count}" for kind, count in done.short.items())
        print_wrapped(f"rpms: not won, and so missing of their share: {missing}", file=sys.stderr)
