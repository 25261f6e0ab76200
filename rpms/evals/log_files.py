"""Reading step logs: one gzipped JSON document for each episode, checked before it is used.

A log that is missing, damaged or of another form is no reason to refuse a whole run: its episode
counts, its steps are left out, and whoever prints a table says how many such logs there are.
"""

from __future__ import annotations

import gzip
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rpms.evals.bounded import Amount, Count, Real, Whole
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import parse_json, read_bytes

_MORE = ConfigDict(extra="allow")
"""Logs hold more than is read here, and later versions add to them."""


class _Recall(TypedDict):
    __pydantic_config__ = _MORE  # type: ignore[misc]

    entry: dict[str, Any]
    score: Real
    dropped_by: str
    reason: str
    warning: str
    rule: str


class _Decision(TypedDict):
    __pydantic_config__ = _MORE  # type: ignore[misc]

    proposal: str
    verdict: str
    rule: str
    reason: str


class _SubGoal(TypedDict):
    __pydantic_config__ = _MORE  # type: ignore[misc]

    name: str
    progress: Whole


class _Belief(TypedDict):
    __pydantic_config__ = _MORE  # type: ignore[misc]

    location: str | None
    holding: list[str]


class _Usage(TypedDict):
    prompt_tokens: Count
    cached_tokens: Count
    output_tokens: Count


class _Situation(TypedDict):
    id: str
    text: str


class _Step(TypedDict):
    __pydantic_config__ = _MORE  # type: ignore[misc]

    step: Count
    observation: str
    belief: _Belief
    sub_goal: _SubGoal
    reply: str
    thought: str
    action: str
    result: str
    failed: bool
    usage: _Usage
    seconds: Amount
    drift: list[str]
    rules: NotRequired[dict[str, list[str | _Situation]]]
    recalls: NotRequired[list[_Recall]]
    decisions: NotRequired[list[_Decision]]
    judged: NotRequired[list[tuple[str, str]]]
    prompt: NotRequired[list[tuple[str, Count]]]
    proposal: NotRequired[str]
    lacked: NotRequired[str]
    knowledge_tokens: NotRequired[Count]
    dropped_turns: NotRequired[Count]
    cost_usd: NotRequired[Amount | None]


class _Log(TypedDict):
    __pydantic_config__ = _MORE  # type: ignore[misc]

    messages: list[str]
    steps: list[_Step]


_LOG: TypeAdapter[_Log] = TypeAdapter(_Log)


def read_log(file: Path) -> dict[str, Any] | None:
    """An episode's step log; None where it is missing or damaged, for tables need not fail."""
    try:
        log: dict[str, Any] = parse_json(unpacked(file), str(file))
        known = _LOG.validate_python(log)
    except (RpmsError, ValidationError):
        return None
    places = [place for step in known["steps"] for _, place in step.get("prompt", [])]
    return log if max(places, default=-1) < len(known["messages"]) else None


def unpacked(file: Path) -> bytes:
    """The text of a log; the checksum of the format finds any byte that is not as written."""
    try:
        return gzip.decompress(read_bytes(file, "the step log"))
    except (OSError, EOFError, zlib.error) as error:
        raise RpmsError(f"{file}: a damaged step log: {error}") from error


def is_damaged(file: Path) -> bool:
    """Whether there is a log that cannot be read; one that is not there is not damaged."""
    try:
        stamp = file.stat()
    except OSError:
        return False
    return not _is_whole(file, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=65536)
def _is_whole(file: Path, _changed: int, _size: int) -> bool:
    """Looked at once: a page that follows a run asks again and again."""
    try:
        return bool(unpacked(file))
    except RpmsError:
        return False
