"""Deduplication: the same experience twice is one entry with a higher count.

Merging is associative and commutative, and ids are derived from the content, so the result of
learning does not depend on the order of the trajectories, on rounds or on parallel workers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from rpms.memory_store.entries import Entry, parse_entry

# Fields that count occurrences; everything else (but the id) identifies the experience.
_COUNTS = ("success_count", "failure_count", "occurrence_count")
_DERIVED = ("id", "confidence")


def merge_entries(entries: Iterable[Entry]) -> list[Entry]:
    """One entry per distinct experience, counts added up, in a fixed order."""
    merged: dict[str, dict[str, Any]] = {}
    for entry in entries:
        data = entry.model_dump(mode="json")
        key = identity(data)
        if key not in merged:
            merged[key] = data
            continue
        for field in _COUNTS:
            if field in data:
                merged[key][field] += data[field]
    for key, data in merged.items():
        data["id"] = f"{data['type']}_{key}"
        if data["type"] == "schema":
            data["confidence"] = confidence(data["success_count"], data["failure_count"])
    ordered = sorted(merged.values(), key=lambda data: (data["type"], data["id"]))
    return [parse_entry(data) for data in ordered]


def identity(data: dict[str, Any]) -> str:
    """A short digest of what an entry says, apart from how often it was seen."""
    content = {k: v for k, v in data.items() if k not in _COUNTS and k not in _DERIVED}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def confidence(successes: int, failures: int) -> float:
    """Share of attempts that worked."""
    total = successes + failures
    return round(successes / total, 4) if total else 0.0
