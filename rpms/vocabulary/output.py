"""Printing for people: control characters are shown, never sent.

A reply, an observation, a task's id or a rule of somebody's own may hold sequences that move the
cursor, set the window's title or fill the clipboard. Here they become plain text.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

from rpms.vocabulary.error_place import ErrorPlace
from rpms.vocabulary.safe_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def say(*words: object, file: TextIO | None = None, **options: Any) -> None:
    """``print`` for texts that others wrote."""
    print(*(visible(str(word)) for word in words), file=file, **options)


def say_place(place: ErrorPlace | None, what: str = "raised") -> None:
    """The last calls before an error, on standard error; nothing where nobody knows them."""
    if place:
        stage = f" in stage {place['stage']}" if place["stage"] else ""
        say(f"rpms: {what}{stage}:\n{place['frames'].rstrip()}", file=sys.stderr)


def open_console(**options: Any) -> Console:
    """Rich's console for texts that others wrote: the colours are ours, the rest is text."""
    from rich.console import Console

    class SafeConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            """Every string that is printed comes through here, those in tables too."""
            return super().render_str(visible(text), **options)

    return SafeConsole(**options)
