"""``rpms report``, ``compare`` and ``view``: run folders as tables, as files and in a browser."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rpms.commands.options import JsonOption, print_json
from rpms.vocabulary.output import open_console, print_safe

if TYPE_CHECKING:
    from rpms.evals.report import Report


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="A run, or more, of the same tasks.")
    ],
    html: Annotated[
        Path | None, typer.Option(help="The page; DIR/report.html for one run, else none.")
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NAME", help="Just this table; repeatable."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every table, as text too.")] = False,
    form: Annotated[
        Literal["text", "json", "csv", "latex", "markdown"],
        typer.Option("--format", help="Text has three tables, the others have all."),
    ] = "text",
    as_json: JsonOption = False,
) -> None:
    """Print a run's verdict and tables; write all and a page. Or those of several runs as one."""
    from rpms.evals.report import read_report
    from rpms.evals.report.page import write_report

    whole = read_report(folders)
    chosen = whole.only(tables) if tables else whole
    files = write_report(whole, html)
    if as_json or form == "json":
        print_json(chosen.as_json())
    elif form == "text":
        _print_text(whole, chosen if tables or everything else whole.brief(), files)
    else:
        texts = {"csv": chosen.as_csv, "latex": chosen.as_latex, "markdown": chosen.as_markdown}
        print_safe(texts[form](), end="")


def _print_text(whole: Report, chosen: Report, files: Iterable[Path]) -> None:
    """For people: where it comes from, the verdict, the chosen tables and the names of others."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_source, print_tables

    console = open_console(highlight=False)
    print_source(console, *whole.about)
    console.print("\n".join(["[bold]Verdict[/]", *(f"- {escape(v)}" for v in whole.verdict), ""]))
    print_tables(console, chosen.tables)
    if others := [table.id for table in whole.tables if table not in chosen.tables]:
        console.print(f"Other tables, by --table NAME or --all: {', '.join(others)}\n")
    for file in files:
        console.print(f"written: {escape(str(file))}", soft_wrap=True)


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Two runs.")],
    allow_differences: Annotated[
        bool, typer.Option("--allow-differences", help="Even where the protocols differ.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Pair two runs by condition and task; refused where their protocols differ."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_source, print_tables
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
    print_source(console, "", comparison.protocol)
    print_tables(console, comparison.tables)


def view(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Runs, or folders that hold runs.")
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
