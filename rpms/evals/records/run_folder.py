"""A run folder: where things lie in it, reading it, and writing it so that a kill loses nothing.

Tables and pages are made from these files alone, so that a run can be judged on another machine,
without the games or the model that made it. A run may still be going on, or have been killed:
what is there is read, a line torn by a kill is passed over, and so are damaged lines, which are
counted. A manifest that does not fit is refused with its place. A step log that is missing, damaged
or of another form is no reason to refuse a run: its episode counts, its steps are left out, and
whoever prints a table says how many such logs there are.

One process writes a folder at a time. A result is one line, appended and forced to disk at
once; what a kill may leave behind is a torn last line, which is cut off before going on.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import Any, TypeVar

from pydantic import ValidationError

from rpms.evals.records.schema import Episode, EpisodeLine, JobKey, Manifest, check_log
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import (
    is_file,
    json_bytes,
    make_folder,
    parse_json,
    read_bytes,
    reason_of,
    refuse_special,
    write_whole,
)
from rpms.vocabulary.turn import EpisodeRecord

MANIFEST = "manifest.json"
EPISODES = "episodes.jsonl"
STEPS = "steps"
LOCK = ".lock"
POLL_S = 0.02

AnEpisode = TypeVar("AnEpisode", bound=Episode)


def slug(text: str) -> str:
    """A file name for any label or task id; the checksum keeps similar ones apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:80]
    return f"{plain}-{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]}"


def step_log_file(folder: Path, condition: str, task: str, repeat: int = 1, trial: int = 1) -> Path:
    """Where the steps of one episode are."""
    which = "" if repeat == trial == 1 else f".{repeat}.{trial}"
    return folder / STEPS / slug(condition) / f"{slug(task)}{which}.json.gz"


@dataclass(frozen=True)
class Run:
    """A run folder in memory: of every episode the latest line.

    ``torn`` says that the last line has no end; ``damaged`` names the lines that tell of no
    episode, which are left out. ``parts`` are the runs that it was put together from, if it was
    (``joined_runs.py``), and ``origins`` their folder and label of each condition.
    """

    folder: Path
    manifest: Manifest
    episodes: Mapping[JobKey, Episode]
    torn: bool = False
    damaged: tuple[int, ...] = ()
    parts: tuple[Run, ...] = ()
    origins: Mapping[str, tuple[Path, str]] = field(default_factory=dict)

    @property
    def conditions(self) -> list[str]:
        """Labels in the order they were asked for."""
        return list(self.manifest.conditions)

    @property
    def trials(self) -> int:
        """How often a task may be tried."""
        return int(self.manifest.settings.get("trials") or 1)

    @property
    def repeats(self) -> int:
        """How often everything is played."""
        return int(self.manifest.settings.get("repeats") or 1)

    @property
    def planned(self) -> int:
        """How many episodes a complete run has, a task's trials taken as one.

        Nobody planned what an agent of one's own plays: such a run has what is there.
        """
        if self.manifest.recorded:
            return self.done
        return len(self.manifest.conditions) * len(self.manifest.tasks) * self.repeats

    @cached_property
    def done(self) -> int:
        """How many of those are there: won, or tried as often as they may be."""
        return sum(
            self._last(condition, task.id, repeat) is not None
            for condition in self.conditions
            for task in self.manifest.tasks
            for repeat in range(1, self.repeats + 1)
        )

    @property
    def complete(self) -> bool:
        """Whether every episode is there."""
        return self.done >= self.planned

    def played(self, condition: str) -> list[Episode]:
        """A condition's finished episodes, errors included: every repeat of each task in turn.

        Of several trials the last one counts.
        """
        episodes = (
            self._last(condition, task.id, repeat)
            for task in self.manifest.tasks
            for repeat in range(1, self.repeats + 1)
        )
        return [episode for episode in episodes if episode]

    def unplayed(self, condition: str) -> int:
        """How many planned episodes of a condition are not there."""
        if self.manifest.recorded:
            return 0
        return len(self.manifest.tasks) * self.repeats - len(self.played(condition))

    def _last(self, condition: str, task: str, repeat: int) -> Episode | None:
        """The episode that settles a task; None while another trial is to come."""
        for trial in range(self.trials, 0, -1):
            episode = self.episodes.get(JobKey(condition, task, repeat, trial))
            if episode:
                return (
                    episode if episode.success or episode.is_error or trial == self.trials else None
                )
        return None

    def judged(self, condition: str) -> list[Episode]:
        """The played episodes that say something about the agent: those without an error.

        A task has as many as it has repeats; whoever counts tasks takes their mean (measures.py).
        """
        return [episode for episode in self.played(condition) if not episode.is_error]

    def settings(self, condition: str) -> Mapping[str, Any]:
        """What was on under a condition, and how the model was called."""
        return self.manifest.conditions[condition]

    def model(self, condition: str) -> str:
        """The model that played a condition, as the run names it."""
        return str(self.settings(condition).get("model", self.manifest.model))

    def log_file(self, episode: Episode) -> Path:
        """Where the full steps of an episode lie."""
        folder, label = self.origins.get(episode.condition, (self.folder, episode.condition))
        return step_log_file(folder, label, *episode.key[1:])


