"""Files: those that others wrote, those that we write, and paths as people write them.

What is read may be cut short, damaged, endless, nested without end or no file at all; each of these
has one answer, in one line. What is in a file is the caller's to check. What is written is whole or
not there at all, and never stands in the place of something that is no plain file.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import yaml
from pydantic_core import from_json

from rpms.vocabulary.errors import RpmsError

MOST_TEXT = 4_000_000
"""Bytes of a text that people write by hand: rules, plans, lists."""
MOST_VALUES = 200_000
"""Values of a YAML file with its aliases written out; a few lines could name billions."""
MOST_DEPTH = 100
"""Nesting of a YAML file; ours have about ten."""
YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Ten times as fast where PyYAML was built with libyaml, as its wheels are."""
NOT_THERE = (0, 0)
_NAME = 100


def expanded(text: str, what: str) -> Path:
    """A path with its ``~``; ``what`` names the setting it comes from in the error."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # no such user, or one without a home
        raise RpmsError(f"{what}: '{text}': {error}; write the path without ~") from error


def path_variable(name: str, usual: str) -> Path:
    """The path that an environment variable names."""
    return expanded(os.environ.get(name) or usual, name)


def cache_dir() -> Path:
    """``$RPMS_CACHE``, else our folder in the user's cache: what can be made or fetched again."""
    if os.environ.get("RPMS_CACHE"):
        return path_variable("RPMS_CACHE", "")
    return path_variable("XDG_CACHE_HOME", "~/.cache") / "rpms"


def is_file(path: Path | str) -> bool:
    """Whether there is such a file; a name that no file can have is none."""
    return os.path.isfile(path)


def is_folder(path: Path | str) -> bool:
    """Whether there is such a folder; a name that no folder can have is none."""
    return os.path.isdir(path)


def stamp_of(file: Path) -> tuple[int, int]:
    """What tells one content of a file from another; the same for all that are not there."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return NOT_THERE
    return status.st_mtime_ns, status.st_size


def reason_of(error: OSError | ValueError) -> str:
    """Why a file could not be used, in a few words."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "no file can have such a name"


def open_plain(file: Path, what: str = "") -> BinaryIO:
    """A file to read from; ``what`` names its purpose in the error."""
    refusal = f"cannot read {f'{what} ' if what else ''}{file}"
    try:
        mode = file.stat().st_mode  # before it is opened: a pipe without a writer would wait
        if stat.S_ISREG(mode):
            return file.open("rb")
    except (OSError, ValueError) as error:
        raise RpmsError(f"{refusal}: {reason_of(error)}") from error
    kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
    raise RpmsError(f"{refusal}: it is {kind}, not a file")


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


def json_bytes(data: Any, separators: tuple[str, str] = (",", ":")) -> bytes:
    """Plain data as a file takes it, whatever a tool or a model said.

    A number that is none becomes a word, half a character a question mark, and what is no plain
    data its text.
    """
    text = json.dumps(data, ensure_ascii=False, separators=separators, default=str)
    if "NaN" in text or "Infinity" in text:
        words = json.loads(text, parse_constant=str)
        text = json.dumps(words, ensure_ascii=False, separators=separators)
    return text.encode("utf-8", "replace")


def read_yaml(file: Path) -> tuple[yaml.Node | None, object]:
    """The document as nodes (for line numbers) and as data."""
    text = read_text(file)
    try:
        _refuse_depth(text)
        node = yaml.compose(text, Loader=YAML_LOADER)
        if node is not None and _values(node, [], {}) > MOST_VALUES:
            raise RpmsError(f"{file}: not readable: more than {MOST_VALUES:,} values in it")
        return node, yaml.load(text, Loader=YAML_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RpmsError(f"{file}:{line}: not valid YAML: {problem}") from error
    except RecursionError as error:
        raise RpmsError(f"{file}: not readable: it is nested too deeply") from error
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        # What PyYAML says of a text that is no number or date though its tag or form says so.
        raise RpmsError(f"{file}: a value in it does not fit its type: {error}") from error


def _refuse_depth(text: str) -> None:
    """What is read in C has no net of its own below deep nesting."""
    depth = 0
    for event in yaml.parse(text, Loader=YAML_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise RecursionError


def _values(node: yaml.Node, above: list[int], known: dict[int, int]) -> int:
    """How many values a node stands for; one that contains itself has no end."""
    if id(node) in above:
        raise RecursionError
    if id(node) not in known:
        parts = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        below = [*above, id(node)]
        known[id(node)] = 1 + sum(_values(part, below, known) for part in parts)
    return known[id(node)]


def refuse_special(file: Path) -> Path:
    """Where a file will lie, links followed; a device, a pipe or a folder is refused.

    Worth asking before hours of work whose end is one file. A link to an open stream names what
    the stream may have long lost (``/tmp/#7 (deleted)``): nothing is written there either.
    """
    try:
        target = Path(os.path.realpath(file))
        mode = file.stat().st_mode
    except FileNotFoundError:
        return target
    except (OSError, ValueError) as error:
        raise RpmsError(f"cannot write {file}: {reason_of(error)}") from error
    if stat.S_ISDIR(mode):
        raise RpmsError(f"cannot write {file}: it is a folder; give a file")
    if not stat.S_ISREG(mode) or not is_file(target):
        raise RpmsError(f"cannot write {file}: it is a device or a pipe; give a plain file")
    return target


def make_folder(folder: Path) -> None:
    """A folder to write into, with those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise RpmsError(f"cannot write to {folder}: {reason_of(error)}") from error
    except RecursionError as error:  # it goes up one folder at a time
        raise RpmsError(f"cannot write to {folder}: too many folders in each other") from error


@contextmanager
def whole_file(file: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """A file to write into; it takes the name when everything is written.

    Written beside its target and put there in one step, so that a kill or a full disk leaves the
    old one as it was. A link stays a link; what it points to is written. New files get the rights
    that the umask leaves, others keep theirs. ``durable`` waits until the disk has it, so that a
    power cut leaves the old file or the new one.
    """
    target = refuse_special(file)
    work = target.with_name(f".{target.name[:_NAME]}.{uuid4().hex[:12]}")
    make_folder(target.parent)
    try:
        with open(work, "xb") as out:
            if target.exists():
                os.fchmod(out.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield out
            out.flush()
            if durable:
                os.fsync(out.fileno())
        work.replace(target)
    except OSError as error:
        raise RpmsError(f"cannot write {file}: {reason_of(error)}") from error
    finally:
        work.unlink(missing_ok=True)


def write_whole(file: Path, data: str | bytes, durable: bool = False) -> None:
    """The same for what is at hand; half a character becomes a question mark."""
    with whole_file(file, durable) as out:
        out.write(data if isinstance(data, bytes) else data.encode("utf-8", "replace"))
