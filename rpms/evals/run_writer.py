"""Writing a run folder so that a kill at any moment loses nothing that was finished.

One process writes a folder at a time. A result is one line, appended and forced to disk at
once; what a kill may leave behind is a torn last line, which is cut off before going on.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rpms.evals.plan import Ending
from rpms.evals.run_files import Episode, Manifest, first_problem
from rpms.evals.run_layout import DROPPED, EPISODES, MANIFEST, JobKey, key_of, step_log_file
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import (
    make_folder,
    parse_json,
    read_bytes,
    reason_of,
    refuse_special,
    write_whole,
)

LOCK = ".lock"


class RunWriter:
    """The only writer of a run folder, from opening to closing it."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; refused while another process is writing it."""
        self.folder = folder
        make_folder(folder)
        try:
            self._lock = refuse_special(folder / LOCK).open("w")
        except OSError as error:
            raise RpmsError(f"cannot write to {folder}: {reason_of(error)}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise RpmsError(f"{folder} is being written by another 'rpms eval'") from error
        self._lines: int | None = None
        self.damaged = 0

    def manifest(self) -> dict[str, Any] | None:
        """What an earlier session wrote, if there was one."""
        file = self.folder / MANIFEST
        if not file.exists():
            return None
        try:
            found: dict[str, Any] = parse_json(read_bytes(file), str(file))
            Manifest.model_validate(found)
        except (RpmsError, ValidationError) as error:
            told = first_problem(error) if isinstance(error, ValidationError) else error
            raise RpmsError(f"{file}: not a manifest ({told}); give another --out") from error
        return found

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Put the whole manifest in its place in one step."""
        text = json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
        with self._kept():
            write_whole(self.folder / MANIFEST, text, durable=True)

    def finished(self, whole_lines: bool = False) -> dict[JobKey, Ending]:
        """How each finished episode ended, the last line counting; a torn line is cut off.

        A damaged line tells of no episode, so that its episode is played again; ``damaged`` counts
        them. ``whole_lines`` keeps the lines themselves, for runs in which further trials follow.
        """
        file = self.folder / EPISODES
        if not file.exists():
            return {}
        data = read_bytes(file)
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self._kept(), file.open("r+b") as torn:
                torn.truncate(len(whole))
        found: dict[JobKey, Ending] = {}
        for episode in self.lines():
            mode = episode["failure_mode"]
            found[key_of(episode)] = Ending(mode, episode if whole_lines else None)
        return found

    def drop(self, arms: Collection[str]) -> None:
        """Take the episodes of some arms out of the run; their lines stay, in a file of their own.

        What they cost was spent all the same.
        """
        file = self.folder / EPISODES
        if not (arms and file.exists()):
            return
        sides: dict[bool, list[bytes]] = {True: [], False: []}
        for line in read_bytes(file).splitlines(keepends=True):
            sides[_arm_of(line) in arms].append(line)
        with self._kept():
            with refuse_special(self.folder / DROPPED).open("ab") as dropped:
                dropped.writelines(sides[True])
                os.fsync(dropped.fileno())
            write_whole(file, b"".join(sides[False]), durable=True)

    def lines(self, name: str = EPISODES) -> Iterator[dict[str, Any]]:
        """Every episode that was written, also those that a later line supersedes."""
        file = self.folder / name
        self.damaged = 0
        if not file.exists():
            return
        for line in filter(bytes.strip, read_bytes(file).split(b"\n")):
            try:
                Episode.model_validate_json(line)
                episode = parse_json(line, "")
            except (ValidationError, RpmsError):
                episode = {"carried": None}
            if isinstance(episode.get("carried", {}), dict):
                yield episode
            else:
                self.damaged += 1

    def append(self, line: dict[str, Any], steps: bytes) -> None:
        """Keep one finished episode: its steps first, then the line that makes it count."""
        data = memoryview(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        with self._kept():
            if steps:
                write_whole(step_log_file(self.folder, *key_of(line)), steps, durable=True)
            if self._lines is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._lines = os.open(refuse_special(self.folder / EPISODES), flags, 0o666)
            while data:
                data = data[os.write(self._lines, data) :]
            os.fsync(self._lines)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """A disk that is full, or gone, ends the run; what was finished before stays."""
        try:
            yield
        except (OSError, RpmsError) as error:
            told = reason_of(error) if isinstance(error, OSError) else error
            raise RpmsError(
                f"stopped: cannot write to {self.folder}: {told}; what is finished is kept. When "
                "that is mended, run the same command again to go on"
            ) from error

    def close(self) -> None:
        """Let the folder go."""
        if self._lines is not None:
            os.close(self._lines)
            self._lines = None
        self._lock.close()


def _arm_of(line: bytes) -> str:
    """A damaged line is nobody's, and stays where it is."""
    try:
        return str(parse_json(line, "")["condition"])
    except (RpmsError, LookupError, TypeError):
        return ""
