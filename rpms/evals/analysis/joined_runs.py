"""Runs of the same tasks as one run, so that every table, the verdict and the page can take them.

An arm keeps its label as long as that is enough; where runs differ in the model, the commit, the
memory or a setting, the labels of all their arms say it. Only the tasks that all runs have count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from rpms.evals.records.conditions import ON_THE_CARD, effective, value_text
from rpms.evals.records.protocol_card import card_differences, memory_of, protocol_card
from rpms.evals.records.run_folder import Run, read_run
from rpms.evals.records.schema import Hashes, Manifest, PlannedTask
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError

SHARED = ("split", "wording", "trials", "repeats")
"""What runs must have in common of the protocol card; all else can stand in a label."""
# Where a model is served and how long a call may take do not decide about what comes out.
UNTOLD = ("base_url", "timeout_s")
RUN_WIDE = ("model", "commit", *sorted(ON_THE_CARD.difference(UNTOLD, ["model"])))
"""What no label of a single run tells: all its arms share it."""


class SourceArm(NamedTuple):
    """An arm of one of the runs, and whatever has an effect on its results."""

    run: Run
    label: str
    traits: dict[str, Any]


def read_joined(folders: Sequence[Path]) -> Run:
    """One run folder, or several as one run; refused in one line where they do not fit together."""
    runs = [read_run(folder) for folder in folders]
    if len({folder.resolve() for folder in folders}) < len(runs):
        raise RpmsError(f"a folder is given twice: {', '.join(map(str, folders))}")
    if len(runs) == 1:
        return runs[0]
    tasks, arms = _common_tasks(runs), _labelled(runs)
    episodes = [
        episode.model_copy(update={"condition": label})
        for label, arm in arms.items()
        for episode in arm.run.episodes.values()
        if episode.condition == arm.label and episode.task in tasks
    ]
    episodes.sort(key=lambda episode: episode.index)
    return Run(
        runs[0].folder,
        _joined_manifest(runs, tasks, arms),
        {episode.key: episode for episode in episodes},
        parts=tuple(runs),
        origins={label: (arm.run.folder, arm.label) for label, arm in arms.items()},
    )


def named_parts(run: Run) -> list[tuple[str, Run]]:
    """The runs that it was put together from, by name; itself without a name if by none."""
    return list(zip(folder_names(run.parts), run.parts, strict=True)) or [("", run)]


def folder_names(runs: Sequence[Run]) -> list[str]:
    """What their folders are called; in full where two are called alike."""
    names = [run.folder.resolve().name for run in runs]
    return names if len({*names}) == len(names) else [str(run.folder) for run in runs]


def _common_tasks(runs: Sequence[Run]) -> dict[str, PlannedTask]:
    """The tasks of all runs, in the order of the first."""
    cards = [protocol_card(run.manifest) for run in runs]
    frames = [{name: card[name] for name in SHARED} for card in cards]
    tasks = {task.id: task for task in runs[0].manifest.tasks}
    for run, frame in zip(runs[1:], frames[1:], strict=True):
        goals = {task.id: task.goal for task in run.manifest.tasks}
        tasks = {name: task for name, task in tasks.items() if goals.get(name) == task.goal}
        misfits = card_differences(frames[0], frame)
        if misfits or not tasks:
            reason = "; ".join(misfits) or "no task in common"
            raise RpmsError(f"{runs[0].folder} and {run.folder} do not fit together: {reason}")
    return tasks


def _labelled(runs: Sequence[Run]) -> dict[str, SourceArm]:
    """Every arm by a label of its own."""
    sides = [{label: _traits(run, label) for label in run.conditions} for run in runs]
    telling, arms = _telling(sides), list[tuple[str, SourceArm]]()
    for run, side in zip(runs, sides, strict=True):
        for own, traits in side.items():
            arms.append((_label(own, traits, telling), SourceArm(run, own, traits)))
    names = {run.folder: name for run, name in zip(runs, folder_names(runs), strict=True)}
    labels = [label for label, _ in arms]
    for label, arm in arms:
        if labels.count(label) > 1:  # nothing that is recorded tells them apart
            arm.traits["run"] = names[arm.run.folder]
    return {_label(label, arm.traits, ["run"]): arm for label, arm in arms}


def _traits(run: Run, label: str) -> dict[str, Any]:
    """The settings and the commit of an arm; its memory is known by content, wherever it lay."""
    traits = {**RunContext().plain, **run.settings(label), "model": run.model(label)}
    traits["commit"], traits["memory_file"] = run.manifest.commits, memory_of(run.manifest, label)
    traits["max_steps"] = traits["max_steps"] or run.manifest.settings.get("max_steps") or 0
    return {name: value for name, value in effective(traits).items() if name not in UNTOLD}


def _telling(sides: Sequence[Mapping[str, dict[str, Any]]]) -> list[str]:
    """The traits that labels have to tell: whole runs, or arms of one label, differ in them."""
    telling: dict[str, None] = {}
    for first, second in combinations(sides, 2):
        for name in RUN_WIDE:
            mine, yours = ({arm[name] for arm in side.values() if name in arm}
                           for side in (first, second))  # fmt: skip
            telling |= {name: None} if mine and yours and mine != yours else {}
        for a, b in ((first[own], second[own]) for own in first if own in second):
            telling |= {name: None for name in a if name in b and a[name] != b[name]}
    return list(telling)


def _label(own: str, traits: Mapping[str, Any], telling: Sequence[str]) -> str:
    """``D model=gpt-4o``."""
    return " ".join([own, *(f"{n}={value_text(traits[n])}" for n in telling if n in traits)])


def _joined_manifest(
    runs: Sequence[Run], tasks: Mapping[str, PlannedTask], arms: Mapping[str, SourceArm]
) -> Manifest:
    first, manifests = runs[0].manifest, [run.manifest for run in runs]
    own = {label: (arm.run.manifest, arm.label) for label, arm in arms.items()}
    commits, models, names = (
        ", ".join(dict.fromkeys(getattr(manifest, field) for manifest in manifests))
        for field in ("commits", "model", "model_label")
    )
    return Manifest.model_construct(  # of parts that were checked when they were read
        format=1, created=first.created, env=first.env, split=first.split,
        split_types=first.split_types, wording=first.wording,
        recorded=all(manifest.recorded for manifest in manifests),
        commit=commits, model=models, model_label=names, tasks=list(tasks.values()),
        conditions={label: arm.traits for label, arm in arms.items()},
        swapped={label: m.swapped[name] for label, (m, name) in own.items() if name in m.swapped},
        hashes=Hashes(
            memory={label: m.hashes.memory.get(name, "") for label, (m, name) in own.items()},
            rules_of={label: m.hashes.rules_of.get(name, m.hashes.rules)
                      for label, (m, name) in own.items()},
        ),
        memories={name: memory for m in manifests for name, memory in m.memories.items()},
        settings={"trials": runs[0].trials, "repeats": runs[0].repeats},
    )  # fmt: skip
