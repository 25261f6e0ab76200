"""What a run has written so far."""

from __future__ import annotations

from pathlib import Path

from tests.evals.sample_runs import lines_of as lines


def keys(folder: Path) -> list[tuple[str, str]]:
    return [(line["condition"], line["task"]) for line in lines(folder)]


def histories(folder: Path) -> dict[tuple[str, str], list[str]]:
    return {
        (line["condition"], line["task"]): [turn["action"] for turn in line["history"]]
        for line in lines(folder)
    }


__all__ = ["histories", "keys", "lines"]
