"""What the command line shows of scenes that are generated."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rpms.vocabulary.generation import NewScenes
from rpms.vocabulary.output import open_console, print_wrapped

SHOWN_FROM = 100
"""Fewer scenes take no second, and are generated in silence."""


@contextmanager
def show_generation(scenes: NewScenes) -> Iterator[Callable[[], None]]:
    """Show a bar or a line while scenes are generated, then say where they lie."""
    if scenes.number < SHOWN_FROM:
        yield lambda: None
        return
    text = f"{scenes.number:,} new {scenes.noun}"
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
