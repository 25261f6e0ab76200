"""Files that others wrote, files that we write, and paths as people write them.

A file that cannot be read is an error of one line; its content is the caller's to check. A file
that we write is whole or not there at all.
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

YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The C loader is ten times as fast; PyYAML's wheels include it."""
NOT_THERE = (0, 0)
_NAME = 100


def expanded(text: str, what: str) -> Path:
    """Expand ``~`` in a path; ``what`` names its setting in the error."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # no such user, or one without a home
        raise RpmsError(f"{what}: '{text}': {error}; write the path without ~") from error


def path_variable(name: str, usual: str) -> Path:
    """The path that an environment variable names."""
    return expanded(os.environ.get(name) or usual, name)


def cache_dir() -> Path:
    """``$RPMS_CACHE``, else ``rpms`` in the user's cache folder."""
    if os.environ.get("RPMS_CACHE"):
        return path_variable("RPMS_CACHE", "")
    return path_variable("XDG_CACHE_HOME", "~/.cache") / "rpms"


# Those of ``Path`` raise an error for an impossible name.
is_file, is_folder = os.path.isfile, os.path.isdir


def stamp_of(file: Path) -> tuple[int, int]:
    """A stamp that changes with a file's content; the same for all missing files."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return NOT_THERE
    return status.st_mtime_ns, status.st_size


def reason_of(error: OSError | ValueError | RecursionError) -> str:
    """Why a file could not be used, in a few words."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "no file can have such a name"


@contextmanager
def _in_one_line(cannot: str) -> Iterator[None]:
    """Report what the system or ``pathlib`` (an impossible name, a very long path) refuses."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        raise RpmsError(f"cannot {cannot}: {reason_of(error)}") from error


def open_file(file: Path, what: str = "") -> BinaryIO:
    """A file to read from; ``what`` names its purpose in the error."""
    with _in_one_line(f"read {what} {file}" if what else f"read {file}"):
        return file.open("rb")


def read_bytes(file: Path, what: str = "") -> bytes:
    with open_file(file, what) as stream, _in_one_line(f"read {file}"):
        return stream.read()


def read_text(file: Path, what: str = "") -> str:
    try:
        return read_bytes(file, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RpmsError(f"cannot read {file}: it is not UTF-8 text") from error


def parse_json(data: bytes | str, where: str) -> Any:
    """Parse JSON; nan, half characters and very deep nesting are errors."""
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise RpmsError(f"{where}: not JSON: {error}") from error


def json_bytes(data: Any, separators: tuple[str, str] = (",", ":")) -> bytes:
    """Write data as JSON, whatever a tool or a model returned.

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
        return yaml.compose(text, Loader=YAML_LOADER), yaml.load(text, Loader=YAML_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = min(mark.line, text.count("\n")) + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RpmsError(f"{file}:{line}: not valid YAML: {problem}") from None
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        # What PyYAML says of a text that is no number or date though its tag or form says so.
        raise RpmsError(f"{file}: a value in it does not fit its type: {error}") from None


def refuse_special(file: Path) -> Path:
    """Resolve the target of a file to write; a device, a pipe or a folder is an error.

    Call it before hours of work that end in one file.
    """
    with _in_one_line(f"write {file}"):
        target = Path(os.path.realpath(file))
        try:
            plain = stat.S_ISREG(target.stat().st_mode)
        except FileNotFoundError:
            return target
    if not plain:
        raise RpmsError(f"cannot write {file}: it is no plain file; give another name")
    return target


def make_folder(folder: Path) -> None:
    with _in_one_line(f"write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def whole_file(file: Path, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write into; it gets its name when everything is written.

    A kill or a full disk leaves the old file, as does a power cut with ``durable``. A link stays a
    link; what it points to is written. New files get the rights of the umask, others keep theirs.
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
    """Write a whole file at once; half a character becomes a question mark."""
    with whole_file(file, durable) as out:
        out.write(data if isinstance(data, bytes) else data.encode("utf-8", "replace"))
