"""Episodic memory M: entries, frozen snapshots, retrieval by goal signature."""

from memory_store.entries import Entry, parse_entry
from memory_store.retrieval import MemoryIndex
from memory_store.snapshot import load_snapshot

__all__ = ["Entry", "MemoryIndex", "load_snapshot", "parse_entry"]
