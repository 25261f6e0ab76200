"""The run folder: its layout, reading it, and writing it so that a kill loses nothing.

Tables and pages are made from these files alone, so that a run can be analysed on another machine,
without the games or the model. A run may be unfinished or killed: the finished episodes are read,
an incomplete last line is ignored, and damaged lines are counted and left out. An invalid manifest
is an error. A missing or damaged step log is no error: the episode counts, its steps are left out,
and tables report the number of such logs.

One process writes a folder at a time. A result is one line, appended and synced to disk. A kill may
leave an incomplete last line, which the next session cuts off.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
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
from rpms.vocabulary.safe_text import slug
from rpms.vocabulary.turn import EpisodeRecord

MANIFEST = "manifest.json"
EPISODES = "episodes.jsonl"
STEPS = "steps"
LOCK = ".lock"
POLL_S = 0.02

AnEpisode = TypeVar("AnEpisode", bound=Episode)


@lru_cache(maxsize=65_536)
def step_log_file(folder: Path, condition: str, task: str, repeat: int = 1, trial: int = 1) -> Path:
    suffix = "" if repeat == trial == 1 else f".{repeat}.{trial}"
    return folder / STEPS / slug(condition) / f"{slug(task)}{suffix}.json.gz"


@dataclass(frozen=True)
class Run:
    """A run folder in memory, with the latest line of every episode.

    Attributes:
        folder: the run folder; of joined runs the first one.
        manifest: its manifest.
        episodes: the finished episodes, in the order of tasks and conditions.
        torn: the last line of the episodes' file is incomplete.
        damaged: the numbers of the lines that cannot be read.
        parts: the joined runs (``joined_runs.py``); empty for a single run.
        origins: of joined runs, each condition's run folder and its label there.
        pooled: the parts are runs of one experiment (``experiment.py``). The episodes of one task
            in all parts are its repeats here: those of the first part, then those of the next.
        against: the arms that the reader compares all others with; empty for the default pairs.
    """

    folder: Path
    manifest: Manifest
    episodes: Mapping[JobKey, Episode]
    torn: bool = False
    damaged: tuple[int, ...] = ()
    parts: tuple[Run, ...] = ()
    origins: Mapping[str, tuple[Path, str]] = field(default_factory=dict)
    pooled: bool = False
    against: tuple[str, ...] = ()

    @property
    def conditions(self) -> list[str]:
        """Labels in the order of the plan."""
        return list(self.manifest.conditions)

    @property
    def trials(self) -> int:
        """The maximal number of trials of a task."""
        return int(self.manifest.settings.get("trials") or 1)

    @property
    def repeats(self) -> int:
        """The number of repeats of each task, over all runs of an experiment."""
        return self.repeats_of_part * (len(self.parts) if self.pooled else 1)

    @property
    def repeats_of_part(self) -> int:
        """The number of repeats of each task within one run."""
        return int(self.manifest.settings.get("repeats") or 1)

    def part_number(self, episode: Episode) -> int:
        """The index of an episode's run among the runs of an experiment; 0 for a single run."""
        return (episode.repeat - 1) // self.repeats_of_part if self.pooled else 0

    @property
    def planned(self) -> int:
        """The number of episodes of a complete run; the trials of a task count as one.

        The run of a custom agent has no plan: it is complete with the episodes it has.
        """
        if self.manifest.recorded:
            return self.done
        return len(self.manifest.conditions) * sum(self._times.values()) * self.repeats_of_part

    @cached_property
    def _times(self) -> dict[str, int]:
        """How many runs of an experiment have planned each task."""
        if not self.pooled:
            return {task.id: 1 for task in self.manifest.tasks}
        planned = Counter(task.id for part in self.parts for task in part.manifest.tasks)
        return {task.id: planned[task.id] for task in self.manifest.tasks}

    @cached_property
    def done(self) -> int:
        """The number of planned episodes that are won or have no trial left."""
        return sum(
            self._last_trial(condition, task.id, repeat) is not None
            for condition in self.conditions
            for task in self.manifest.tasks
            for repeat in range(1, self.repeats + 1)
        )

    @property
    def complete(self) -> bool:
        return self.done >= self.planned

    def played(self, condition: str) -> list[Episode]:
        """A condition's finished episodes, errors included, by task and repeat.

        Of several trials the last one counts.
        """
        episodes = (
            self._last_trial(condition, task.id, repeat)
            for task in self.manifest.tasks
            for repeat in range(1, self.repeats + 1)
        )
        return [episode for episode in episodes if episode]

    def unplayed(self, condition: str) -> int:
        """The number of planned episodes of a condition that are not finished."""
        if self.manifest.recorded:
            return 0
        planned = sum(self._times.values()) * self.repeats_of_part
        return planned - len(self.played(condition))

    def _last_trial(self, condition: str, task: str, repeat: int) -> Episode | None:
        """The final trial of a task; None while another trial is due."""
        for trial in range(self.trials, 0, -1):
            episode = self.episodes.get(JobKey(condition, task, repeat, trial))
            if episode:
                return (
                    episode if episode.success or episode.is_error or trial == self.trials else None
                )
        return None

    def judged(self, condition: str) -> list[Episode]:
        """The finished episodes without an error.

        There is one for each repeat of a task; ``measures.py`` averages over the repeats. Of an
        experiment only the tasks count that every run which has them finished without an error.
        """
        episodes = [episode for episode in self.played(condition) if not episode.is_error]
        if not self.pooled:
            return episodes
        places = {(episode.task, self.part_number(episode)) for episode in episodes}
        finished = Counter(task for task, _ in places)
        return [e for e in episodes if finished[e.task] == self._times[e.task]]

    def settings(self, condition: str) -> Mapping[str, Any]:
        return self.manifest.conditions[condition]

    def model(self, condition: str) -> str:
        return str(self.settings(condition).get("model", self.manifest.model))

    def log_file(self, episode: Episode) -> Path:
        if self.pooled:
            part, before = self.parts[(n := self.part_number(episode))], n * self.repeats_of_part
            number = episode.repeat - before
            return step_log_file(
                part.folder, episode.condition, episode.task, number, episode.trial
            )
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
    # Episodes finish in any order; tables list them in the order of the plan.
    ranks = {label: number for number, label in enumerate(manifest.conditions)}
    ordered = sorted(episodes.values(), key=lambda e: (e.index, ranks[e.condition], e.key[2:]))
    episodes = {episode.key: episode for episode in ordered}
    return Run(folder, manifest, episodes, bool(data) and not data.endswith(b"\n"), tuple(damaged))


