"""A run folder in formats that other tools read: one JSON document for each episode.

Everything goes to files and nothing is sent anywhere. Episodes are read, written and forgotten
one by one, so that a run of any size needs the memory of one episode.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rpms.evals.distilling import refuse_judged
from rpms.evals.export.atif import trajectory
from rpms.evals.export.chat import Per, Written, lesson_of, write_chat
from rpms.evals.export.played import Played
from rpms.evals.labels import find_label
from rpms.evals.log_files import read_log
from rpms.evals.run_files import Run
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import whole_file

ATIF, CHAT = "atif", "chat"
"""A document for each episode; and lines to learn from, of won episodes only: ``export_chat``."""


class Exported(NamedTuple):
    """What was written, and how many episodes have no step log that can be read."""

    episodes: int
    without_log: int


def export_run(
    run: Run, format: str, out: Path, conditions: Collection[str] = (), prompts: bool = False
) -> Exported:
    """Write the episodes of a run: JSON lines, or a folder where ``out`` has no suffix.

    ``conditions`` names those to write, all by default; ``prompts`` adds every prompt as it was
    sent, which is most of the bytes.
    """
    if format != ATIF:
        raise RpmsError(f"unknown format '{format}'; choose from {ATIF}, {CHAT}")
    found = Counted(run, _known(run, conditions) or run.conditions, prompts)
    if out.suffix:
        _write_lines(out, map(trajectory, found))
    else:
        for played in found:
            _write_lines(out / f"{played.name}.json", [trajectory(played)])
    return Exported(found.episodes, found.without_log)


def export_chat(
    run: Run,
    out: Path,
    conditions: Collection[str] = (),
    per: Per = "decision",
    tell: Callable[[Written], None] = lambda _: None,
    most: int = 0,
) -> Written:
    """Write the won episodes of a run as training data."""
    conditions = _known(run, conditions)
    refuse_judged(run.manifest.env, run.manifest.split)
    found = Counted(run, conditions or run.conditions, prompts=True)
    return write_chat(map(lesson_of, found), out, per, tell, most)


def _known(run: Run, typed: Collection[str]) -> Collection[str]:
    conditions = [find_label(one, run.conditions) for one in typed]
    if unknown := set(conditions) - set(run.conditions):
        raise RpmsError(
            f"no condition '{min(unknown)}' in {run.folder}; it has {', '.join(run.conditions)}"
        )
    return conditions


class Counted:
    """The episodes of some conditions with their logs, one at a time, counted on the way."""

    def __init__(self, run: Run, conditions: Collection[str], prompts: bool) -> None:
        """Nothing is read yet."""
        self.run, self.conditions, self.prompts = run, conditions, prompts
        self.episodes = self.without_log = 0

    def __iter__(self) -> Iterator[Played]:
        """Those that have a log with a step in it."""
        for episode in self.run.episodes.values():
            if episode.condition not in self.conditions:
                continue
            log = read_log(self.run.log_file(episode))
            if log and log["steps"]:
                self.episodes += 1
                yield Played(self.run, episode, log, self.prompts)
            else:
                self.without_log += 1


def _write_lines(file: Path, documents: Iterable[dict[str, Any]]) -> None:
    """Whole or not at all."""
    with whole_file(file) as lines:
        for document in documents:
            # Plain ASCII: some readers take a line separator inside a text for a line's end.
            lines.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")
