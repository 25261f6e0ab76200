"""What the steps of an episode amount to in its line: memories, the guard's verdicts, drift.

Memories are also counted by the goal types they came from: what one kind of task does for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rpms.evals.rule_compliance import in_prompt
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import Decision

UNREADABLE = "no action read"
"""Stands for the rule where there was nothing that a rule could speak of."""

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
        sources_here = set(_sources(step, settings, read_type))
        uses.update({source for source, _ in sources_here})
        for source, entry in sources_here:
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


def memory_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """What became of recalled memories, summed over the steps."""
    recalls: list[Recall] = [recall for step in steps for recall in step.get("recalls", [])]
    return {
        "recalled": len(recalls),
        "dropped_scf": sum(recall["dropped_by"] == "scf" for recall in recalls),
        "dropped_arbitration": sum(recall["dropped_by"] == "arbitration" for recall in recalls),
        "dropped_budget": sum(recall["dropped_by"] == "budget" for recall in recalls),
        "warned": sum(bool(recall["warning"]) for recall in recalls),
    }


def decision_counts(decisions: Sequence[Decision]) -> dict[str, Any]:
    """What the guard made of the proposals, and which rules spoke against them."""
    verdicts = Counter(decision["verdict"] for decision in decisions)
    rules = Counter(decision["rule"] or "procedure" for decision in decisions if decision["reason"])
    return {
        "proposals": len(decisions),
        "asked_again": verdicts["asked_again"],
        "replaced": verdicts["replaced"],
        "fell_back": verdicts["fell_back"],
        "insisted": verdicts["insisted"],
        "vetoes": dict(sorted(rules.items())),
        "after_veto": after_veto(decisions),
    }


def after_veto(decisions: Sequence[Decision]) -> dict[str, list[int]]:
    """Of the vetoes that the model was told: ``[told, next passed, next the same]`` by rule."""
    counts: dict[str, list[int]] = {}
    for before, after in pairwise(decisions):
        if before["verdict"] == "asked_again":
            row = counts.setdefault(before["rule"] or UNREADABLE, [0, 0, 0])
            row[0] += 1
            row[1] += after["verdict"] == "accepted"
            row[2] += after["proposal"] == before["proposal"]
    return dict(sorted(counts.items()))


def drift_counts(steps: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many steps were compared with the truth, and in how many the belief was wrong."""
    return {
        "drift_steps": sum(bool(step["drift"]) for step in steps),
        "checked_steps": sum(bool(step["truth"]) for step in steps),
    }
