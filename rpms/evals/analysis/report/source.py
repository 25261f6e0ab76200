"""The source of a report: model, split, commit, and the origin of the memory."""

from __future__ import annotations

from collections.abc import Iterator

from rpms.envs import get_environment
from rpms.evals.analysis.experiment import commits_text
from rpms.evals.analysis.joined_runs import named_parts
from rpms.evals.records.run_folder import Run
from rpms.vocabulary.context import condition_title
from rpms.vocabulary.output import quantity


def source_of(run: Run) -> str:
    """Model, split, commit, number of episodes, and custom code of the arms, in one line."""
    manifest, tasks = run.manifest, quantity(len(run.manifest.tasks), "task")
    episodes = quantity(run.planned, "episode")
    if not run.complete:
        episodes = f"{run.done} of {episodes}"
    swapped = "".join(
        f"; {label} has {stage} from {code.get('path', '')} ({code.get('hash', '')})"
        for label, stages in manifest.swapped.items()
        for stage, code in stages.items()
    )
    if run.pooled:
        runs = (
            f"{quantity(len(run.parts), 'run')} of the same {quantity(len(run.conditions), 'arm')}"
        )
        return (
            f"{manifest.env} {manifest.split}, {tasks}, {runs}, {episodes}; "
            f"model: {manifest.model_label}; {commits_text(run)}{swapped}"
        )
    if run.parts:
        tasks += " that both runs share" if len(run.parts) == 2 else " that all runs share"
    models = (
        f"{name or 'model'}: {part.manifest.model_label}"
        f"{',' if name else ';'} commit {part.manifest.commits}"
        for name, part in named_parts(run)
    )
    return f"{manifest.env} {manifest.split}, {tasks}, {episodes}; {'; '.join(models)}{swapped}"


def short_type(run: Run, kind: str) -> str:
    """The environment's label for a goal type."""
    return get_environment(run.manifest.env).type_label(kind)


def borrowed_memory(run: Run) -> Iterator[str]:
    """A note for conditions whose memory was learned by another model; models are put together."""
    readers: dict[tuple[str, str], list[str]] = {}
    for part in run.parts if run.pooled else (run,):
        for name in filter(part.manifest.conditions.__contains__, run.conditions):
            context = part.settings(name)
            if context.get("memory") and context.get("memory_control", "none") != "empty":
                digest = part.manifest.hashes.memory.get(name, "")
                readers.setdefault((digest, part.model(name)), []).append(name)
    notes: dict[tuple[str, str], list[str]] = {}
    for (digest, model), conditions in readers.items():
        memory = run.manifest.memories.get(digest)
        if memory is None or memory.learned_by in ([], [model]):
            continue
        titles, authors = map(condition_title, conditions), " and ".join(memory.learned_by)
        alone = " alone" if model in memory.learned_by else ""
        notes.setdefault((f"{', '.join(titles)} was learned by {authors}", alone), []).append(model)
    for (words, alone), models in notes.items():
        yield (
            f"Borrowed memory: the memory of {words}, not by {' or '.join(models)}{alone}. The "
            "figures show how this memory helps the model, not what the model learned by itself."
        )
