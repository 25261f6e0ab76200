"""How much of each prompt repeats the one before: what a prefix cache can save."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from rpms.evals.run_folder import read_log


def repeated_share(file: Path) -> float | None:
    """Share of prompt characters, from the second step on, that repeat the prompt before."""
    log = read_log(file)
    if log is None:
        return None
    texts: list[str] = log["messages"]
    prompts = [[(role, texts[i]) for role, i in step.get("prompt", [])] for step in log["steps"]]
    repeated = total = 0
    for before, after in pairwise(prompts):
        repeated += shared_start(before, after)
        total += sum(len(text) for _, text in after)
    return repeated / total if total else None


def shared_start(before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]) -> int:
    """How many characters two prompts have in common before they part."""
    shared = 0
    for (role, text), (other_role, other) in zip(before, after, strict=False):
        if role != other_role:
            return shared
        if text != other:
            return shared + _same_start(text, other)
        shared += len(text)
    return shared


def _same_start(text: str, other: str) -> int:
    """Halving finds where they part in a few comparisons instead of one per character."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
