"""What a report says about its run: its source, all its settings, and how things are called."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rpms.envs import get_environment
from rpms.evals.analysis.joined_runs import named_parts
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Manifest
from rpms.vocabulary.context import RunContext, condition_title
from rpms.vocabulary.output import quantity
from rpms.vocabulary.safe_text import redact


def source_of(run: Run) -> str:
    """Which model, which split, which commit, how much of it, and what arms take from elsewhere."""
    manifest, tasks = run.manifest, quantity(len(run.manifest.tasks), "task")
    played = quantity(run.planned, "episode")
    if not run.complete:
        played = f"{run.done} of {played}"
    swapped = "".join(
        f"; {label} has {stage} from {code.get('path', '')} ({code.get('hash', '')})"
        for label, stages in manifest.swapped.items()
        for stage, code in stages.items()
    )
    if run.parts:
        tasks += " that both runs have" if len(run.parts) == 2 else " that all runs have"
    players = (
        f"{name or 'model'}: {part.manifest.model_label}"
        f"{',' if name else ';'} commit {part.manifest.commits}"
        for name, part in named_parts(run)
    )
    return f"{manifest.env} {manifest.split}, {tasks}, {played}; {'; '.join(players)}{swapped}"


def names(condition: str) -> str:
    """The condition with its title."""
    return condition_title(condition)


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


def settings_of(manifest: Manifest) -> str:
    """All that the manifest has but its tasks, as JSON without passwords.

    A setting younger than the run has its default.
    """
    usual = RunContext().plain
    settings = manifest.model_dump(exclude={"tasks"}, exclude_none=True)
    settings["conditions"] = {name: {**usual, **own} for name, own in manifest.conditions.items()}
    return redact(json.dumps(settings, indent=2, ensure_ascii=False, default=str))