def read_run(folder: Path) -> Run:
    """The manifest and every finished episode of a run folder."""
    manifest, file = read_manifest(folder), folder / EPISODES
    tasks = {task.id for task in manifest.tasks}
    episodes: dict[JobKey, Episode] = {}
    damaged: list[int] = []
    data = _data(file)
    for number, episode in _parse(data, Episode):
        if isinstance(episode, ValidationError):
            damaged.append(number)
            continue
        if episode.condition not in manifest.conditions or episode.task not in tasks:
            raise RpmsError(
                f"{file}:{number}: condition '{episode.condition}', task '{episode.task}' is not "
                f"in {MANIFEST}; the two files belong to different runs"
            )
        episodes[episode.key] = episode
    # Episodes end in any order; whoever lists them finds tasks and conditions in the plan's order.
    places = {label: number for number, label in enumerate(manifest.conditions)}
    ordered = sorted(episodes.values(), key=lambda e: (e.index, places[e.condition], e.key[2:]))
    episodes = {episode.key: episode for episode in ordered}
    return Run(folder, manifest, episodes, bool(data) and not data.endswith(b"\n"), tuple(damaged))


def as_folders(folders: str | Path | Iterable[str | Path]) -> list[Path]:
    """One run folder, or several, as people name them."""
    chosen = [folders] if isinstance(folders, str | Path) else folders
    if not (paths := [Path(folder) for folder in chosen]):
        raise RpmsError("no folder was given; give one that 'rpms eval' wrote")
    return paths


def read_records(run: Run, conditions: Collection[str]) -> list[EpisodeRecord]:
    """The finished episodes of some conditions of a run with their texts, in file order.

    A later line of the same condition and task supersedes the earlier one, and what ended in a
    model or infrastructure error teaches nothing about the world.
    """
    file = run.folder / EPISODES
    lines: dict[JobKey, EpisodeLine] = {}
    for number, line in _parse(_data(file), EpisodeLine):
        if not isinstance(line, ValidationError):
            lines[line.key] = line
        elif number not in run.damaged:  # those are counted by whoever read the run
            raise RpmsError(f"{file}:{number}: {first_problem(line)}") from line
    return [
        line.record()
        for line in lines.values()
        if line.condition in conditions and not line.is_error
    ]


def _data(file: Path) -> bytes:
    return read_bytes(file) if file.exists() else b""


def _parse(
    data: bytes, of: type[AnEpisode]
) -> Iterator[tuple[int, AnEpisode] | tuple[int, ValidationError]]:
    """Episodes with the numbers of their lines, or what is wrong with a line.

    One without its end was being written when the run was killed; the runner cuts it off.
    """
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        if line.strip():
            try:
                yield number, of.model_validate_json(line)
            except ValidationError as error:
                yield number, error


def read_manifest(folder: Path) -> Manifest:
    """What was run there."""
    file = folder / MANIFEST
    if not is_file(file):
        raise RpmsError(f"no {MANIFEST} in {folder}; give a folder that 'rpms eval' wrote")
    try:
        return Manifest.model_validate_json(read_bytes(file))
    except ValidationError as error:
        raise RpmsError(f"{file}: {first_problem(error)}") from error


def first_problem(error: ValidationError) -> str:
    """What pydantic found first, and where."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def read_log(file: Path) -> dict[str, Any] | None:
    """An episode's step log; None where it is missing or damaged, for tables need not fail."""
    try:
        log: dict[str, Any] = parse_json(unpacked(file), str(file))
        check_log(log)
    except (RpmsError, ValueError):
        return None
    for step in log["steps"]:
        _rename_keys(step)
    return log


RENAMED_KEYS = {"drift": "belief_errors", "unlisted": "truncated"}
RENAMED_VALUES = {
    "unsayable": "not groundable", "merged": "duplicate", "beyond k": "over top-k",
    "budget": "over token budget", "asked_again": "retried", "insisted": "overridden",
    "fell_back": "fallback",
}  # fmt: skip
"""Names in the step logs of earlier versions."""


