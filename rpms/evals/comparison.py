"""Runs side by side: models, commits, or the same thing twice; never two protocols unasked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rpms.evals.conditions import ON_THE_CARD, effective
from rpms.evals.joined_runs import folder_names
from rpms.evals.measures import Metric, by_task, holm, metric_of, pair, shared_tasks
from rpms.evals.protocol_card import card_differences, card_text, protocol_card
from rpms.evals.records import Episode
from rpms.evals.report.results import figure, gain
from rpms.evals.report.source import names, quantity, source_of
from rpms.evals.run_folder import Run, read_run
from rpms.evals.tables import NONE, Cell, Table, count, label, p_value
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError

# What the card tells already, under names of its own.
_ON_THE_CARD = {"max_steps", "seed", "temperature", "trials", "repeats", "limit"}


class Side(NamedTuple):
    """A run in a comparison: what it is called, and the conditions the first run has too."""

    name: str
    run: Run
    shared: list[str]


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
    """Pair runs with the first one by condition and task.

    Args:
        runs: two or more.
        allow_differences: go on where the protocols differ.

    Raises:
        RpmsError: there is nothing to pair, or the protocols differ.
    """
    if len(runs) < 2:
        raise RpmsError("give at least two runs to compare")
    first, others = runs[0], runs[1:]
    called = ("first", "second") if len(runs) == 2 else tuple(row_names(runs))
    sides = [Side(name, run, _shared(first, run)) for name, run in zip(called, runs, strict=True)]
    differences: list[str] = []
    protocols: list[str] = []
    for name, run, shared in sides[1:]:
        cards = [protocol_card(side.manifest, shared) for side in (first, run)]
        if departures := card_differences(*cards):
            protocols.append(f"{run.folder}: {', '.join(departures)}")
        lines = [*departures, *_differences(first, run, shared)]
        differences += lines if len(others) == 1 else [f"{name}: {line}" for line in lines]
    text = card_text(protocol_card(first.manifest))
    if protocols:
        if not allow_differences:
            raise RpmsError(
                f"the protocols differ, {'; '.join(protocols)}: the figures are not comparable; "
                "give --allow-differences (allow_differences=True) to see them side by side"
            )
        text += f". The protocols DIFFER, {'; '.join(protocols)}"
    metric = metric_of(first.manifest.env)
    models, pairs = models_table(runs, metric), pairs_table(sides, metric)
    tables = [models, pairs]
    if len(others) == 1:
        tables = [pairs, changes_table(sides[0], sides[1], metric), models]
    return Comparison(
        tuple(source_of(run) for run in runs),
        called,
        text,
        differences,
        [replace(table, protocol=text) for table in tables],
    )


def row_names(runs: Sequence[Run]) -> list[str]:
    """What tells the runs apart: their models, else their folders."""
    labels = [run.manifest.model_label for run in runs]
    return [
        label if labels.count(label) == 1 else folder
        for label, folder in zip(labels, folder_names(runs), strict=True)
    ]


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


def models_table(runs: Sequence[Run], metric: Metric) -> Table:
    """The paper's table: a row for each model (or run), a column for each condition."""
    conditions = list(dict.fromkeys(name for run in runs for name in run.conditions))
    named = list(zip(row_names(runs), runs, strict=True))
    cells = [
        [label(row), *(
            figure(run.judged(name), metric) if name in run.conditions else Cell(NONE)
            for name in conditions
        )]
        for row, run in named
    ]  # fmt: skip
    what = "Mean floored score" if metric == "score" else "Success rate, won/played"
    notes = [f"{what}, and its 95% interval, over the tasks that each run finished without error."]
    return Table(
        "models", "Models x conditions", _source(named), ["", *map(names, conditions)], cells,
        notes=[*notes, *_unfinished(named)],
    )  # fmt: skip


