"""Episodic memory M: entries, frozen snapshots, retrieval by goal signature, database stores."""

from rpms.memory_store.controls import controlled, controlled_notes
from rpms.memory_store.entries import Entry, Note, merge_entries, parse_entry
from rpms.memory_store.retrieval import Candidate, MemoryIndex
from rpms.memory_store.snapshot import (
    Header,
    load_from_store,
    read_header,
    read_notes,
    read_snapshot,
    save_to_store,
    write_snapshot,
)

__all__ = [
    "Candidate",
    "Entry",
    "Header",
    "MemoryIndex",
    "Note",
    "controlled",
    "controlled_notes",
    "load_from_store",
    "merge_entries",
    "parse_entry",
    "read_header",
    "read_notes",
    "read_snapshot",
    "save_to_store",
    "write_snapshot",
]

if __name__ != "rpms.memory_store":
    raise ImportError(
        "'memory_store' at the top of the clone is only a link: import rpms.memory_store"
    )
