"""Joins runs of the same tasks into one run, for tables, verdict and page.

Runs of the same arms that differ only in the model, the seed or the tasks are one experiment
(``experiment.py``). Other runs stay apart: an arm that several of them have is called after its
folder too, ``D (runs/new)``. Only the tasks that all runs share count; runs of one experiment that
share none are its parts, and the tasks of all count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rpms.evals.analysis.experiment import common_arms, pooled_episodes, pooled_settings
from rpms.evals.records.conditions import effective
from rpms.evals.records.protocol_card import card_differences, memory_of, protocol_card
from rpms.evals.records.run_folder import Run, read_run
from rpms.evals.records.schema import Hashes, Manifest, PlannedTask
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError

SHARED = ("split", "wording", "trials", "repeats")
"""The points of the protocol card that joined runs must share; others can be in a label."""
# The server and the timeout of a call have no effect on results.
IRRELEVANT = ("base_url", "timeout_s")


class SourceArm(NamedTuple):
    """An arm of one of the runs, with all settings that affect its results."""

    run: Run
    label: str
    settings: dict[str, Any]


def read_joined(folders: Sequence[Path], separate: bool = False) -> Run:
    """One run folder, or several joined; an error if they do not fit together.

    With ``separate``, the runs of one experiment too are joined as separate arms.
    """
    runs = [read_run(folder) for folder in folders]
    if len({folder.resolve() for folder in folders}) < len(runs):
        raise RpmsError(
            f"a folder is given twice: {', '.join(map(str, folders))}; give each folder once"
        )
    if len(runs) == 1:
        return runs[0]
    tasks = _common_tasks(runs)
    sides = [{label: _settings(run, label) for label in run.conditions} for run in runs]
    if not separate and (common := common_arms(runs, sides)):
        every = {task.id: task for run in runs for task in run.manifest.tasks}
        return _pooled(runs, tasks or every, common, sides)
    if not tasks:
        raise RpmsError(
            f"{runs[0].folder} and {runs[-1].folder} do not fit together: no task in common; "
            "report them separately"
        )
    arms = _labelled(runs, sides)
    episodes = [
        episode.model_copy(update={"condition": label})
        for label, arm in arms.items()
        for episode in arm.run.episodes.values()
        if episode.condition == arm.label and episode.task in tasks
    ]
    episodes.sort(key=lambda episode: episode.index)
    return Run(
        runs[0].folder,
        _joined_manifest(runs, tasks, arms, _pairs(arms)),
        {episode.key: episode for episode in episodes},
        parts=tuple(runs),
        origins={label: (arm.run.folder, arm.label) for label, arm in arms.items()},
    )


def _pooled(
    runs: Sequence[Run],
    tasks: Mapping[str, PlannedTask],
    common: Sequence[str],
    sides: Sequence[Mapping[str, dict[str, Any]]],
) -> Run:
    """The runs of one experiment as repeats of the same tasks."""
    arms = {label: SourceArm(runs[0], label, settings)
            for label, settings in pooled_settings(runs, common, sides).items()}  # fmt: skip
    ranks = {label: number for number, label in enumerate(common)}
    episodes = pooled_episodes(runs, common, tasks, runs[0].repeats)
    episodes.sort(key=lambda e: (e.index, ranks[e.condition], *e.key[2:]))
    return Run(
        runs[0].folder,
        _joined_manifest(runs, tasks, arms, runs[0].manifest.compare),
        {episode.key: episode for episode in episodes},
        parts=tuple(runs),
        pooled=True,
    )


def named_parts(run: Run) -> list[tuple[str, Run]]:
    """The joined runs by name; a single run has the empty name."""
    return list(zip(folder_names(run.parts), run.parts, strict=True)) or [("", run)]


def folder_names(runs: Sequence[Run]) -> list[str]:
    """The names of the runs' folders; full paths if two have the same name."""
    names = [run.folder.resolve().name for run in runs]
    return names if len({*names}) == len(names) else [str(run.folder) for run in runs]


