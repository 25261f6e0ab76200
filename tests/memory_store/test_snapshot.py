"""Files of entries and of notes: of one world and one method, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rpms.memory_store import (
    Header,
    Note,
    parse_entry,
    read_header,
    read_notes,
    read_snapshot,
    write_snapshot,
)
from rpms.vocabulary.errors import RpmsError

NOTES = [Note(id=f"n{n}", kind="insight", text=f"text {n}", goal=f"goal {n}") for n in range(4)]


@pytest.fixture
def snapshot(tmp_path: Path, paper_entries: list[dict[str, Any]]) -> Path:
    file = tmp_path / "memory.jsonl"
    write_snapshot(file, "alfworld", [parse_entry(data) for data in paper_entries], ["a test"], 1)
    return file


def write(file: Path, notes: list[Note]) -> Header:
    return write_snapshot(file, "alfworld", notes, method="expel", written_by="openai:x")


def test_the_papers_entries_survive_a_round_trip(paper_entries: list[dict[str, Any]]) -> None:
    for data in paper_entries:
        entry = parse_entry(data)
        again = entry.model_dump(mode="json")
        assert {key: again[key] for key in data} == data
        assert parse_entry(again) == entry
    del paper_entries[3]["retrieval_weight"]  # a critical failure weighs double
    assert parse_entry(paper_entries[3]).retrieval_weight == 2.0
    assert parse_entry(paper_entries[1]).retrieval_weight == 1.0


@pytest.mark.parametrize(
    ("field", "value"),
    [("actions", []), ("success_count", 0), ("type", "sucess"), ("unknown", 1), ("id", "")],
)
def test_wrong_fields_are_refused(
    paper_entries: list[dict[str, Any]], field: str, value: object
) -> None:
    with pytest.raises(ValidationError):
        parse_entry({**paper_entries[0], field: value})


def test_a_snapshot_reads_back(snapshot: Path, paper_entries: list[dict[str, Any]]) -> None:
    header, entries = read_snapshot(snapshot)
    assert header.entries == 4 and header.env == "alfworld" and header.sources == ["a test"]
    assert header.counts == {"critical_failure": 1, "failure": 1, "schema": 1, "success": 1}
    assert b"method" not in snapshot.read_bytes()
    assert [entry.id for entry in entries] == [data["id"] for data in paper_entries]


def test_so_do_notes(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "m.jsonl"
    header = write(file, NOTES)
    assert header.entries == 4 and header.counts == {"insight": 4} and read_header(file) == header
    assert read_notes(file, "alfworld", "expel") == NOTES
    assert [part.name for part in file.parent.iterdir()] == ["m.jsonl"]


@pytest.mark.parametrize(
    ("number", "line", "where", "what"),
    [
        (3, "{not json", ":3:", "Invalid JSON"),
        (2, json.dumps({"id": "x", "type": "success"}), ":2:", "required"),
        (4, json.dumps({"id": "x", "type": "dream"}), ":4:", "dream"),
        (1, json.dumps({"some": "file"}), ":1:", "not an rpms memory file"),
        (1, "hello", ":1:", "not an rpms memory file"),
        (1, json.dumps({"format": "rpms-memory", "schema_version": 9}), ":1:", "update this prog"),
        (1, json.dumps({"format": "rpms-memory", "schema_version": 0}), ":1:", "learn it again"),
        (5, None, ":5:", "announces 4 entries, the file holds 3"),
        (5, "cut", ":5:", "the last line is cut short"),
    ],
)
def test_damaged_files_are_refused_with_file_and_line(
    snapshot: Path, number: int, line: str | None, where: str, what: str
) -> None:
    lines = snapshot.read_text().splitlines()
    lines[number - 1 : number] = [] if line is None else [line]
    snapshot.write_text("\n".join(lines) + ("" if line == "cut" else "\n"))
    with pytest.raises(RpmsError) as caught:
        read_snapshot(snapshot)
    assert f"{snapshot}{where}" in str(caught.value) and what in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    for file, why in ((empty, "not an rpms memory file"), (tmp_path / "x", "cannot read memory")):
        with pytest.raises(RpmsError, match=why):
            read_snapshot(file)


def test_a_file_of_another_method_or_world_is_refused(tmp_path: Path, snapshot: Path) -> None:
    file = tmp_path / "m.jsonl"
    write(file, NOTES)
    method, world = "a memory of the method '{}', not of", "learned in alfworld, not in science"
    for read, why in (
        (lambda: read_notes(file, "alfworld", "awm"), method.format("expel")),
        (lambda: read_snapshot(file), method.format("expel")),
        (lambda: read_notes(snapshot, "alfworld", "expel"), method.format("rpms")),
        (lambda: read_notes(file, "scienceworld", "expel"), world),
        (lambda: read_snapshot(snapshot, "scienceworld"), world),
    ):
        with pytest.raises(RpmsError, match=rf"\.jsonl:1: .*{why}"):
            read()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "m.jsonl"
    write(file, NOTES[:1])
    full = OSError(28, "full")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(full))
    with pytest.raises(RpmsError, match=r"cannot write .*m\.jsonl: full"):
        write(file, NOTES)
    assert len(read_notes(file, "alfworld", "expel")) == 1 and len([*tmp_path.iterdir()]) == 1
