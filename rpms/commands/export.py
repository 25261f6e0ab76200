"""``rpms export``: writes a run, or episodes of the expert, as training data."""

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
    SpreadOption,
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
        typer.Argument(metavar="DIR", help="The run folder of an evaluation.", show_default=False),
    ] = None,
    *,
    out: Annotated[
        str,
        option(
            OUTPUT,
            "The file to write; the metadata of each line goes to FILE.meta.jsonl.",
            callback=refuse_empty,
            metavar="FILE.jsonl",
        ),
    ],
    conditions: Annotated[
        str, option(RUN, "Export these conditions; by default all.", metavar="A,B,...")
    ] = "",
    per: Annotated[
        str,
        option(
            OUTPUT,
            "Write a line for each decision or for each episode.",
            metavar="decision|episode",
        ),
    ] = "decision",
    max_decisions: Annotated[
        int,
        option(
            OUTPUT,
            "Write at most N decisions of an episode; 0 means all.",
            "--most",
            min=0,
        ),
    ] = 0,
    expert: Annotated[
        bool,
        option(
            RUN,
            "The built-in expert acts, or answers the prompts of DIR.",
            "--expert",
        ),
    ] = False,
    split: SplitOption = "",
    limit: Annotated[int, limit_option("With --expert: run N tasks; 0 means all.")] = 0,
    spread: SpreadOption = False,
    won: Annotated[
        int,
        limit_option("With --expert: stop after N successful episodes, balanced over task types."),
    ] = 0,
    mistakes: Annotated[
        float,
        option(
            RUN,
            "With --expert: the probability of a mistake, at most 0.5.",
            min=0,
            max=0.5,
        ),
    ] = 0.0,
    arm: Annotated[
        list[str] | None,
        option(
            RUN,
            f"With --expert: also run this custom arm.{AGAIN}",
            metavar="LABEL:SETTING=VALUE,...",
        ),
    ] = None,
    workers: WorkersOption = None,
    settings: RunContext,
) -> None:
    """Write the successful episodes of a run as chat messages for fine-tuning.

    With --expert no run is needed: the guard's policy acts on tasks of a learning split, with the
    settings of this command, and its decisions become training data. With both DIR and --expert,
    the expert answers each prompt of the run. Nothing is sent anywhere.
    """
    from rpms.evals.records.run_folder import read_run
    from rpms.evals.running.expert_export import ExpertTasks, export_expert
    from rpms.evals.running.export_chat import PER, ChatFormat, export_chat
    from rpms.evals.running.plan_file import condition_names
    from rpms.vocabulary.errors import RpmsError

    if not expert and folder is None:
        raise RpmsError("nothing to export; give DIR, a run of 'rpms eval', or --expert, or both")
    if per not in PER:
        raise RpmsError(f"unknown --per '{per}'; choose from {', '.join(PER)}")
    target, chosen, form = Path(out), condition_names(conditions), ChatFormat(per, max_decisions)
    if folder is None:
        tasks = ExpertTasks(env, split, limit, spread, won, chosen, arm or (), settings, mistakes)
        done = export_expert(tasks, target, form, workers=workers, show=True)
    else:
        done = export_chat(read_run(folder), target, chosen, form, corrected=expert)
    lost = f"; left out, because they failed: {done.lost}" if done.lost else ""
    print_wrapped(
        f"written: {out} ({quantity(done.lines, 'line')}, {quantity(done.targets, 'decision')} to "
        f"learn, {quantity(done.episodes - done.lost, 'episode')}{lost})"
    )
    if won and done.short:
        missing = ", ".join(f"{kind} {count}" for kind, count in done.short.items())
        print_wrapped(
            f"rpms: too few successful episodes of these types; missing: {missing}", file=sys.stderr
        )
