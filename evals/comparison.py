"""Two runs side by side: two models, two commits, or the same thing twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rpms.evals.measures import Metric, by_task, metric_of, pair, shared_tasks
from rpms.evals.report.results import figure, gain
from rpms.evals.report.source import names, source_of
from rpms.evals.run_files import Episode, Run
from rpms.evals.statistics import holm
from rpms.evals.tables import Cell, Table, count, label, p_value
from rpms.vocabulary.errors import RpmsError


@dataclass(frozen=True)
class Comparison:
    """What differs between two runs, in settings and in outcomes."""

    sources: tuple[str, str]
    differences: list[str]
    tables: list[Table]

    def as_json(self) -> dict[str, Any]:
        """One object for programs."""
        return {
            "format": 1,
            "first": self.sources[0],
            "second": self.sources[1],
            "differences": self.differences,
            "tables": {table.id: table.as_json() for table in self.tables},
        }


def compare_runs(first: Run, second: Run) -> Comparison:
    """Pair two runs by condition and task; refused where there is nothing to pair."""
    if first.manifest.env != second.manifest.env:
        raise RpmsError(
            f"{first.folder} is {first.manifest.env}, {second.folder} is {second.manifest.env}: "
            "two environments have no task in common"
        )
    shared = [name for name in first.conditions if name in second.conditions]
    if not shared:
        raise RpmsError(
            f"no condition in common: {first.folder} has {', '.join(first.conditions)}; "
            f"{second.folder} has {', '.join(second.conditions)}"
        )
    if not {t.id for t in first.manifest.tasks} & {t.id for t in second.manifest.tasks}:
        raise RpmsError(
            f"no task in common: {first.folder} is split {first.manifest.split}, "
            f"{second.folder} is split {second.manifest.split}"
        )
    metric = metric_of(first.manifest.env)
    tables = [_summary(first, second, shared, metric), _changes(first, second, shared, metric)]
    sources = (source_of(first), source_of(second))
    return Comparison(sources, list(_differences(first, second, shared)), tables)


def _source(first: Run, second: Run) -> str:
    return f"first: {source_of(first)} | second: {source_of(second)}"


def _summary(first: Run, second: Run, shared: list[str], metric: Metric) -> Table:
    pairs = [pair(first.judged(name), second.judged(name), metric) for name in shared]
    p_values = [found.p_score if metric == "score" else found.p for found in pairs]
    rows = []
    for name, found, p, corrected in zip(shared, pairs, p_values, holm(p_values), strict=True):
        left, right = by_task(first.judged(name)), by_task(second.judged(name))
        tasks = shared_tasks(left, right)
        rows.append([
            label(names(name)), count(found.n),
            figure([left[task] for task in tasks], metric),
            figure([right[task] for task in tasks], metric),
            gain(found.difference, found.interval, metric),
            count(found.only_first), count(found.only_second), p_value(p), p_value(corrected),
        ])  # fmt: skip
    columns = ["condition", "tasks", "first", "second", "second - first", "only first won"]
    columns += ["only second won", "Wilcoxon p" if metric == "score" else "McNemar p", "Holm"]
    return Table(
        "summary", "Two runs by condition", _source(first, second), columns, rows,
        notes=["Over the tasks that both runs finished without an error; brackets are 95% "
               "intervals.", *_left_out(first, second, shared)],
    )  # fmt: skip


def _left_out(first: Run, second: Run, shared: list[str]) -> list[str]:
    """Episodes that could not be paired, and why."""
    notes = []
    for name, run in (("first", first), ("second", second)):
        errors = sum(e.is_error for condition in shared for e in run.played(condition))
        if errors:
            notes.append(f"{errors} episodes of the {name} run ended in an error and are left out.")
        if not run.complete:
            done = f"{run.done} of {run.planned}"
            notes.append(f"The {name} run is not finished: {done} episodes.")
    return notes


def _changes(first: Run, second: Run, shared: list[str], metric: Metric) -> Table:
    rows = []
    for name in shared:
        left, right = by_task(first.judged(name)), by_task(second.judged(name))
        for task in shared_tasks(left, right):
            before, after = left[task], right[task]
            if _outcome(before, metric) != _outcome(after, metric):
                cells = [_told(before, metric), _told(after, metric)]
                rows.append([label(names(name)), label(task), *cells])
    return Table(
        "changes", f"Tasks whose outcome changed: {len(rows)}", _source(first, second),
        ["condition", "task", "first", "second"], rows, labels=2,
    )  # fmt: skip


def _outcome(episode: Episode, metric: Metric) -> tuple[bool, float]:
    return episode.success, episode.score if metric == "score" else 0.0


def _told(episode: Episode, metric: Metric) -> Cell:
    verdict = "won" if episode.success else (episode.failure_mode or "lost").replace("_", " ")
    if metric == "score":
        verdict = f"{episode.score:g} ({verdict})"
    value = {"success": episode.success, "score": episode.score, "mode": episode.failure_mode}
    return Cell(verdict, f"{episode.steps} steps", value)


def _differences(first: Run, second: Run, shared: list[str]) -> list[str]:
    """What was set differently: the causes to look for first."""
    found = []
    for what in ("model_label", "base_url", "split", "commit"):
        one, other = getattr(first.manifest, what), getattr(second.manifest, what)
        if one != other:
            found.append(f"{what.replace('_label', '')}: {one or '(none)'} -> {other or '(none)'}")
    if first.manifest.hashes.rules != second.manifest.hashes.rules:
        found.append("the rule manual differs")
    memories = first.manifest.hashes.memory, second.manifest.hashes.memory
    found += [
        f"the memory of {name} differs"
        for name in sorted(memories[0].keys() & memories[1].keys())
        if memories[0][name] != memories[1][name]
    ]
    for name in sorted({*first.manifest.settings, *second.manifest.settings}):
        one, other = first.manifest.settings.get(name), second.manifest.settings.get(name)
        if one != other:
            found.append(f"{name}: {one} -> {other}")
    for label_ in shared:
        mine, other = first.manifest.conditions[label_], second.manifest.conditions[label_]
        fields = [k for k in sorted({*mine, *other} - {"model", "base_url"})
                  if mine.get(k) != other.get(k)]  # fmt: skip
        found += [f"{label_}, {k}: {mine.get(k)} -> {other.get(k)}" for k in fields]
    return found
