"""``rpms report`` and ``rpms compare`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rpms.options import JsonOption, print_json


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run of 'rpms eval'.")],
    html: Annotated[Path | None, typer.Option(help="Default: DIR/report.html.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a run's tables with their statistics; write them and a page to look into it."""
    from rpms.reporting import report_run

    result = report_run(folder, html, as_json)
    if as_json:
        print_json(result)


def compare(
    first: Annotated[Path, typer.Argument(metavar="DIR", help="A run of 'rpms eval'.")],
    second: Annotated[Path, typer.Argument(metavar="DIR", help="Another one.")],
    as_json: JsonOption = False,
) -> None:
    """Pair two runs by condition and task: two models, two commits."""
    from rpms.reporting import compare_folders

    result = compare_folders(first, second, as_json)
    if as_json:
        print_json(result)
