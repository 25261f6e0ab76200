"""Deduplication: the same experience twice is one entry with a higher count.

What makes two experiences the same is what they say with roles for names: two mugs taken from two
desks are one way to take a thing. Of the recorded examples the first in order is kept. Merging is
associative and commutative and ids come from the content, so the result of learning does not
depend on the order of the trajectories, on rounds or on parallel workers.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rpms.memory_store import schemas
from rpms.memory_store.entries import Entry, Use, parse_entry
from rpms.vocabulary.goal import PAPER, Keys

# What makes an entry of each type the same experience as another.
_IDENTITY: dict[str, tuple[str, ...]] = {
    "success": ("goal_signature", "sub_goal_type", "lifted"),
    "failure": ("goal_signature", "lifted", "violated", "failure_type"),
    "critical_failure": ("goal_signature", "lifted", "corrective_rule"),
    "schema": ("action_type",),
    "found": ("place",),
}
# What stands for the lifted form in an entry that has none.
_EXAMPLE = {"success": "actions", "failure": "failed_action", "critical_failure": "failed_action"}
_COUNTS = ("success_count", "failure_count", "occurrence_count", "looked")

Data = dict[str, Any]


def merge_entries(entries: Iterable[Entry], keys: Keys = PAPER) -> list[Entry]:
    """One entry per distinct experience, counts added up, in a fixed order."""
    merged: dict[str, Data] = {}
    for entry in entries:
        data = entry.model_dump(mode="json")
        key = identity(data, keys)
        merged[key] = _add(merged[key], data) if key in merged else data
    for key, data in merged.items():
        data["id"] = f"{data['type']}_{key}"
        if data["type"] == "schema" and data["uses"]:
            uses = [Use(**use) for use in data["uses"]]
            data["preconditions"] = schemas.preconditions(uses)
            data["effects"] = schemas.effects(uses)
            data["confidence"] = schemas.confidence(uses)
    ordered = sorted(merged.values(), key=lambda data: (data["type"], data["id"]))
    return [parse_entry(data) for data in ordered]


def identity(data: Mapping[str, Any], keys: Keys) -> str:
    """A short digest of what an entry says, apart from how often and where it was seen."""
    fields = _IDENTITY[data["type"]]
    content = {name: data[name] for name in fields}
    if "lifted" in content and not content["lifted"]:
        content["lifted"] = data[_EXAMPLE[data["type"]]]
    if data["type"] == "schema" and not data["uses"]:
        content["told"] = [data["action_template"], data["preconditions"], data["effects"]]
    if "state_signature" in data:
        content["compat"] = keys.compat(data["state_signature"])
    text = json.dumps([data["type"], content], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _add(one: Data, other: Data) -> Data:
    """Both experiences as one: counts add up, and the smaller example stands for both."""
    first, second = sorted((one, other), key=_example)
    total = dict(first)
    for field in _COUNTS:
        if field in total:
            total[field] = first[field] + second[field]
    for field, add in _ADDED.items():
        if field in total:
            total[field] = add(first[field], second[field])
    return total


def _example(data: Data) -> str:
    """Orders entries by the home they were recorded in, which says nothing about their worth."""
    left_out = {"id", "uses", "kinds", "objects", "confidence", *_COUNTS}
    told = {name: value for name, value in data.items() if name not in left_out}
    return json.dumps(told, sort_keys=True, ensure_ascii=False)


def _uses(one: list[Data], other: list[Data]) -> list[Data]:
    counted: Counter[str] = Counter()
    for use in [*one, *other]:
        rest = {name: value for name, value in use.items() if name != "count"}
        counted[json.dumps(rest, sort_keys=True)] += use["count"]
    return [{**json.loads(text), "count": count} for text, count in sorted(counted.items())]


def _kinds(one: dict[str, dict[str, int]], other: dict[str, dict[str, int]]) -> Data:
    names = sorted({*one, *other})
    return {name: _sum(one.get(name, {}), other.get(name, {})) for name in names}


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(one) + Counter(other)).items()))


_ADDED: dict[str, Callable[[Any, Any], Any]] = {"uses": _uses, "kinds": _kinds, "objects": _sum}
