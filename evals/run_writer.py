"""Writing a run folder so that a kill at any moment loses nothing that was finished.

One process writes a folder at a time. A result is one line, appended and forced to disk at
once; what a kill may leave behind is a torn last line, which is cut off before going on.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rpms.evals.plan import Ending
from rpms.evals.run_layout import EPISODES, MANIFEST, JobKey, key_of, step_log_file
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.folders import usual_mode

LOCK = ".lock"


class RunWriter:
    """The only writer of a run folder, from opening to closing it."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; refused while another process is writing it."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / LOCK).open("w")
        except OSError as error:
            raise RpmsError(f"cannot write to {folder}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise RpmsError(f"{folder} is being written by another 'rpms eval'") from error
        self._lines: int | None = None

    def manifest(self) -> dict[str, Any] | None:
        """What an earlier session wrote, if there was one."""
        file = self.folder / MANIFEST
        if not file.exists():
            return None
        try:
            found = json.loads(file.read_bytes())
        except (OSError, ValueError) as error:
            raise RpmsError(f"{file}: not a manifest ({error}); give another --out") from error
        if not isinstance(found, dict) or found.get("format") != 1:
            raise RpmsError(f"{file}: not a manifest of format 1; give another --out")
        return found

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Put the whole manifest in its place in one step."""
        text = json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
        _replace(self.folder / MANIFEST, text.encode())

    def finished(self, whole_lines: bool = False) -> dict[JobKey, Ending]:
        """How each finished episode ended, the last line counting; a torn line is cut off.

        ``whole_lines`` keeps the lines themselves, for runs in which further trials follow.
        """
        file = self.folder / EPISODES
        if not file.exists():
            return {}
        data = file.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with file.open("r+b") as torn:
                torn.truncate(len(whole))
        found: dict[JobKey, Ending] = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                episode = json.loads(line)
                mode = episode["failure_mode"]
                found[key_of(episode)] = Ending(mode, episode if whole_lines else None)
            except (ValueError, KeyError, TypeError) as error:
                raise RpmsError(f"{file}:{number}: not an episode ({error!r})") from error
        return found

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every episode that was written, also those that a later line supersedes."""
        file = self.folder / EPISODES
        if file.exists():
            with file.open("rb") as text:
                yield from map(json.loads, text)

    def append(self, line: dict[str, Any], steps: bytes) -> None:
        """Keep one finished episode: its steps first, then the line that makes it count."""
        if steps:
            _replace(step_log_file(self.folder, *key_of(line)), steps)
        if self._lines is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._lines = os.open(self.folder / EPISODES, flags, 0o666)
        data = memoryview(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        while data:
            data = data[os.write(self._lines, data) :]
        os.fsync(self._lines)

    def close(self) -> None:
        """Let the folder go."""
        if self._lines is not None:
            os.close(self._lines)
            self._lines = None
        self._lock.close()


def _replace(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, usual_mode())
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
