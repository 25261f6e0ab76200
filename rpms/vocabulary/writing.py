"""Files that we write: whole or not at all, and never in the place of something else.

A file is written beside its target and put there in one step, so that a kill or a full disk
leaves the old one as it was. That step replaces whatever has the name: a device or a pipe would
be gone, so only plain files are written. A link stays a link; what it points to is written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from rpms.vocabulary.errors import RpmsError

# Their entries lead to devices and to streams of this process, even where they look like files.
_NOT_FOR_FILES = (Path("/dev"), Path("/proc"), Path("/sys"))
_FOR_FILES = Path("/dev/shm")
_NAME = 100


def reason_of(error: OSError | ValueError) -> str:
    """Why a file could not be used, in a few words."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "no file can have such a name"


def refuse_special(file: Path) -> Path:
    """Where a file will lie, links followed; a device, a pipe or a folder is refused.

    Worth asking before hours of work whose end is one file. A link to an open stream names what
    the stream has long lost (``/tmp/#7 (deleted)``), so the file itself is asked, not that name.
    """
    try:
        target = Path(os.path.realpath(file))
        into = Path(os.path.realpath(file.parent))
        found = file.stat().st_mode
        plain = stat.S_ISREG(found) and target.exists() and target.samefile(file)
    except FileNotFoundError:
        found, plain = stat.S_IFREG, True
    except (OSError, ValueError) as error:
        raise RpmsError(f"cannot write {file}: {reason_of(error)}") from error
    if stat.S_ISDIR(found):
        raise RpmsError(f"cannot write {file}: it is a folder; give a file")
    if not plain or _of_the_system(into) or _of_the_system(target):
        raise RpmsError(f"cannot write {file}: it is a device or a pipe; give a plain file")
    return target


def _of_the_system(place: Path) -> bool:
    within = any(place.is_relative_to(system) for system in _NOT_FOR_FILES)
    return within and not place.is_relative_to(_FOR_FILES)


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

    New files get the rights that the umask leaves, others keep theirs. ``durable`` waits until the
    disk has it, so that a power cut leaves the old file or the new one.
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
