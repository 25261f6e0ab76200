"""``rpms report``, ``compare`` and ``view``: run folders as tables, as files and in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rpms.commands.options import JsonOption, print_json
from rpms.vocabulary.output import open_console


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run of 'rpms eval'.")],
    html: Annotated[Path | None, typer.Option(help="Default: DIR/report.html.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a run's tables with their statistics; write them and a page to look into it."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_tables
    from rpms.evals.report import read_report
    from rpms.evals.report.page import write_report

    result = read_report(folder)
    files = write_report(result, html)
    if as_json:
        print_json(result.as_json())
        return
    console = open_console(highlight=False)
    print_tables(console, result.tables)
    if not result.run.complete:
        played = f"{result.run.done} of {result.run.planned}"
        console.print(f"[yellow]This run is not finished: {played} episodes are there.[/]")
    for file in files:
        console.print(f"written: {escape(str(file))}", soft_wrap=True)


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Two or more runs.")],
    allow_differences: Annotated[
        bool, typer.Option("--allow-differences", help="Even where the protocols differ.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Pair runs by condition and task: models, commits; refused where their protocols differ."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_tables
    from rpms.evals.comparison import compare as compare_folders

    comparison = compare_folders(folders, allow_differences)
    if as_json:
        print_json(comparison.as_json())
        return
    console = open_console(highlight=False)
    width = max(map(len, comparison.names)) + 1
    for name, source in zip(comparison.names, comparison.sources, strict=True):
        console.print(f"[bold]{escape(f'{name}:'.ljust(width))}[/] {escape(source)}")
    console.print("\n[bold]What was set differently[/]")
    for line in comparison.differences or ["nothing that the manifests record"]:
        console.print(f"  {escape(line)}")
    console.print()
    print_tables(console, comparison.tables, with_source=False)


def view(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Runs, or folders that hold runs.")
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="On this machine alone; 0: any free one.")
    ] = 0,
    show: Annotated[bool, typer.Option("--open", help="Open a browser, too.")] = False,
) -> None:
    """Follow runs in a browser while they are going on; nothing is written, Ctrl-C ends it."""
    from rpms.commands.view_server import ViewServer, serve
    from rpms.evals.report.live import Shelf

    server = ViewServer(Shelf(folders), port)
    print(f"{server.address} (Ctrl-C ends it)", flush=True)
    if show:
        import webbrowser

        webbrowser.open(server.address)
    serve(server)
