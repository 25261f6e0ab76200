"""Finished episodes with their texts, as learning reads them from a run folder."""

from __future__ import annotations

from collections.abc import Collection
from typing import NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rpms.evals.run_files import Run
from rpms.evals.run_layout import EPISODES
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import ERRORS


class RecordedTurn(TypedDict):
    """The part of a turn that learning reads; logs may hold more."""

    __pydantic_config__ = ConfigDict(extra="ignore")  # type: ignore[misc]

    action: str
    observation: str
    failed: bool


class EpisodeRecord(TypedDict):
    """One finished episode.

    Attributes:
        env: the environment.
        split: the list the task belongs to.
        task: its id.
        goal: the task sentence.
        first_observation: o_0.
        success: whether it was won.
        score: the final score, where the run recorded one.
        history: the turns.
        condition: the label it was played under.
        failure_mode: how it ended, if not by success.
    """

    __pydantic_config__ = ConfigDict(extra="ignore")  # type: ignore[misc]

    env: str
    split: str
    task: str
    goal: str
    first_observation: str
    success: bool
    score: NotRequired[float]
    history: list[RecordedTurn]
    condition: NotRequired[str]
    repeat: NotRequired[int]
    trial: NotRequired[int]
    failure_mode: NotRequired[str | None]


_ADAPTER: TypeAdapter[EpisodeRecord] = TypeAdapter(EpisodeRecord)


def read_records(run: Run, conditions: Collection[str]) -> list[EpisodeRecord]:
    """The finished episodes of some conditions of a run, in file order.

    A later line of the same condition and task supersedes the earlier one, and what ended in a
    model or infrastructure error teaches nothing about the world.
    """
    file = run.folder / EPISODES
    lines = file.read_text(encoding="utf-8").split("\n") if file.is_file() else [""]
    found: dict[tuple[str, str, int, int], EpisodeRecord] = {}
    # What follows the last line end was being written when the run was killed.
    for number, line in enumerate(lines[:-1], start=1):
        if line.strip():
            record = _record(line, f"{file}:{number}")
            which = record.get("repeat", 1), record.get("trial", 1)
            found[record["condition"], record["task"], *which] = record
    return [
        record
        for (condition, *_), record in found.items()
        if condition in conditions and record["failure_mode"] not in ERRORS
    ]


def _record(line: str, where: str) -> EpisodeRecord:
    try:
        return _ADAPTER.validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise RpmsError(f"{where}: {field}: {first['msg']}") from error
