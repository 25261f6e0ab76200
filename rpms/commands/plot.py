"""``rpms plot``: draw a figure of run folders for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rpms.commands.help_text import OUTPUT
from rpms.commands.options import AGAIN, option
from rpms.vocabulary.output import print_safe

KINDS = (
    "success",
    "square",
    "differences",
    "types",
    "steps",
    "memories",
    "rules",
    "rounds",
)


def kind_names() -> list[str]:
    return [*KINDS]


def plot(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            help="One run folder, or several, as 'rpms report' takes them.",
        ),
    ],
    out: Annotated[
        Path, option(OUTPUT, "Write the plot to this file.", metavar="FILE.svg|.pdf|.png")
    ],
    kind: Annotated[
        str,
        option(
            OUTPUT,
            "Results by arm (success), the 2x2 of rules and memory with its additive expectation "
            "(square), paired differences, results by goal type, tasks won by "
            "step, outcomes of memories, broken rules, or the learning curve over rounds of "
            "memory.",
            metavar="|".join(KINDS),
            autocompletion=kind_names,
        ),
    ] = "success",
    against: Annotated[
        list[str] | None,
        option(
            OUTPUT,
            f"With differences, compare every other arm with this one.{AGAIN}",
            metavar="ARM",
        ),
    ] = None,
    separate: Annotated[
        bool, option(OUTPUT, "Plot runs of the same arms as separate arms, without means.")
    ] = False,
) -> None:
    """Draw one figure of a run, or of several together, one column of a paper wide."""
    from rpms.evals.analysis.report import read_report

    report = read_report(folders, separate, against=against or ())
    drawn = report.plot(kind, out)
    print_safe(f"{drawn.caption}\nwritten: {out}")
