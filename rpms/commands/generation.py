"""What the command line shows of scenes that are generated, and when it asks first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from rpms.commands.help_text import EXECUTION
from rpms.envs.generation import NewScenes
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import open_console, print_wrapped

SHOWN_FROM = 100
"""Fewer scenes take no second, and are generated in silence."""
MANY = 1_000
"""More scenes need a yes."""

_approved = False


def _approve(yes: bool) -> bool:
    global _approved
    _approved = yes
    return yes


YesOption = Annotated[
    bool,
    typer.Option(
        "--yes",
        callback=_approve,
        help=f"Generate more than {MANY:,} scenes without a question.",
        rich_help_panel=EXECUTION,
    ),
]


@contextmanager
def show_generation(scenes: NewScenes) -> Iterator[Callable[[], None]]:
    """Ask before many scenes, show a bar or a line meanwhile, then say where they lie."""
    if scenes.number < SHOWN_FROM:
        yield lambda: None
        return
    text = f"{scenes.number:,} new {scenes.noun}"
    if scenes.number > MANY and not _approved:
        _ask(text, scenes)
    console = open_console(file=sys.stderr, highlight=False)
    if console.is_terminal:
        from rich.progress import Progress

        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(f"generating {scenes.noun}", total=scenes.number)
            yield lambda: bar.advance(task)
    else:
        print_wrapped(f"generating {text} in {scenes.folder}", file=sys.stderr)
        yield lambda: None
    print_wrapped(f"generated {text}: they lie in {scenes.folder}", file=sys.stderr)


def _ask(text: str, scenes: NewScenes) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RpmsError(
            f"this needs {text}, in {scenes.folder}; add --yes to generate more than {MANY:,} at "
            "once, or ask for fewer tasks"
        )
    if not typer.confirm(f"This generates {text} in {scenes.folder}. Go on?", err=True):
        raise RpmsError(f"no {scenes.noun} were generated; ask for fewer tasks")
