"""``rpms view`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
    from rpms.evals.report.live import Shelf
    from rpms.viewing import ViewServer, serve

    server = ViewServer(Shelf(folders), port)
    print(f"{server.address} (Ctrl-C ends it)", flush=True)
    if show:
        import webbrowser

        webbrowser.open(server.address)
    serve(server)
