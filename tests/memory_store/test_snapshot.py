from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rpms.memory_store import load_index, parse_entry, read_snapshot, write_snapshot
from rpms.vocabulary.errors import RpmsError
from tests.processes import wait_until


@pytest.fixture
def snapshot(tmp_path: Path, paper_entries: list[dict[str, Any]]) -> Path:
    file = tmp_path / "memory.jsonl"
    write_snapshot(file, "alfworld", [parse_entry(data) for data in paper_entries], ["a test"], 1)
    return file


def test_a_snapshot_reads_back(snapshot: Path, paper_entries: list[dict[str, Any]]) -> None:
    header, entries = read_snapshot(snapshot)
    assert header.entries == 4 and header.env == "alfworld" and header.sources == ["a test"]
    assert header.counts == {"critical_failure": 1, "failure": 1, "schema": 1, "success": 1}
    assert [entry.id for entry in entries] == [data["id"] for data in paper_entries]
    assert len(load_index(snapshot, "alfworld")) == 4


def damage(file: Path, number: int, line: str | None) -> None:
    lines = file.read_text().splitlines()
    lines[number - 1 : number] = [] if line is None else [line]
    file.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("number", "line", "where", "what"),
    [
        (3, "{not json", ":3:", "Invalid JSON"),
        (2, json.dumps({"id": "x", "type": "success"}), ":2:", "required"),
        (4, json.dumps({"id": "x", "type": "dream"}), ":4:", "dream"),
        (1, json.dumps({"some": "file"}), ":1:", "not an rpms memory file"),
        (1, "hello", ":1:", "not an rpms memory file"),
        (
            1,
            json.dumps({"format": "rpms-memory", "schema_version": 99}),
            ":1:",
            "update this program",
        ),
        (5, None, ":5:", "announces 4 entries, the file holds 3"),
    ],
)
def test_damaged_files_are_refused_with_file_and_line(
    snapshot: Path, number: int, line: str | None, where: str, what: str
) -> None:
    damage(snapshot, number, line)
    for read in (lambda: read_snapshot(snapshot), lambda: load_index(snapshot, "alfworld")):
        with pytest.raises(RpmsError) as caught:
            read()
        assert f"{snapshot}{where}" in str(caught.value) and what in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_truncated_last_line_is_refused(snapshot: Path) -> None:
    snapshot.write_bytes(snapshot.read_bytes()[:-20])
    with pytest.raises(RpmsError, match=r":5: the last line is cut short"):
        read_snapshot(snapshot)


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.raises(RpmsError, match="not an rpms memory file"):
        read_snapshot(empty)
    with pytest.raises(RpmsError, match="cannot read memory file"):
        read_snapshot(tmp_path / "none.jsonl")


def test_a_memory_of_another_world_is_refused(snapshot: Path) -> None:
    with pytest.raises(RpmsError, match="learned in alfworld, not in scienceworld"):
        load_index(snapshot, "scienceworld")


WRITER = """
import sys
from functools import partial
from pathlib import Path
from rpms.memory_store import parse_entry, write_snapshot, read_snapshot
file = Path(sys.argv[1])
_, entries = read_snapshot(file)
class Slow(list):
    def __iter__(self):
        for number, entry in enumerate(list.__iter__(self)):
            if number == 20_000:
                print("half-way", flush=True)
            yield entry
many = Slow([entries[0]] * 2_000_000)
write_snapshot(file, "alfworld", many)
"""


def test_killed_while_writing_leaves_the_old_file_intact(snapshot: Path) -> None:
    before = snapshot.read_bytes()
    root = Path(__file__).parents[2]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(snapshot)],
        stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, text=True,
    )  # fmt: skip
    assert writer.stdout is not None
    parts = partial(snapshot.parent.glob, ".memory*")
    wait_until(lambda: any(part.stat().st_size > 1_000_000 for part in parts()), writer)
    writer.send_signal(signal.SIGKILL)
    assert writer.wait(timeout=300) == -signal.SIGKILL
    assert snapshot.read_bytes() == before
    assert read_snapshot(snapshot)[0].entries == 4
