"""What every table and page says about itself, and how conditions and goal types are called."""

from __future__ import annotations

from rpms.envs import get_environment
from rpms.evals.run_folder import Run

LETTERS = {"A": "A baseline", "B": "B rules", "C": "C memory", "D": "D full", "E": "E policy"}


def source_of(run: Run) -> str:
    """Which model, which split, which commit, how much of it."""
    manifest = run.manifest
    played = f"{run.done} of {run.planned} episodes"
    if run.complete:
        played = f"{run.planned} episodes"
    return (
        f"{manifest.env} {manifest.split}, {len(manifest.tasks)} tasks, {played}; "
        f"model: {manifest.model_label}; commit {manifest.commits}{swapped(run)}"
    )


def swapped(run: Run) -> str:
    """What arms take from elsewhere: code by its path, with a checksum of its file."""
    told = [
        f"{label} has {what} from {one.get('path', '')} ({one.get('hash', '')})"
        for label, found in run.manifest.swapped.items()
        for what, one in found.items()
    ]
    return "".join(f"; {text}" for text in told)


def names(condition: str) -> str:
    """``B`` -> ``B rules``; any other label speaks for itself, as ``B+verify`` does."""
    return LETTERS.get(condition, condition)


def short_type(run: Run, kind: str) -> str:
    """A goal type as its world likes to see it in a table."""
    return get_environment(run.manifest.env).type_label(kind)
