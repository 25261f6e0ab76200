"""Runs of the same tasks as one run, so that every table, the verdict and the page can take them.

An arm keeps its label as long as that is enough; where runs differ in the model, the commit, the
memory or a setting, the labels of all their arms say it. Only the tasks that all runs have count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from rpms.evals.conditions import ON_THE_CARD, effective, value_text
from rpms.evals.protocol_card import memory_of
from rpms.evals.records import Hashes, Manifest, PlannedTask
from rpms.evals.run_folder import Run, read_run
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError

# They decide how long a call may take, not what comes out.
IDLE = frozenset({"timeout_s", "patience_s"})
RUN_WIDE = ("model", "commit", *sorted(ON_THE_CARD - IDLE - {"model"}))
"""What no label of a single run tells: all its arms share it."""

Traits = dict[str, Any]
"""The settings of an arm, and the commit that played it."""


def read_joined(folders: Sequence[Path]) -> Run:
    """One run folder, or several as one run; refused in one line where they do not fit together."""
    places = [folder.resolve() for folder in folders]
    for place, folder in zip(places, folders, strict=True):
        if places.count(place) > 1:
            raise RpmsError(f"{folder} is given twice")
    return join_runs([read_run(folder) for folder in folders])


def join_runs(runs: Sequence[Run]) -> Run:
    """Some runs as one; a single run stays as it is."""
    first = runs[0]
    if len(runs) == 1:
        return first
    tasks = _common_tasks(runs)
    ids, arms = {task.id for task in tasks}, _labelled(runs)
    labels = {(id(run), own): label for label, (run, own, _) in arms.items()}
    episodes = [
        episode.model_copy(update={"condition": labels[id(run), episode.condition]})
        for run in runs
        for episode in run.episodes.values()
        if episode.task in ids
    ]
    places = {task.id: number for number, task in enumerate(tasks)}
    episodes.sort(key=lambda episode: places[episode.task])
    return Run(
        first.folder,
        _joined_manifest(runs, tasks, arms),
        {episode.key: episode for episode in episodes},
        parts=tuple(runs),
        homes={label: (run.folder, own) for label, (run, own, _) in arms.items()},
    )


def folder_names(runs: Sequence[Run]) -> list[str]:
    """What their folders are called; in full where two are called alike."""
    names = [run.folder.resolve().name for run in runs]
    return names if len({*names}) == len(names) else [str(run.folder) for run in runs]


def named_parts(run: Run) -> list[tuple[str, Run]]:
    """The runs that it was put together from, by name; itself without a name if by none."""
    return list(zip(folder_names(run.parts), run.parts, strict=True)) or [("", run)]


def _common_tasks(runs: Sequence[Run]) -> list[PlannedTask]:
    """The tasks of all runs, in the order of the first."""
    first, *others = runs
    tasks = {task.id: task for task in first.manifest.tasks}
    for run in others:
        theirs = {task.id: task.goal for task in run.manifest.tasks}
        tasks = {name: task for name, task in tasks.items() if name in theirs}
        misfits = [
            f"{name} {yours}, not {mine}"
            for name, mine, yours in _frames(first, run)
            if mine != yours
        ]
        misfits += [
            f"task {name} has another goal"
            for name, task in tasks.items()
            if theirs[name] != task.goal
        ][:1]
        if misfits or not tasks:
            reason = "; ".join(misfits) or "no task in common"
            raise RpmsError(
                f"{run.folder} does not fit together with {first.folder}: {reason}. Give runs of "
                "the same tasks"
            )
    return list(tasks.values())


def _frames(first: Run, second: Run) -> list[tuple[str, Any, Any]]:
    """What two runs must share, as far as both recorded it."""
    frames = [
        {"world": m.env, "split": m.split, "wording": m.wording, "trials": run.trials}
        for run, m in ((first, first.manifest), (second, second.manifest))
    ]
    return [(name, a, frames[1][name]) for name, a in frames[0].items() if a and frames[1][name]]


def _labelled(runs: Sequence[Run]) -> dict[str, tuple[Run, str, Traits]]:
    """Every arm by a label of its own: whose it is, and what it is called there."""
    sides = [{own: _traits(run, own) for own in run.conditions} for run in runs]
    telling = _telling(sides)
    spelled = [
        {own: _label(own, traits, telling) for own, traits in side.items()} for side in sides
    ]
    every = [label for side in spelled for label in side.values()]
    arms: dict[str, tuple[Run, str, Traits]] = {}
    for run, name, side, labels in zip(runs, folder_names(runs), sides, spelled, strict=True):
        for own, traits in side.items():
            label = labels[own]
            if every.count(label) > 1:  # nothing that is recorded tells them apart
                traits["run"] = name
                label = _label(label, traits, ["run"])
            arms[label] = (run, own, traits)
    return arms


def _traits(run: Run, label: str) -> Traits:
    """Whatever decides about an arm's results; a memory by its content, wherever it lay."""
    manifest = run.manifest
    traits = {**RunContext().plain, **run.settings(label), "commit": manifest.commits}
    traits["model"] = run.model(label)
    traits["memory_file"] = memory_of(manifest, label)
    traits["max_steps"] = traits["max_steps"] or manifest.settings.get("max_steps") or 0
    return {name: value for name, value in traits.items() if name not in IDLE}


