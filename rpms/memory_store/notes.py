"""Notes: what other methods keep, a text each, in a frozen file of the same form as our own.

One JSON header line that names method and world, then one note per line.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from rpms.memory_store.controls import Control
from rpms.memory_store.snapshot import Header, check_header, read_lines, write_lines
from rpms.vocabulary.errors import RpmsError


class Note(BaseModel):
    """One text and where it belongs.

    Attributes:
        id: unique within the file.
        kind: what its method calls it: insight, workflow, trajectory.
        text: as the prompt prints it.
        goal: the task sentence it was learned from; empty if it is about all tasks.
        goal_type: the type of that task.
        votes: how often it was held to be right, where the method counts that.
        actions: the commands it advises; None if they have to be read from its text.
        state_signature: the state it was recorded in, where it is about one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    text: str = Field(min_length=1)
    goal: str = ""
    goal_type: str = ""
    votes: int = 0
    actions: list[str] | None = None
    state_signature: str | None = None


_ADAPTER: TypeAdapter[Note] = TypeAdapter(Note)


def write_notes(file: Path, header: Header, notes: Sequence[Note]) -> Header:
    """Write a whole file of notes; the header's counts are made here."""
    counts = Counter(note.kind for note in notes)
    whole = header.model_copy(
        update={"entries": len(notes), "counts": dict(sorted(counts.items()))}
    )
    rows = (note.model_dump(mode="json", exclude_defaults=True) for note in notes)
    write_lines(file, whole.model_dump_json(), rows)
    return whole


def read_notes(file: Path, env: str, method: str) -> list[Note]:
    """Every note; a file of another world or method, or a wrong line, is refused."""
    rows = read_lines(file, _ADAPTER)
    header = next(rows)
    assert isinstance(header, Header)
    check_header(file, header, env, method)
    return [note for _, note in rows]


def controlled_notes(notes: Sequence[Note], control: Control, seed: int = 0) -> list[Note]:
    """The notes as a control has them (see ``controls``); filler is put in where they are printed.

    Notes are free text, which cannot be made wrong by rule: ``corrupted`` is refused.
    """
    if control == "corrupted":
        raise RpmsError("memory_control 'corrupted' is for the method 'rpms' alone")
    if control == "empty":
        return []
    if control not in ("shuffled", "irrelevant"):
        return list(notes)
    chance = random.Random(seed)
    places = [(note.goal, note.goal_type) for note in notes]
    chance.shuffle(places)
    moved = [
        note.model_copy(update={"goal": goal, "goal_type": kind})
        for note, (goal, kind) in zip(notes, places, strict=True)
    ]
    if control == "shuffled":
        return moved
    pairs = zip(notes, moved, strict=True)
    return [new for old, new in pairs if old.goal_type != new.goal_type]
