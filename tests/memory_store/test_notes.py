"""Files of notes: of one method and one world, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.memory_store import (
    Header,
    Note,
    controlled_notes,
    load_index,
    read_header,
    read_notes,
    read_snapshot,
    write_notes,
    write_snapshot,
)
from rpms.memory_store.controls import Control
from rpms.vocabulary.errors import RpmsError

NOTES = [
    Note(id=f"n{n}", kind="insight", text=f"text {n}", goal=f"goal {n}", goal_type=f"type {n % 3}")
    for n in range(9)
]
HEADER = Header(env="alfworld", entries=0, counts={}, method="expel", written_by="openai:x")


def test_written_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "m.jsonl"
    header = write_notes(file, HEADER, NOTES)
    assert header.entries == 9 and header.counts == {"insight": 9} and read_header(file) == header
    assert read_notes(file, "alfworld", "expel") == NOTES
    assert [one.name for one in file.parent.iterdir()] == ["m.jsonl"]


def test_a_file_of_another_method_or_world_is_refused(tmp_path: Path) -> None:
    file, own = tmp_path / "m.jsonl", tmp_path / "own.jsonl"
    write_notes(file, HEADER, NOTES)
    write_snapshot(own, "alfworld", [])
    assert b"method" not in own.read_bytes()
    for read in (
        lambda: read_notes(file, "alfworld", "awm"),
        lambda: read_snapshot(file),
        lambda: load_index(file, "alfworld"),
    ):
        with pytest.raises(RpmsError, match=r"m.jsonl:1: a memory of the method 'expel', not of"):
            read()
    with pytest.raises(RpmsError, match="a memory of the method 'rpms', not of 'expel'"):
        read_notes(own, "alfworld", "expel")
    with pytest.raises(RpmsError, match="learned in alfworld, not in scienceworld"):
        read_notes(file, "scienceworld", "expel")


@pytest.mark.parametrize("damage", [b'{"id": "x"}\n', b"not json\n", b'{"id": "x", "kind'])
def test_a_damaged_line_is_refused_with_its_number(tmp_path: Path, damage: bytes) -> None:
    file = tmp_path / "m.jsonl"
    write_notes(file, HEADER, NOTES)
    file.write_bytes(file.read_bytes() + damage)
    with pytest.raises(RpmsError, match=r"m.jsonl:11: "):
        read_notes(file, "alfworld", "expel")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "m.jsonl"
    write_notes(file, HEADER, NOTES[:1])
    full = OSError(28, "full")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(RpmsError, match=r"cannot write .*m\.jsonl: full"):
        write_notes(file, HEADER, NOTES)
    assert len(read_notes(file, "alfworld", "expel")) == 1 and len([*tmp_path.iterdir()]) == 1


def test_controls() -> None:
    assert controlled_notes(NOTES, "none") == controlled_notes(NOTES, "filler") == NOTES
    assert controlled_notes(NOTES, "empty") == []
    shuffled = controlled_notes(NOTES, "shuffled", 1)
    assert shuffled != NOTES and shuffled == controlled_notes(NOTES, "shuffled", 1)
    assert sorted(note.goal for note in shuffled) == sorted(note.goal for note in NOTES)
    types = {note.id: note.goal_type for note in NOTES}
    wrong = controlled_notes(NOTES, "irrelevant", 1)
    assert wrong and all(note.goal_type != types[note.id] for note in wrong)
    with pytest.raises(RpmsError, match="for the method 'rpms' alone"):
        controlled_notes(NOTES, "corrupted")


@given(st.sampled_from([c for c in get_args(Control) if c != "corrupted"]), st.integers(0, 99))
def test_no_control_writes_a_text(control: Control, seed: int) -> None:
    texts = {note.text for note in NOTES}
    assert {note.text for note in controlled_notes(NOTES, control, seed)} <= texts
