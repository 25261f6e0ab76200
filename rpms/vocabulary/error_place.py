"""The place of an error in the user's code, kept with its episode and shown once.

User code is everything outside of rpms, installed packages and Python. A mistake in it may only
show in a library, or as an error of rpms: the last line of user code before that counts.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException

from typing_extensions import TypedDict

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import redact

LONGEST = 4000
"""The longest traceback, and the longest message, that is kept, in characters."""
FRAMES = 3
"""How many frames of user code are shown."""
# The folders of rpms, as it was imported, and of Python itself.
_NOT_USER_CODE = tuple(
    os.path.join(folder, "") for folder in (Path(__file__).parents[1], Path(os.__file__).parent)
)
_INSTALLED = {"site-packages", "dist-packages"}
# LangGraph notes on an error which node raised it.
_NODE = re.compile(r"During task with name '(\w+)'")
# The form in which ``rules/loader.py`` and others report a mistake in a user's file.
_FILE_AND_LINE = re.compile(r"(?P<file>[^\n]+?\.\w+):(?P<line>\d+): ")


class ErrorPlace(TypedDict):
    """The place of an error.

    Attributes:
        stage: the stage that was running; empty outside of the graph.
        file: the file of user code; if there is none, that of the last call.
        line: the line in it.
        frames: the last frames of user code and the error, as Python prints them.
        traceback: the error with all frames from the first one of user code.
    """

    stage: str
    file: str
    line: int
    frames: str
    traceback: str


def place_of(
    error: BaseException | None, stage: str = "", anywhere: bool = False
) -> ErrorPlace | None:
    """The place of an error in user code or a user's file; None if neither was involved.

    With ``anywhere`` the last call counts if there is no user code: the output of a custom stage
    may break the next one.
    """
    if error is None:
        return None
    note = _NODE.search("\n".join(getattr(error, "__notes__", ())))
    stage = stage or (note[1] if note else "")
    links = list(_chain(TracebackException.from_exception(error)))
    for link in links:
        if positions := [n for n, frame in enumerate(link.stack) if _is_user_code(frame.filename)]:
            user_frames = [link.stack[number] for number in positions]
            return _place(stage, user_frames, link.stack[positions[0] :], link)
    if isinstance(error, RpmsError) and (location := _FILE_AND_LINE.match(str(error))):
        file = location["file"]
        linecache.checkcache(file)
        frames = [FrameSummary(file, int(location["line"]), os.path.basename(file))]
        return _place(stage, frames, frames, links[0])
    if anywhere and links[0].stack:
        return _place(stage, links[0].stack[-1:], links[0].stack, links[0])
    return None


def _chain(error: TracebackException) -> Iterator[TracebackException]:
    """An error and its causes."""
    link: TracebackException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _is_user_code(file: str) -> bool:
    foreign = file.startswith(("<", *_NOT_USER_CODE)) or not _INSTALLED.isdisjoint(Path(file).parts)
    return not foreign


def _place(
    stage: str,
    user_frames: Sequence[FrameSummary],
    frames: Sequence[FrameSummary],
    error: TracebackException,
) -> ErrorPlace:
    lines = (line for line in error.format_exception_only() if not _NODE.match(line))
    # Cut before and after: a message may have megabytes, and half a key is not recognised.
    message = redact("".join(lines)[: 4 * LONGEST])[:LONGEST]
    return ErrorPlace(
        stage=stage,
        file=user_frames[-1].filename,
        line=user_frames[-1].lineno or 0,
        frames=_calls(user_frames[-FRAMES:]) + message,
        traceback=_calls(frames) + message,
    )


def _calls(frames: Sequence[FrameSummary]) -> str:
    """Format frames, cut from the front to the limit."""
    return redact("".join(StackSummary.from_list(frames).format()))[-LONGEST:]
