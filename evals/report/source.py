"""What every table and page says about itself, and how conditions and goal types are called."""

from __future__ import annotations

from rpms.evals.run_files import Run

LETTERS = {"A": "A baseline", "B": "B rules", "C": "C memory", "D": "D full", "E": "E guarded"}


def source_of(run: Run) -> str:
    """Which model, which split, which commit, how much of it."""
    manifest = run.manifest
    played = f"{len(run.episodes)} of {run.planned} episodes"
    if run.complete:
        played = f"{run.planned} episodes"
    return (
        f"{manifest.env} {manifest.split}, {len(manifest.tasks)} tasks, {played}; "
        f"model: {manifest.model_label}; commit {manifest.commit}"
    )


def names(condition: str) -> str:
    """``B`` -> ``B rules``; any other label speaks for itself."""
    return LETTERS.get(condition, condition)


def short_type(kind: str) -> str:
    """ALFWorld's long goal types without what they all share."""
    if kind.endswith("_in_recep"):
        kind = kind.removeprefix("pick_").removesuffix("_in_recep")
    return kind.replace("_", " ")
