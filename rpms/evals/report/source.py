"""What a report says about its run: its source, all its settings, and how things are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rpms.envs import get_environment
from rpms.evals.protocol_card import NONE, joined
from rpms.evals.records import Manifest
from rpms.evals.run_folder import Run
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.safe_text import redact

LETTERS = {"A": "A baseline", "B": "B rules", "C": "C memory", "D": "D full", "E": "E policy"}


def source_of(run: Run) -> str:
    """Which model, which split, which commit, how much of it, and what arms take from elsewhere."""
    manifest = run.manifest
    played = f"{run.planned} episodes"
    if not run.complete:
        played = f"{run.done} of {played}"
    swapped = "".join(
        f"; {label} has {stage} from {code.get('path', '')} ({code.get('hash', '')})"
        for label, stages in manifest.swapped.items()
        for stage, code in stages.items()
    )
    return (
        f"{manifest.env} {manifest.split}, {len(manifest.tasks)} tasks, {played}; "
        f"model: {manifest.model_label}; commit {manifest.commits}{swapped}"
    )


def names(condition: str) -> str:
    """``B`` -> ``B rules``; any other label speaks for itself, as ``B+verify`` does."""
    return LETTERS.get(condition, condition)


def short_type(run: Run, kind: str) -> str:
    """A goal type as its world likes to see it in a table."""
    return get_environment(run.manifest.env).type_label(kind)


def borrowed_memory(run: Run) -> Iterator[str]:
    """A clear word where the memory is another player's experience."""
    readers: dict[tuple[str, str], list[str]] = {}
    for name, context in run.manifest.conditions.items():
        if context.get("memory") and context.get("memory_control", "none") != "empty":
            player = str(context.get("model", run.manifest.model))
            digest = run.manifest.hashes.memory.get(name, "")
            readers.setdefault((digest, player), []).append(name)
    for (digest, player), conditions in readers.items():
        memory = run.manifest.memories.get(digest)
        if memory is None or memory.learned_by in ([], [player]):
            continue
        alone = " alone" if player in memory.learned_by else ""
        yield (
            f"Borrowed memory: what {', '.join(map(names, conditions))} remembers was learned by "
            f"{' and '.join(memory.learned_by)}, not by {player}{alone}. These figures say what "
            "that memory does for the model, not what the model learned by itself."
        )


def settings_of(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Every setting under a title: those of the conditions, then all else that the manifest has.

    One value where all conditions share it; a setting younger than the run has its default.
    """
    usual = RunContext().plain
    contexts = {label: {**usual, **own} for label, own in manifest.conditions.items()}
    settings = dict.fromkeys(name for context in contexts.values() for name in context)
    sections = {
        "Agent and model": {
            name: joined({label: _written(c.get(name)) for label, c in contexts.items()})
            for name in settings
        },
        "Run": {},
    }
    told_above = {"conditions", "tasks"}
    for name, value in manifest.model_dump(exclude=told_above, exclude_none=True).items():
        if isinstance(value, dict | list):
            sections[name.capitalize()] = dict(_flat(value))
        else:
            sections["Run"][name] = _written(value)
    return {title: values for title, values in sections.items() if values}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Nested values, each by the names that lead to it."""
    if isinstance(value, list):
        value = {str(number): item for number, item in enumerate(value, start=1)}
    if not isinstance(value, dict):
        yield path, _written(value)
        return
    for name, item in value.items():
        yield from _flat(item, f"{path} {name}".strip())


def _written(value: Any) -> str:
    """A value as the command line takes it; an address without its password."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return NONE if value in ("", None) else redact(str(value))
