"""``rpms report`` and ``rpms compare`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rpms import completion
from rpms.options import JsonOption, print_json


def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", autocompletion=completion.runs, help="A run of 'rpms eval'."),
    ],
    html: Annotated[Path | None, typer.Option(help="Default: DIR/report.html.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a run's tables with their statistics; write them and a page to look into it."""
    from rpms.reporting import report_run

    result = report_run(folder, html, as_json)
    if as_json:
        print_json(result)


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", autocompletion=completion.runs, help="Two or more runs."),
    ],
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OLD=NEW", help="Read a condition as another; repeatable."),
    ] = None,
    allow_differences: Annotated[
        bool, typer.Option("--allow-differences", help="Even where the protocols differ.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Pair runs by condition and task: models, commits; refused where their protocols differ."""
    from rpms.reporting import compare as compare_folders
    from rpms.reporting import print_comparison

    comparison = compare_folders(folders, mapping or (), allow_differences)
    if as_json:
        print_json(comparison.as_json())
    else:
        print_comparison(comparison)
