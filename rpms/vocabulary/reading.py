"""Files that others wrote: read within limits, and refused in one line.

A file may be cut short, damaged, endless, nested without end or no file at all. Whatever reads
one reads it here, so that each of these has one answer. What is in it is the caller's to check.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from pydantic_core import from_json

from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.writing import reason_of

MOST_TEXT = 4_000_000
"""Bytes of a text that people write by hand: rules, plans, lists."""
MOST_VALUES = 200_000
"""Values of a YAML file with its aliases written out; a few lines could name billions."""


def is_file(path: Path | str) -> bool:
    """Whether there is such a file; a name that no file can have is none."""
    return os.path.isfile(path)


def is_folder(path: Path | str) -> bool:
    """Whether there is such a folder; a name that no folder can have is none."""
    return os.path.isdir(path)


NOT_THERE = (0, 0)


def stamp_of(file: Path) -> tuple[int, int]:
    """What tells one content of a file from another; the same for all that are not there."""
    try:
        found = file.stat()
    except (OSError, ValueError):
        return NOT_THERE
    return found.st_mtime_ns, found.st_size


def open_plain(file: Path, what: str = "") -> BinaryIO:
    """A file to read from; a pipe will do, a device or a folder will not."""
    told = f"cannot read {f'{what} ' if what else ''}{file}"
    try:
        # Opening a pipe that nobody writes to would wait for ever.
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise RpmsError(f"{told}: {reason_of(error)}") from error
    kind = os.fstat(handle).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
        os.close(handle)
        found = "a folder" if stat.S_ISDIR(kind) else "a device"
        raise RpmsError(f"{told}: it is {found}, not a file")
    os.set_blocking(handle, True)
    return os.fdopen(handle, "rb")


def read_bytes(file: Path, what: str = "", most: int = -1) -> bytes:
    """The whole of a file, unless it is longer than ``most``."""
    with open_plain(file, what) as stream:
        try:
            data = stream.read(most + 1 if most >= 0 else -1)
        except OSError as error:
            raise RpmsError(f"cannot read {file}: {reason_of(error)}") from error
    if 0 <= most < len(data):
        raise RpmsError(f"cannot read {file}: it is longer than {most:,} bytes")
    return data


def read_text(file: Path, what: str = "") -> str:
    """A text that somebody wrote by hand."""
    try:
        return read_bytes(file, what, MOST_TEXT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RpmsError(f"cannot read {file}: it is not UTF-8 text") from error


def parse_json(data: bytes | str, where: str) -> Any:
    """Plain data; numbers that are none, half characters and endless nesting are refused."""
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise RpmsError(f"{where}: not JSON: {error}") from error


def read_yaml(file: Path) -> tuple[yaml.Node | None, object]:
    """The document as nodes (for line numbers) and as data."""
    text = read_text(file)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None and _values(node, [], {}) > MOST_VALUES:
            raise RpmsError(f"{file}: not readable: more than {MOST_VALUES:,} values in it")
        return node, yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RpmsError(f"{file}:{line}: not valid YAML: {problem}") from error
    except RecursionError as error:
        raise RpmsError(f"{file}: not readable: it is nested too deeply") from error
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        # What PyYAML says of a text that is no number or date though its tag or form says so.
        raise RpmsError(f"{file}: a value in it does not fit its type: {error}") from error


def _values(node: yaml.Node, above: list[int], known: dict[int, int]) -> int:
    """How many values a node stands for; one that contains itself has no end."""
    if id(node) in above:
        raise RecursionError
    if id(node) not in known:
        parts = node.value if isinstance(node, yaml.CollectionNode) else []
        below = [*above, id(node)]
        known[id(node)] = 1 + sum(
            _values(one, below, known)
            for part in parts
            for one in (part if isinstance(part, tuple) else (part,))
        )
    return known[id(node)]
