"""Where an error was raised in somebody's own code: kept with its episode, shown once.

Their code is what lies outside of rpms, of installed packages and of Python. A mistake of theirs
may only show in a library, or be told by an error of ours: their last line before that counts.
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
"""Characters kept of the calls, and of the error's own words."""
FRAMES = 3
"""How many of their own calls are shown."""
# The folders of rpms, as it was imported, and of Python itself.
_NOT_THEIRS = tuple(
    os.path.join(folder, "") for folder in (Path(__file__).parents[1], Path(os.__file__).parent)
)
_INSTALLED = {"site-packages", "dist-packages"}
# LangGraph notes on an error which node raised it.
_NODE = re.compile(r"During task with name '(\w+)'")
# As ``rules/loader.py`` and the readers of other files tell a mistake in a file of the user's.
_IN_A_FILE = re.compile(r"(?P<file>[^\n]+?\.\w+):(?P<line>\d+): ")


class ErrorPlace(TypedDict):
    """Where it was.

    Attributes:
        stage: the stage that was running; empty outside of the graph.
        file: their file; where none of it is theirs, that of the last call.
        line: the line in it.
        frames: the last calls of their own and the error, as Python prints them.
        traceback: the same with every call from their first one on.
    """

    stage: str
    file: str
    line: int
    frames: str
    traceback: str


def place_of(
    error: BaseException | None, stage: str = "", anywhere: bool = False
) -> ErrorPlace | None:
    """The place in code or in a file of theirs; None where nothing of theirs was involved.

    ``anywhere`` takes the last call, whosever it is, rather than none: what a stage returned may
    break the next one.
    """
    if error is None:
        return None
    noted = _NODE.search("\n".join(getattr(error, "__notes__", ())))
    stage = stage or (noted[1] if noted else "")
    links = list(_chain(TracebackException.from_exception(error)))
    for link in links:
        if theirs := [n for n, frame in enumerate(link.stack) if _is_theirs(frame.filename)]:
            own = [link.stack[number] for number in theirs]
            return _place(stage, own, link.stack[theirs[0] :], link)
    if isinstance(error, RpmsError) and (location := _IN_A_FILE.match(str(error))):
        file = location["file"]
        linecache.checkcache(file)
        written = [FrameSummary(file, int(location["line"]), os.path.basename(file))]
        return _place(stage, written, written, links[0])
    if anywhere and links[0].stack:
        return _place(stage, links[0].stack[-1:], links[0].stack, links[0])
    return None


def _chain(error: TracebackException) -> Iterator[TracebackException]:
    """An error, and what it was raised from."""
    link: TracebackException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _is_theirs(file: str) -> bool:
    foreign = file.startswith(("<", *_NOT_THEIRS)) or not _INSTALLED.isdisjoint(Path(file).parts)
    return not foreign


def _place(
    stage: str,
    own: Sequence[FrameSummary],
    since: Sequence[FrameSummary],
    error: TracebackException,
) -> ErrorPlace:
    lines = (line for line in error.format_exception_only() if not _NODE.match(line))
    # Cut before and after: an error may hold megabytes, and half a key is not known as one.
    words = redact("".join(lines)[: 4 * LONGEST])[:LONGEST]
    return ErrorPlace(
        stage=stage,
        file=own[-1].filename,
        line=own[-1].lineno or 0,
        frames=_calls(own[-FRAMES:]) + words,
        traceback=_calls(since) + words,
    )


def _calls(frames: Sequence[FrameSummary]) -> str:
    """The last of them that there is room for."""
    return redact("".join(StackSummary.from_list(frames).format()))[-LONGEST:]
