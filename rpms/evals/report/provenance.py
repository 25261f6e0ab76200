"""Whose memory it was: a figure made with a memory is a figure of whoever learned it, too."""

from __future__ import annotations

from collections.abc import Iterator

from rpms.evals.records import Memory
from rpms.evals.report.source import names
from rpms.evals.run_folder import Run


def memories(run: Run) -> Iterator[tuple[Memory | None, list[str]]]:
    """Each memory that was read, with the conditions that read it; None where nobody noted it."""
    readers: dict[str, list[str]] = {}
    for name, context in run.manifest.conditions.items():
        if context.get("memory") and context.get("memory_control", "none") != "empty":
            readers.setdefault(run.manifest.hashes.memory.get(name, ""), []).append(name)
    for digest, found in readers.items():
        yield run.manifest.memories.get(digest), found


def memory_sources(run: Run) -> Iterator[str]:
    """Where each memory comes from, as its header has it."""
    for memory, readers in memories(run):
        told = "; ".join(memory.sources if memory else []) or "sources that it does not name"
        yield f"Memory of {_listed(readers)}: learned from {told}."


def borrowed_memory(run: Run) -> Iterator[str]:
    """A clear word where the memory is another player's experience."""
    for memory, readers in memories(run):
        if memory is None or not memory.learned_by:
            continue
        for player in dict.fromkeys(_player(run, name) for name in readers):
            if memory.learned_by == [player]:
                continue
            mine = [name for name in readers if _player(run, name) == player]
            alone = " alone" if player in memory.learned_by else ""
            yield (
                f"Borrowed memory: what {_listed(mine)} remembers was learned by "
                f"{' and '.join(memory.learned_by)}, not by {player}{alone}. These figures say "
                "what that memory does for the model, not what the model learned by itself."
            )


def _player(run: Run, name: str) -> str:
    return str(run.manifest.conditions[name].get("model", run.manifest.model))


def _listed(conditions: list[str]) -> str:
    return ", ".join(map(names, conditions))