def _rename_keys(step: dict[str, Any]) -> None:
    for old, new in RENAMED_KEYS.items():
        if old in step:
            step[new] = step.pop(old)
    for recall in step.get("recalls", []):
        recall["dropped_by"] = RENAMED_VALUES.get(recall["dropped_by"], recall["dropped_by"])
    for decision in step.get("decisions", []):
        decision["verdict"] = RENAMED_VALUES.get(decision["verdict"], decision["verdict"])
    if truncated := step.get("truncated"):
        step["truncated"] = {RENAMED_VALUES.get(key, key): truncated[key] for key in truncated}
    if "asked" in step.get("belief", {}):
        step["belief"]["disambiguation"] = step["belief"].pop("asked")


def unpacked(file: Path) -> bytes:
    """The text of a log; the checksum of the format finds any byte that is not as written."""
    try:
        return gzip.decompress(read_bytes(file, "the step log"))
    except (OSError, EOFError, zlib.error) as error:
        raise RpmsError(f"{file}: a damaged step log: {error}") from error


class RunWriter:
    """The only writer of a run folder, from opening to closing it."""

    def __init__(self, folder: Path, wait_s: float = 0.0) -> None:
        """Take the folder; another process that writes it may take ``wait_s`` to let it go."""
        self.folder = folder
        make_folder(folder)
        try:
            self._lock = refuse_special(folder / LOCK).open("w")
        except OSError as error:
            raise RpmsError(f"cannot write to {folder}: {reason_of(error)}") from error
        deadline = monotonic() + wait_s
        while not self._is_locked():
            if monotonic() >= deadline:
                self._lock.close()
                raise RpmsError(f"{folder} is being written by another 'rpms eval'")
            sleep(POLL_S)
        self._lines: int | None = None
        self.damaged = 0

    def _is_locked(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def try_out(self) -> None:
        """Refuse a folder in which the files of a run cannot be read and written."""
        refuse_special(self.folder / EPISODES)
        for place in (self.folder, self.folder / STEPS):
            try:
                if place.exists():
                    os.listdir(place)
                    with TemporaryFile(dir=place) as file:
                        file.write(b"\n")
            except OSError as error:
                raise RpmsError(f"cannot use {place}: {reason_of(error)}") from error

    def manifest(self) -> Manifest | None:
        """What an earlier session wrote, if there was one."""
        if not (self.folder / MANIFEST).exists():
            return None
        try:
            return read_manifest(self.folder)
        except RpmsError as error:
            raise RpmsError(f"{error}: not a manifest; give another --out") from error

    def write_manifest(self, manifest: Manifest) -> None:
        """Put the whole manifest in its place in one step."""
        data = manifest.model_dump(exclude_unset=True)
        text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
        with self._or_stop():
            write_whole(self.folder / MANIFEST, text, durable=True)

    def finished(self, of: type[AnEpisode]) -> dict[JobKey, AnEpisode]:
        """Each finished episode, the last line counting; a torn line is cut off.

        A damaged line tells of no episode, so that its episode is played again; ``damaged`` counts
        them. Where further trials follow, whole lines are asked for.
        """
        file = self.folder / EPISODES
        data = _data(file)
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with self._or_stop(), file.open("r+b") as torn:
                torn.truncate(whole)
        return {episode.key: episode for episode in self.lines(of)}

    def lines(self, of: type[AnEpisode]) -> Iterator[AnEpisode]:
        """Every episode that was written, also those that a later line supersedes."""
        self.damaged = 0
        for _, episode in _parse(_data(self.folder / EPISODES), of):
            if isinstance(episode, ValidationError):
                self.damaged += 1
            else:
                yield episode

    def append(self, line: EpisodeLine, steps: bytes) -> None:
        """Keep one finished episode: its steps first, then the line that makes it count."""
        data = memoryview(json_bytes(line.data(), (", ", ": ")) + b"\n")
        with self._or_stop():
            if steps:
                write_whole(step_log_file(self.folder, *line.key), steps, durable=True)
            if self._lines is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._lines = os.open(refuse_special(self.folder / EPISODES), flags, 0o666)
            while data:
                data = data[os.write(self._lines, data) :]
            os.fsync(self._lines)

    @contextmanager
    def _or_stop(self) -> Iterator[None]:
        """A disk that is full, or gone, ends the run; what was finished before stays."""
        try:
            yield
        except (OSError, RpmsError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else error
            raise RpmsError(
                f"stopped: cannot write to {self.folder}: {reason}; what is finished is kept. When "
                "that is mended, run the same command again to go on"
            ) from error

    def close(self) -> None:
        """Let the folder go."""
        if self._lines is not None:
            os.close(self._lines)
            self._lines = None
        self._lock.close()
