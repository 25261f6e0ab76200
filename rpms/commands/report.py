"""``rpms report``: show run folders as tables, as files and in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rpms.commands.help_text import OUTPUT
from rpms.commands.options import AGAIN, JsonOption, option, print_json
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import open_console, print_safe

if TYPE_CHECKING:
    from rpms.evals.analysis.report import Report


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR",
            help="One run folder, or several. Runs of the same arms by other models, with other "
            "seeds or over other tasks are one experiment.",
        ),
    ],
    html: Annotated[
        Path | None,
        option(
            OUTPUT,
            "Write the page here; by default DIR/report.html for a single run, if it is printed as "
            "text and whole.",
            metavar="FILE.html",
        ),
    ] = None,
    tables: Annotated[
        list[str] | None,
        option(OUTPUT, f"Print only this table.{AGAIN}", "--table", metavar="NAME"),
    ] = None,
    against: Annotated[
        list[str] | None,
        option(
            OUTPUT,
            "Compare every other arm with this one; verdict and table 'pairs' then correct for "
            f"these pairs only.{AGAIN}",
            metavar="ARM",
        ),
    ] = None,
    separate: Annotated[
        bool, option(OUTPUT, "Report runs of the same arms as separate arms, without means.")
    ] = False,
    everything: Annotated[bool, option(OUTPUT, "Print every table.", "--all")] = False,
    form: Annotated[
        Literal["text", "csv", "latex", "markdown"],
        option(
            OUTPUT,
            "The format; text prints the main tables, the other formats all.",
            "--format",
            metavar="text|csv|latex|markdown",
        ),
    ] = "text",
    show: Annotated[bool, option(OUTPUT, "Also open the page in a browser.", "--open")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the verdict and tables of one run, or of several together, and write the page.

    A run that is not finished is reported as far as it is.
    """
    if show and html is None and len(folders) > 1:
        raise RpmsError("--open: several runs have no page of their own; give --html FILE.html")
    from rpms.evals.analysis.report import read_report
    from rpms.evals.analysis.report.page import write_page

    whole = read_report(folders, separate, against=against or ())
    chosen = whole.only(tables) if tables else whole
    page, is_whole = None, not (tables or as_json or form != "text")
    if html or show or (is_whole and not whole.run.parts):  # several runs have no folder
        page = write_page(whole, html)
    if as_json:
        print_json(chosen.as_json())
    elif form == "text":
        _print_text(whole, chosen if tables or everything else whole.brief(), page)
    else:
        texts = {"csv": chosen.as_csv, "latex": chosen.as_latex, "markdown": chosen.as_markdown}
        print_safe(texts[form](), end="")
    if show and page:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _print_text(whole: Report, chosen: Report, page: Path | None) -> None:
    """Print the source, the verdict, the chosen tables and the names of the other tables."""
    from rich.markup import escape

    from rpms.commands.terminal_tables import print_source, print_tables

    console = open_console(highlight=False)
    print_source(console, *whole.origin)
    console.print("\n".join(["[bold]Verdict[/]", *(f"- {escape(v)}" for v in whole.verdict), ""]))
    print_tables(console, chosen.tables)
    if hidden := [name for name in whole.names if name not in chosen.names]:
        console.print(f"Other tables, by --table NAME or --all: {', '.join(hidden)}\n")
    if page:
        console.print(f"written: {escape(str(page))}", soft_wrap=True)
    elif whole.run.parts:
        console.print("no page was written for several runs; --html FILE writes one")
