"""Prints for people, with control characters shown as plain text.

A reply, an observation, a task id or a custom rule may hold sequences that move the cursor, set the
window title or fill the clipboard.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, TextIO

from rpms.vocabulary.error_place import ErrorPlace
from rpms.vocabulary.safe_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def print_safe(*words: object, file: TextIO | None = None, **options: Any) -> None:
    """``print`` for texts that others wrote."""
    print(*(visible(str(word)) for word in words), file=file, **options)


def print_wrapped(text: object, file: TextIO | None = None) -> None:
    """Print sentences, wrapped between words in a terminal and unchanged elsewhere."""
    stream = file or sys.stdout
    if stream.isatty():
        open_console(file=stream, highlight=False).print(str(text), markup=False)
    else:
        print_safe(text, file=stream, flush=True)


def quantity(number: int, noun: str) -> str:
    """``1 task``, ``134 tasks``, ``2 memories``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def with_article(noun: str) -> str:
    """``a model error``, ``an infrastructure error``."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def print_error_place(place: ErrorPlace | None, what: str = "raised") -> None:
    """Print the last frames before an error on standard error, if they are known."""
    if place:
        stage = f" in stage {place['stage']}" if place["stage"] else ""
        print_safe(f"rpms: {what}{stage}:\n{place['frames'].rstrip()}", file=sys.stderr)


def open_console(**options: Any) -> Console:
    """Rich's console for texts that others wrote, without their control characters."""
    from rich.console import Console

    class SafeConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            """Clean every printed string, also those in tables."""
            return super().render_str(visible(text), **options)

        def print(self, *objects: Any, **options: Any) -> None:
            """Wrap long lines between words and keep their indent."""
            if len(objects) == 1 and isinstance(objects[0], str) and not options.get("soft_wrap"):
                text = self.render_str(objects[0], markup=options.get("markup"))
                objects, options = (_hanging(text, self.width),), {**options, "soft_wrap": True}
            super().print(*objects, **options)

    return SafeConsole(**options)


_INDENT = re.compile(r"^ *(?:- |\d+  )?")
"""The indent of continuation lines: blanks, and a dash or a number before the text."""


def _hanging(text: Text, width: int) -> Text:
    """Wrap a text to the width; only a single word may be longer."""
    from rich.cells import cell_len
    from rich.text import Text

    lines: list[Text] = []
    for line in text.split(allow_blank=True):
        words, breaks = line.plain, list[int]()
        indent = begin = len(words) - len(_INDENT.sub("", words, count=1))
        for start, end in (word.span() for word in re.finditer(r"\S+", words)):
            if start > begin and indent + cell_len(words[begin:end]) > width:
                breaks.append(start)
                begin = start
        first, *others = line.divide(breaks)
        lines += [first, *(Text(" " * indent) + other for other in others)]
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)