def _common_tasks(runs: Sequence[Run]) -> dict[str, PlannedTask]:
    """The tasks that all runs share, in the order of the first."""
    cards = [protocol_card(run.manifest) for run in runs]
    frames = [{name: card[name] for name in SHARED} for card in cards]
    tasks = {task.id: task for task in runs[0].manifest.tasks}
    for run, frame in zip(runs[1:], frames[1:], strict=True):
        goals = {task.id: task.goal for task in run.manifest.tasks}
        tasks = {name: task for name, task in tasks.items() if goals.get(name) == task.goal}
        if misfits := card_differences(frames[0], frame):
            raise RpmsError(
                f"{runs[0].folder} and {run.folder} do not fit together: {'; '.join(misfits)}; "
                "report them separately"
            )
    return tasks


def _labelled(
    runs: Sequence[Run], sides: Sequence[Mapping[str, dict[str, Any]]]
) -> dict[str, SourceArm]:
    """Every arm by its label, with its folder if another run has an arm of that label."""
    times = Counter(label for side in sides for label in side)
    return {
        f"{label} ({folder})" if times[label] > 1 else label: SourceArm(run, label, settings)
        for run, side, folder in zip(runs, sides, folder_names(runs), strict=True)
        for label, settings in side.items()
    }


def _pairs(arms: Mapping[str, SourceArm]) -> list[tuple[str, str]]:
    """Each arm of the first run with that of its name in the others, and the pairs of each run."""
    labels = {(arm.run.folder, arm.label): label for label, arm in arms.items()}
    firsts: dict[str, str] = {}
    same = [(firsts.setdefault(arm.label, label), label) for label, arm in arms.items()]
    runs = {arm.run.folder: arm.run for arm in arms.values()}
    planned = [
        (labels[folder, first], labels[folder, second])
        for folder, run in runs.items()
        for first, second in run.manifest.compare
        if {first, second} <= {*run.conditions}
    ]
    return [(first, second) for first, second in same if first != second] + planned


def _settings(run: Run, label: str) -> dict[str, Any]:
    """The settings and the commit of an arm; its memory is identified by content, not by path."""
    settings = {**RunContext().plain, **run.settings(label), "model": run.model(label)}
    settings["commit"] = run.manifest.commits
    settings["memory_file"] = memory_of(run.manifest, label)
    settings["max_steps"] = settings["max_steps"] or run.manifest.settings.get("max_steps") or 0
    return {name: value for name, value in effective(settings).items() if name not in IRRELEVANT}


def _joined_manifest(
    runs: Sequence[Run],
    tasks: Mapping[str, PlannedTask],
    arms: Mapping[str, SourceArm],
    pairs: Sequence[tuple[str, str]],
) -> Manifest:
    first, manifests = runs[0].manifest, [run.manifest for run in runs]
    sources = {label: (arm.run.manifest, arm.label) for label, arm in arms.items()}
    commits, models, names = (
        ", ".join(dict.fromkeys(getattr(manifest, field) for manifest in manifests))
        for field in ("commits", "model", "model_label")
    )
    return Manifest.model_construct(  # its parts were validated when they were read
        format=2, created=first.created, env=first.env, split=first.split,
        split_types=first.split_types, wording=first.wording,
        recorded=all(manifest.recorded for manifest in manifests),
        commit=commits, model=models, model_label=names, tasks=list(tasks.values()),
        conditions={label: arm.settings for label, arm in arms.items()}, compare=[*pairs],
        swapped={label: m.swapped[name] for label, (m, name) in sources.items()
                 if name in m.swapped},
        hashes=Hashes(
            memory={label: m.hashes.memory.get(name, "") for label, (m, name) in sources.items()},
            rules_of={label: m.hashes.rules_of.get(name, m.hashes.rules)
                      for label, (m, name) in sources.items()},
        ),
        memories={name: memory for m in manifests for name, memory in m.memories.items()},
        settings={"trials": runs[0].trials, "repeats": runs[0].repeats},
    )  # fmt: skip
