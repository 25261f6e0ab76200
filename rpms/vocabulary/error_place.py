"""The place of an error in the user's code, kept with its episode and shown once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException

from typing_extensions import TypedDict

from rpms.vocabulary.safe_text import redact

LONGEST = 4000
"""The longest traceback, and the longest message, that is kept, in characters."""
FRAMES = 3
"""How many frames of user code are shown."""
_FOREIGN = ("<", f"{Path(__file__).parents[1]}{os.sep}", f"{Path(os.__file__).parent}{os.sep}")
_INSTALLED = {"site-packages", "dist-packages"}
# LangGraph notes on an error which node raised it.
_NODE = re.compile(r"During task with name '(\w+)'")


class ErrorPlace(TypedDict):
    """The stage that was running, if any, the last line of user code, and frames as Python prints.

    ``frames`` has the last ones of user code, ``traceback`` all from the first one of user code.
    """

    stage: str
    file: str
    line: int
    frames: str
    traceback: str


def place_of(
    error: BaseException | None, stage: str = "", anywhere: bool = False
) -> ErrorPlace | None:
    """The last line of user code before an error or before its cause; None if there is none.

    User code is everything outside of rpms, installed packages and Python. With ``anywhere`` the
    last call counts if there is none: the output of a custom stage may break the next one.
    """
    if error is None:
        return None
    note = _NODE.search("\n".join(getattr(error, "__notes__", ())))
    stage = stage or (note[1] if note else "")
    links = [*_chain(TracebackException.from_exception(error))]
    for link in links:
        if user_frames := [frame for frame in link.stack if is_user_code(frame.filename)]:
            return _place(stage, user_frames, link.stack[link.stack.index(user_frames[0]) :], link)
    stack = links[0].stack if anywhere else []
    return _place(stage, stack[-1:], stack, links[0]) if stack else None


def _chain(link: TracebackException | None) -> Iterator[TracebackException]:
    """An error and its causes."""
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def is_user_code(file: str) -> bool:
    """True for a file outside of rpms, installed packages and Python."""
    return not file.startswith(_FOREIGN) and _INSTALLED.isdisjoint(Path(file).parts)


def _place(
    stage: str,
    user_frames: list[FrameSummary],
    frames: list[FrameSummary],
    error: TracebackException,
) -> ErrorPlace:
    lines = (line for line in error.format_exception_only() if not _NODE.match(line))
    # Cut before and after: a message may have megabytes, and half a key is not recognised.
    message = redact("".join(lines)[: 4 * LONGEST])[:LONGEST]
    shown, whole = (
        redact("".join(StackSummary.from_list(part).format()))[-LONGEST:] + message
        for part in (user_frames[-FRAMES:], frames)
    )
    last = user_frames[-1]
    return ErrorPlace(
        stage=stage, file=last.filename, line=last.lineno or 0, frames=shown, traceback=whole
    )