def _telling(sides: Sequence[Mapping[str, Traits]]) -> list[str]:
    """The traits that labels have to tell: arms of one label, or whole runs, differ in them."""
    telling: set[str] = set()
    for first, second in combinations(sides, 2):
        for own in first.keys() & second.keys():
            mine, yours = effective(first[own]), effective(second[own])
            telling |= {n for n in mine.keys() & yours.keys() if mine[n] != yours[n]}
        for name in RUN_WIDE:
            values = [
                {effective(traits).get(name) for traits in side.values()} - {None}
                for side in (first, second)
            ]
            if all(values) and values[0] != values[1]:
                telling.add(name)
    if "model" in telling and "base_url" in telling:  # another model is served elsewhere
        telling.remove("base_url")
        for traits in (traits for side in sides for traits in side.values()):
            del traits["base_url"]
    return sorted(telling, key=lambda name: (name not in RUN_WIDE, [*RUN_WIDE, name].index(name)))


def _label(own: str, traits: Traits, telling: Sequence[str]) -> str:
    """``D model=gpt-4o``: only what has an effect on this arm."""
    effects = effective(traits)
    return " ".join([own, *(f"{n}={value_text(effects[n])}" for n in telling if n in effects)])


def _joined_manifest(
    runs: Sequence[Run],
    tasks: Sequence[PlannedTask],
    arms: Mapping[str, tuple[Run, str, Traits]],
) -> Manifest:
    manifests = [run.manifest for run in runs]
    of_arms = [(label, run.manifest, own) for label, (run, own, _) in arms.items()]
    ends = [manifest.finished or "" for manifest in manifests]
    return Manifest(
        format=1,
        created=min(manifest.created for manifest in manifests),
        finished=max(ends) if all(ends) else None,
        env=manifests[0].env,
        split=manifests[0].split,
        wording=next((m.wording for m in manifests if m.wording), ""),
        commit=", ".join(dict.fromkeys(manifest.commits for manifest in manifests)),
        model=", ".join(dict.fromkeys(m.model for m in manifests)),
        model_label=", ".join(dict.fromkeys(m.model_label for m in manifests)),
        conditions={label: traits for label, (_, _, traits) in arms.items()},
        tasks=[*tasks],
        swapped={label: m.swapped[own] for label, m, own in of_arms if own in m.swapped},
        hashes=Hashes(
            memory={label: m.hashes.memory[own] for label, m, own in of_arms
                    if own in m.hashes.memory},
            rules_of={label: m.hashes.rules_of.get(own, m.hashes.rules)
                      for label, m, own in of_arms},
        ),
        memories={name: memory for m in manifests for name, memory in m.memories.items()},
        settings={"trials": runs[0].trials, "repeats": min(run.repeats for run in runs)},
        sessions=[s.model_copy(update={"commit": ""}) for m in manifests for s in m.sessions],
    )  # fmt: skip