def as_folders(folders: str | Path | Iterable[str | Path]) -> list[Path]:
    """One run folder, or several, as paths."""
    chosen = [folders] if isinstance(folders, str | Path) else folders
    if not (paths := [Path(folder) for folder in chosen]):
        raise RpmsError("no folder was given; give one that 'rpms eval' wrote")
    return paths


def read_records(run: Run, conditions: Collection[str]) -> list[EpisodeRecord]:
    """The finished episodes of some conditions with their texts, in file order.

    A later line of the same episode supersedes the earlier one. Episodes that ended in a model or
    infrastructure error are left out.
    """
    file = run.folder / EPISODES
    lines: dict[JobKey, EpisodeLine] = {}
    for number, line in _parse(_data(file), EpisodeLine):
        if not isinstance(line, ValidationError):
            lines[line.key] = line
        elif number not in run.damaged:  # read_run has counted the others
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
    """Line numbers with the episode of the line, or with its error.

    An incomplete last line is skipped.
    """
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        if line.strip():
            try:
                yield number, of.model_validate_json(line)
            except ValidationError as error:
                yield number, error


def read_manifest(folder: Path) -> Manifest:
    file = folder / MANIFEST
    if not is_file(file):
        raise RpmsError(f"no {MANIFEST} in {folder}; give a folder that 'rpms eval' wrote")
    try:
        return Manifest.model_validate_json(read_bytes(file))
    except ValidationError as error:
        raise RpmsError(f"{file}: {first_problem(error)}") from error


