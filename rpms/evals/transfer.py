"""From which goal types the memories in a prompt came: what one kind of task does for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rpms.evals.refusals import in_prompt

ReadType = Callable[[str], str]
"""The goal type of a printed goal signature, in the world's own way."""

ANY_GOAL = "any goal"
"""Where an entry is not about one goal: what an action needs, what was found where."""


def source_counts(
    steps: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], read_type: ReadType
) -> dict[str, Any]:
    """An episode's line: ``[entries, steps]`` for each goal type that memories came from."""
    entries: dict[str, set[str]] = {}
    uses: Counter[str] = Counter()
    for step in steps:
        found = set(_sources(step, settings, read_type))
        uses.update({source for source, _ in found})
        for source, entry in found:
            entries.setdefault(source, set()).add(entry)
    sources = {source: [len(entries[source]), uses[source]] for source in sorted(entries)}
    return {"memory_sources": sources}


def _sources(
    step: Mapping[str, Any], settings: Mapping[str, Any], read_type: ReadType
) -> Iterator[tuple[str, str]]:
    for recall in in_prompt(step, settings):
        yield source_type(recall["entry"], read_type), str(recall["entry"].get("id", ""))


def source_type(entry: Mapping[str, Any], read_type: ReadType) -> str:
    """The goal type an entry was learned from; an entry without a goal may name its source."""
    if printed := entry.get("goal_signature"):
        return read_type(str(printed)) or ANY_GOAL
    return str(entry.get("source") or ANY_GOAL)
