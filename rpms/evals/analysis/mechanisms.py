"""How much each mechanism between retrieval and prompt did, by the log of an episode.

A mechanism that never acts can make no difference, whatever its setting. So its activity is
counted: the candidates that it dropped or marked, and the steps at which the prompt would have had
other memories without it. For that its decisions are undone and the selection runs again; what a
later stage of arbitration would have decided about a memory that the filter dropped is not known,
so the count for the filter is an upper bound. The token budget is left out of both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast, get_args

from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import EXTRA_KINDS, Recall, surviving

Mechanism = Literal["scf", "arbitration", "arbitration_extras"]
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
SELECTED = ("duplicate", "over top-k", "over token budget")
"""Outcomes of the selection, which comes last."""
MEMORY = "memory"
"""The mechanism that prints memories at all."""

Step = Mapping[str, Any]


def changed_prompts(steps: Sequence[Step], settings: Mapping[str, Any]) -> dict[str, int]:
    """Count the steps at which each mechanism changed the memories in the prompt."""
    from rpms.memory_store.methods.registry import find_method  # slow, and not for a second report

    context = RunContext(
        memory_method=settings.get("memory_method", RunContext.memory_method),
        k=int(settings.get("k", RunContext.k)),
    )
    select = find_method(context.memory_method).select
    counts = Counter[str]()
    for step in steps:
        recalls = [cast(Recall, each) for each in step.get("recalls", []) if "conflict" in each]
        counts[MEMORY] += bool(surviving(recalls))
        if acting := {*map(mechanism_of, recalls)} & {*MECHANISMS}:
            printed = _printed(select([*_undone(recalls)], context))
            for mechanism in acting:
                without = _printed(select([*_undone(recalls, mechanism)], context))
                counts[mechanism] += without != printed
    return dict(counts)


def conflicts(recalls: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Count the candidates that arbitration dropped, by the kind of conflict."""
    return dict(Counter(
        str(recall.get("conflict", "")) for recall in recalls
        if recall["dropped_by"] == "arbitration"
    ))  # fmt: skip


def mechanism_of(recall: Mapping[str, Any]) -> str:
    """The mechanism that dropped or marked a candidate; empty for none of the three."""
    if recall["dropped_by"] == "arbitration" or recall["warning"]:
        return "arbitration_extras" if recall.get("conflict") in EXTRA_KINDS else "arbitration"
    return str(recall["dropped_by"])


def _undone(recalls: Sequence[Recall], mechanism: str = "") -> Iterator[Recall]:
    """The candidates before the selection, without the decisions of a mechanism."""
    for recall in recalls:
        if recall["dropped_by"] in SELECTED:
            recall = {**recall, "dropped_by": "", "reason": ""}
        if mechanism and mechanism_of(recall) == mechanism:
            recall = {**recall, "dropped_by": "", "reason": "", "warning": "", "rule": ""}
        yield recall


def _printed(recalls: Sequence[Recall]) -> list[tuple[Any, ...]]:
    return [(recall["entry"], recall["advice"], recall["warning"]) for recall in surviving(recalls)]
