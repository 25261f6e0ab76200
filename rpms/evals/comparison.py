"""Two runs side by side: models, commits, or the same thing twice; never two protocols unasked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rpms.evals.arm_differences import code_differences
from rpms.evals.conditions import ON_THE_CARD, effective
from rpms.evals.measures import Metric, by_task, holm, metric_of, pair, shared_tasks, wins_of
from rpms.evals.protocol_card import card_differences, card_text, protocol_card
from rpms.evals.records import Episode
from rpms.evals.report.results import figure, gain, win_test
from rpms.evals.report.source import names, source_of
from rpms.evals.run_folder import Run, read_run
from rpms.evals.tables import Cell, Table, count, label, p_value
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.output import quantity

# What the card tells already, under names of its own.
_ON_THE_CARD = {"max_steps", "seed", "temperature", "trials", "repeats", "limit"}


NAMES = ("first", "second")


@dataclass(frozen=True)
class Comparison:
    """What differs between runs, in settings and in outcomes.

    Attributes:
        sources: what each run is a run of.
        names: what each is called in the tables.
        protocol: the card they share; what differs stands in it as ``one -> other``.
        differences: what was set differently, protocol first.
        tables: the outcomes.
    """

    sources: tuple[str, ...]
    names: tuple[str, ...]
    protocol: str
    differences: list[str]
    tables: list[Table]

    def as_json(self) -> dict[str, Any]:
        """One object for programs."""
        return {
            "format": 1,
            "runs": dict(zip(self.names, self.sources, strict=True)),
            "protocol": self.protocol,
            "differences": self.differences,
            "tables": {table.id: table.as_json() for table in self.tables},
        }

    def as_markdown(self) -> str:
        """What was compared, what was set differently, and all tables."""
        runs = [f"- {n}: {s}" for n, s in zip(self.names, self.sources, strict=True)]
        differences = [f"- {line}" for line in self.differences] or ["- nothing that is recorded"]
        head = ["# Runs compared", *runs, "", "What was set differently:", "", *differences, ""]
        return "\n".join([*head, *(table.as_markdown() for table in self.tables)])


def compare_runs(runs: Sequence[Run], allow_differences: bool = False) -> Comparison:
    """Pair two runs by condition and task; refused where the protocols differ unasked."""
    if len(runs) != len(NAMES):
        raise RpmsError("give two runs to compare; 'rpms report' puts any number of them together")
    first, second = runs
    shared = _shared(first, second)
    departures = card_differences(*(protocol_card(run.manifest, shared) for run in runs))
    text = card_text(protocol_card(first.manifest))
    if departures:
        protocols = f"{second.folder}: {', '.join(departures)}"
        if not allow_differences:
            raise RpmsError(
                f"the protocols differ, {protocols}: the figures are not comparable; "
                "give --allow-differences (allow_differences=True) to see them side by side"
            )
        text += f". The protocols DIFFER, {protocols}"
    tables = (summary_table(first, second, shared), changes_table(first, second, shared))
    return Comparison(
        (source_of(first), source_of(second)),
        NAMES,
        text,
        [*departures, *_differences(first, second, shared)],
        [replace(table, protocol=text) for table in tables],
    )


def _shared(first: Run, second: Run) -> list[str]:
    """The conditions both have; refused where there is nothing to pair."""
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
    return shared


def _differences(first: Run, second: Run, shared: Sequence[str]) -> Iterator[str]:
    """What else was set differently: the causes to look for first."""
    for what, field in (("model", "model_label"), ("base_url", "base_url"), ("commit", "commits")):
        mine, yours = getattr(first.manifest, field), getattr(second.manifest, field)
        if mine != yours:
            yield f"{what}: {mine or '(none)'} -> {yours or '(none)'}"
    for name in sorted({*first.manifest.settings, *second.manifest.settings} - _ON_THE_CARD):
        mine, yours = first.manifest.settings.get(name), second.manifest.settings.get(name)
        if mine != yours:
            yield f"{name}: {mine} -> {yours}"
    usual = RunContext().plain
    for condition in shared:
        mine, yours = (
            effective({**usual, **run.manifest.conditions[condition]}) for run in (first, second)
        )
        for name in sorted({*mine, *yours} - ON_THE_CARD):
            if mine.get(name) != yours.get(name):
                yield f"{condition}, {name}: {mine.get(name)} -> {yours.get(name)}"
        code = (run.manifest.swapped.get(condition, {}) for run in (first, second))
        for name, values in code_differences(*code).items():
            yield f"{condition}, {name}: {values.replace(' | ', ' -> ')}"


def summary_table(first: Run, second: Run, shared: Sequence[str]) -> Table:
    """The second run against the first, by condition, over the tasks that both finished."""
    metric = metric_of(first.manifest.env)
    pairs = [pair(first.judged(name), second.judged(name), metric) for name in shared]
    p_values = [paired.p_score if metric == "score" else paired.p for paired in pairs]
    rows = []
    for name, paired, p, corrected in zip(shared, pairs, p_values, holm(p_values), strict=True):
        sides = [by_task(run.judged(name)) for run in (first, second)]
        tasks = shared_tasks(*sides)
        rows.append([
            label(names(name)), count(paired.n),
            *(figure([e for task in tasks for e in side[task]], metric) for side in sides),
            gain(paired.difference, paired.interval, metric),
            count(paired.only_first), count(paired.only_second), p_value(p), p_value(corrected),
        ])  # fmt: skip
    test, won = win_test(max(first.repeats, second.repeats))
    columns = ["condition", "tasks", *NAMES, "second - first", *won,
               "Wilcoxon p" if metric == "score" else f"{test} p", "Holm"]  # fmt: skip
    note = "Over the tasks that both runs finished without an error; brackets are 95% intervals."
    return Table(
        "summary", "Two runs by condition", _source(first, second), columns, rows,
        notes=[note, *_left_out((first, second), shared)],
    )  # fmt: skip


def changes_table(first: Run, second: Run, shared: Sequence[str]) -> Table:
    """Every task whose outcome is another one."""
    metric, rows = metric_of(first.manifest.env), []
    for name in shared:
        before, after = by_task(first.judged(name)), by_task(second.judged(name))
        for task in shared_tasks(before, after):
            if _outcome(before[task], metric) != _outcome(after[task], metric):
                ended = (_ended(side[task], metric) for side in (before, after))
                rows.append([label(names(name)), label(task), *ended])
    return Table(
        "changes", f"Tasks whose outcome changed: {len(rows)}", _source(first, second),
        ["condition", "task", *NAMES], rows, labels=2,
    )  # fmt: skip


def _source(*runs: Run) -> str:
    return " | ".join(f"{n}: {source_of(run)}" for n, run in zip(NAMES, runs, strict=True))


def _left_out(runs: Sequence[Run], shared: Sequence[str]) -> Iterator[str]:
    """Episodes that could not be paired, and why."""
    for name, run in zip(NAMES, runs, strict=True):
        if errors := sum(e.is_error for condition in shared for e in run.played(condition)):
            ended = quantity(errors, "episode")
            yield f"Left out: {ended} of the {name} run that ended in an error."
        if not run.complete:
            yield f"The {name} run is not finished: {run.done} of {run.planned} episodes."


def _outcome(repeats: Sequence[Episode], metric: Metric) -> tuple[object, ...]:
    """What changes between two runs, in whatever order the repeats of a task ended."""
    return wins_of(repeats), *sorted(e.score for e in repeats if metric == "score")


def _ended(repeats: Sequence[Episode], metric: Metric) -> Cell:
    if len(repeats) > 1:
        return _ended_often(repeats, metric)
    (episode,) = repeats
    verdict = "won" if episode.success else (episode.failure_mode or "lost").replace("_", " ")
    if metric == "score":
        verdict = f"{episode.score:g} ({verdict})"
    value = {"success": episode.success, "score": episode.score, "mode": episode.failure_mode}
    return Cell(verdict, f"{episode.steps} steps", value)


def _ended_often(repeats: Sequence[Episode], metric: Metric) -> Cell:
    """How the repeats of a task ended, taken together."""
    won, n = sum(e.success for e in repeats), len(repeats)
    score, steps = (sum(values) / n for values in ([e.score for e in repeats],
                                                   [e.steps for e in repeats]))  # fmt: skip
    verdict = f"won {won} of {n}"
    if metric == "score":
        verdict = f"{score:.1f} ({verdict})"
    return Cell(verdict, f"{steps:.1f} steps", {"success": won / n, "score": score, "mode": None})


def compare(folders: Sequence[str | Path], allow_differences: bool = False) -> Comparison:
    """Two runs side by side: ``tables``, ``differences``, ``as_json()``, ``as_markdown()``.

    Args:
        folders: run folders; the second is paired with the first.
        allow_differences: go on where the protocols differ.
    """
    return compare_runs([read_run(Path(folder)) for folder in folders], allow_differences)