def first_problem(error: ValidationError) -> str:
    """The first error of a validation, with the path of the field."""
    first = error.errors()[0]
    path = ".".join(map(str, first["loc"]))
    return f"{path}: {first['msg']}" if path else str(first["msg"])


def read_log(file: Path) -> dict[str, Any] | None:
    """An episode's step log; None if it is missing or damaged, so that tables can go on."""
    try:
        log: dict[str, Any] = parse_json(unpacked(file), str(file))
        check_log(log)
    except (RpmsError, ValueError, KeyError, TypeError, AttributeError):  # also of another shape
        return None
    return log


def unpacked(file: Path) -> bytes:
    """The decompressed log; gzip's checksum detects damage."""
    try:
        return gzip.decompress(read_bytes(file, "the step log"))
    except (OSError, EOFError, zlib.error) as error:
        raise RpmsError(f"{file}: the step log is damaged: {error}") from error


class RunWriter:
    """The only writer of a run folder, which it locks until it is closed."""

    def __init__(self, folder: Path, wait_s: float = 0.0) -> None:
        """Lock the folder; wait up to ``wait_s`` for another process that holds the lock."""
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
                raise RpmsError(
                    f"{folder} is being written by another 'rpms eval'; wait for it to end or give "
                    "another --out"
                )
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
        """Raise an error if the files of a run cannot be read and written in this folder."""
        refuse_special(self.folder / EPISODES)
        for place in (self.folder, self.folder / STEPS):
            try:
                if place.exists():
                    os.listdir(place)
                    with TemporaryFile(dir=place) as file:
                        file.write(b"\n")
            except OSError as error:
                raise RpmsError(f"cannot read and write in {place}: {reason_of(error)}") from error

    def manifest(self) -> Manifest | None:
        """The manifest of an earlier session; None in a new folder."""
        if not (self.folder / MANIFEST).exists():
            return None
        try:
            return read_manifest(self.folder)
        except RpmsError as error:
            raise RpmsError(f"{error}: not a valid manifest; give another --out") from error

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest atomically."""
        data = manifest.model_dump(exclude_unset=True)
        text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
        with self._disk_errors():
            write_whole(self.folder / MANIFEST, text, durable=True)

    def finished(self, of: type[AnEpisode]) -> dict[JobKey, AnEpisode]:
        """The finished episodes, the last line of each; an incomplete last line is cut off.

        Damaged lines are counted in ``damaged``; their episodes are run again. With several
        trials ``of`` is EpisodeLine, because the next trial needs the texts.
        """
        file = self.folder / EPISODES
        data = _data(file)
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with self._disk_errors(), file.open("r+b") as torn:
                torn.truncate(whole)
        return {episode.key: episode for episode in self.lines(of)}

    def lines(self, of: type[AnEpisode]) -> Iterator[AnEpisode]:
        """Every written episode, including those that a later line supersedes."""
        self.damaged = 0
        for _, episode in _parse(_data(self.folder / EPISODES), of):
            if isinstance(episode, ValidationError):
                self.damaged += 1
            else:
                yield episode

    def append(self, line: EpisodeLine, steps: bytes) -> None:
        """Write one finished episode: its step log first, then the line that makes it count."""
        data = memoryview(json_bytes(line.data(), (", ", ": ")) + b"\n")
        with self._disk_errors():
            if steps:
                write_whole(step_log_file(self.folder, *line.key), steps, durable=True)
            if self._lines is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._lines = os.open(refuse_special(self.folder / EPISODES), flags, 0o666)
            while data:
                data = data[os.write(self._lines, data) :]
            os.fsync(self._lines)

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        """A full or missing disk ends the run; finished episodes stay."""
        try:
            yield
        except (OSError, RpmsError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else error
            raise RpmsError(
                f"stopped: cannot write to {self.folder}: {reason}. Finished episodes are kept. "
                "Solve the problem and run the same command again to continue"
            ) from error

    def close(self) -> None:
        """Release the lock of the folder."""
        if self._lines is not None:
            os.close(self._lines)
            self._lines = None
        self._lock.close()
