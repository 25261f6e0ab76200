"""One experiment with several runs: the same arms by other models, weights or seeds.

The runs are pooled into one: the episodes of a task in all runs are its repeats. So each task
counts once in every mean, interval and test, with the mean over the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from rpms.evals.analysis.arm_differences import code_differences
from rpms.evals.records.run_folder import Run
from rpms.evals.records.schema import Episode, PlannedTask

REPLICATED = ("model", "seed")
"""Settings in which the runs of one experiment may differ."""
SERVED = "base_url"
"""Other weights may be served under the same name of a model at another address."""


class Replicate(NamedTuple):
    """What distinguishes a run from the other runs of its experiment; all in printed form."""

    model: str
    seed: str
    server: str


def common_arms(runs: Sequence[Run], settings: Sequence[Mapping[str, dict[str, Any]]]) -> list[str]:
    """The arms of the one experiment that these are runs of; empty if they are none.

    Runs of the same model, seed and server that differ in the commit or in their arms are not: the
    reader compares the commits, or has split the arms over several runs.

    Args:
        runs: the runs.
        settings: of each run, the settings of each arm with an effect, and the commit.
    """
    first, *rest = settings
    arms = [label for label in first if all(label in other for other in rest)]
    fixed = [[_fixed(side[label]) for label in arms] for side in settings]
    if any(other != fixed[0] for other in fixed[1:]) or _code_differs(runs, arms):
        return []
    for (one, a), (other, b) in combinations(zip(runs, settings, strict=True), 2):
        same = replicate_of(one) == replicate_of(other)
        if same and (one.manifest.commits != other.manifest.commits or {*a} != {*b}):
            return []
    return arms


def _fixed(settings: Mapping[str, Any]) -> dict[str, Any]:
    free = (*REPLICATED, "commit")
    return {name: value for name, value in settings.items() if name not in free}


def _code_differs(runs: Sequence[Run], arms: Sequence[str]) -> bool:
    """True if the custom code of an arm differs, other than that of its model."""
    first, *rest = (run.manifest.swapped for run in runs)
    return any(
        {*code_differences(first.get(label, {}), other.get(label, {}))} - {"model code"}
        for other in rest
        for label in arms
    )


def replicate_of(run: Run) -> Replicate:
    """The model, seed and server of a run; of arms that differ in them, those of the first."""
    settings = next(iter(run.manifest.conditions.values()))
    server = run.manifest.base_url or str(settings.get(SERVED, ""))
    return Replicate(run.manifest.model, str(settings.get("seed", 0)), server)


def pooled_episodes(runs: Sequence[Run], arms: Sequence[str], tasks: Mapping[str, PlannedTask],
                    repeats: int) -> list[Episode]:  # fmt: skip
    """The episodes of the common arms and tasks; those of later runs have higher repeats."""
    return [
        episode.model_copy(update={"repeat": episode.repeat + number * repeats})
        for number, run in enumerate(runs)
        for episode in run.episodes.values()
        if episode.condition in arms and episode.task in tasks
    ]


def pooled_settings(
    runs: Sequence[Run], arms: Sequence[str], settings: Sequence[Mapping[str, dict[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """The settings of each arm; the models and seeds of all runs in one text if they differ."""
    pooled: dict[str, dict[str, Any]] = {}
    for label in arms:
        steps = settings[0][label]["max_steps"]
        pooled[label] = {**runs[0].manifest.conditions[label], "max_steps": steps}
        for name in REPLICATED:
            values = dict.fromkeys(side[label][name] for side in settings if name in side[label])
            if len(values) > 1:
                pooled[label][name] = ", ".join(map(str, values))
    return pooled


def run_names(run: Run) -> list[str]:
    """A short unique name for each run of an experiment: its model, seed, or folder."""
    places = [replicate_of(part) for part in run.parts]
    folders = [part.folder.resolve().name for part in run.parts]
    candidates = (
        [place.model for place in places],
        [f"seed {place.seed}" for place in places],
        [f"{place.model} seed {place.seed}" for place in places],
        folders,
    )
    unique = (names for names in candidates if len({*names}) == len(names))
    return next(unique, [f"run {number}" for number in range(1, len(places) + 1)])


def arms_left_out(run: Run) -> dict[str, list[str]]:
    """The arms that not every run has, each with the names of the runs that have it."""
    arms: dict[str, list[str]] = {}
    for name, part in zip(run_names(run), run.parts, strict=True):
        for label in part.conditions:
            if label not in run.manifest.conditions:
                arms.setdefault(label, []).append(name)
    return arms


def commits_text(run: Run) -> str:
    """``commit abc``, or each commit with its runs if they differ."""
    names: dict[str, list[str]] = {}
    for name, part in zip(run_names(run), run.parts, strict=True):
        names.setdefault(part.manifest.commits, []).append(name)
    if len(names) == 1:
        return f"commit {next(iter(names))}"
    parts = (f"{commit} ({', '.join(runs)})" for commit, runs in names.items())
    return f"the commits differ: {'; '.join(parts)}"