def pairs_table(sides: Sequence[Side], metric: Metric) -> Table:
    """Each later run against the first, by condition, over the tasks that both finished."""
    first, alone = sides[0], len(sides) == 2
    chosen = [(side, name) for side in sides[1:] for name in side.shared]
    rows = _paired(first.run, [(side.run, name) for side, name in chosen], metric)
    this, difference = ("second", "second - first") if alone else ("this run", "difference")
    columns = ["condition", "tasks", first.name, this, difference, f"only {first.name} won",
               f"only {this} won", "Wilcoxon p" if metric == "score" else "McNemar p",
               "Holm"]  # fmt: skip
    note = "Over the tasks that both runs finished without an error; brackets are 95% intervals."
    cells = [
        [*([] if alone else [label(side.name)]), label(names(name)), *row]
        for (side, name), row in zip(chosen, rows, strict=True)
    ]
    return Table(
        "summary" if alone else "pairs",
        "Two runs by condition" if alone else f"Each run against {first.name}",
        _source(side[:2] for side in sides),
        columns if alone else ["run", *columns],
        cells,
        notes=[note if alone else f"{note} Holm corrects for the number of rows.",
               *_left_out(sides)],
        labels=1 if alone else 2,
    )  # fmt: skip


def changes_table(first: Side, second: Side, metric: Metric) -> Table:
    """Every task whose outcome is another one."""
    rows = []
    for name in second.shared:
        before, after = by_task(first.run.judged(name)), by_task(second.run.judged(name))
        for task in shared_tasks(before, after):
            if _outcome(before[task], metric) != _outcome(after[task], metric):
                ended = (_ended(side[task], metric) for side in (before, after))
                rows.append([label(names(name)), label(task), *ended])
    return Table(
        "changes", f"Tasks whose outcome changed: {len(rows)}", _source([first[:2], second[:2]]),
        ["condition", "task", "first", "second"], rows, labels=2,
    )  # fmt: skip


def _paired(first: Run, others: Sequence[tuple[Run, str]], metric: Metric) -> list[list[Cell]]:
    """For each run and condition: both figures, the difference, and the test."""
    pairs = [pair(first.judged(name), run.judged(name), metric) for run, name in others]
    p_values = [paired.p_score if metric == "score" else paired.p for paired in pairs]
    rows = []
    for (run, name), paired, p, corrected in zip(
        others, pairs, p_values, holm(p_values), strict=True
    ):
        sides = [by_task(first.judged(name)), by_task(run.judged(name))]
        tasks = shared_tasks(*sides)
        rows.append([
            count(paired.n),
            *(figure([side[task] for task in tasks], metric) for side in sides),
            gain(paired.difference, paired.interval, metric),
            count(paired.only_first), count(paired.only_second), p_value(p), p_value(corrected),
        ])  # fmt: skip
    return rows


def _source(named: Iterable[tuple[str, Run]]) -> str:
    return " | ".join(f"{name}: {source_of(run)}" for name, run in named)


def _left_out(sides: Sequence[Side]) -> list[str]:
    """Episodes that could not be paired, and why."""
    notes = []
    for name, run, shared in sides:
        errors = sum(e.is_error for condition in shared for e in run.played(condition))
        if errors:
            ended = quantity(errors, "episode")
            notes.append(f"Left out: {ended} of the {name} run that ended in an error.")
    return [*notes, *_unfinished((name, run) for name, run, _ in sides)]


def _unfinished(named: Iterable[tuple[str, Run]]) -> list[str]:
    return [
        f"The {name} run is not finished: {run.done} of {run.planned} episodes."
        for name, run in named
        if not run.complete
    ]


def _outcome(episode: Episode, metric: Metric) -> tuple[bool, float]:
    return episode.success, episode.score if metric == "score" else 0.0


def _ended(episode: Episode, metric: Metric) -> Cell:
    verdict = "won" if episode.success else (episode.failure_mode or "lost").replace("_", " ")
    if metric == "score":
        verdict = f"{episode.score:g} ({verdict})"
    value = {"success": episode.success, "score": episode.score, "mode": episode.failure_mode}
    return Cell(verdict, f"{episode.steps} steps", value)


def compare(folders: Sequence[str | Path], allow_differences: bool = False) -> Comparison:
    """Two or more runs side by side: ``tables``, ``differences``, ``as_json()``, ``as_markdown()``.

    Args:
        folders: run folders; the others are paired with the first.
        allow_differences: go on where the protocols differ.
    """
    return compare_runs([read_run(Path(folder)) for folder in folders], allow_differences)
