"""Finished episodes as data: one JSON line each, enough to learn from and to look into."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rpms.nodes.state import EpisodeOutput
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import ERRORS

FILE = "episodes.jsonl"


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
    failure_mode: NotRequired[str | None]


_ADAPTER: TypeAdapter[EpisodeRecord] = TypeAdapter(EpisodeRecord)


def record_of(result: EpisodeOutput, env: str, split: str) -> dict[str, Any]:
    """An episode's output as the line that goes to disk."""
    return {
        "env": env,
        "split": split,
        "task": result["task_id"],
        **{key: value for key, value in result.items() if key not in ("task_id", "goal")},
        "goal": result["goal"]["sentence"],
    }


def append_record(file: Path, record: dict[str, Any]) -> None:
    """Add one line; a whole line or none reaches the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_records(folder: Path) -> list[EpisodeRecord]:
    """Every episode of a run folder (or of the folders below it), in file order.

    Within one file a later line of the same condition and task supersedes the earlier one, and
    what ended in a model or infrastructure error teaches nothing about the world.
    """
    files = [folder] if folder.is_file() else sorted(folder.rglob(FILE))
    if not files:
        raise RpmsError(
            f"no {FILE} in {folder}; give a folder that 'rpms eval' or 'rpms learn' wrote"
        )
    return [record for file in files for record in _latest(file)]


def _latest(file: Path) -> list[EpisodeRecord]:
    found = {(record.get("condition", ""), record["task"]): record for record in _read(file)}
    return [record for record in found.values() if record.get("failure_mode") not in ERRORS]


def _read(file: Path) -> Iterator[EpisodeRecord]:
    lines = file.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            yield _ADAPTER.validate_json(line)
        except ValidationError as error:
            if number == len(lines):
                return  # no line end: the writer was killed in the middle of it
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise RpmsError(f"{file}:{number}: {where}: {first['msg']}") from error
