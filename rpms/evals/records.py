"""Finished episodes with their texts, as learning reads them from a run folder."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import TypeAdapter, ValidationError

from rpms.evals.run_files import Run
from rpms.evals.run_layout import EPISODES, JobKey, key_of
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import read_bytes
from rpms.vocabulary.turn import ERRORS, EpisodeRecord

_ADAPTER: TypeAdapter[EpisodeRecord] = TypeAdapter(EpisodeRecord)


def read_records(run: Run, conditions: Collection[str]) -> list[EpisodeRecord]:
    """The finished episodes of some conditions of a run, in file order.

    A later line of the same condition and task supersedes the earlier one, and what ended in a
    model or infrastructure error teaches nothing about the world.
    """
    file = run.folder / EPISODES
    lines = read_bytes(file).split(b"\n") if file.exists() else [b""]
    found: dict[JobKey, EpisodeRecord] = {}
    # What follows the last line end was being written when the run was killed; damaged lines are
    # counted by whoever read the run.
    for number, line in enumerate(lines[:-1], start=1):
        if line.strip() and number not in run.damaged:
            record = _record(line, f"{file}:{number}")
            found[key_of(record)] = record
    return [
        record
        for key, record in found.items()
        if key.condition in conditions and record["failure_mode"] not in ERRORS
    ]


def _record(line: bytes, where: str) -> EpisodeRecord:
    try:
        return _ADAPTER.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise RpmsError(f"{where}: {field}: {first['msg']}") from error
