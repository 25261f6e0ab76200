"""Runs side by side: models, commits, or the same thing twice; never two protocols unasked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rpms.evals.comparison_tables import (
    Side,
    against_first,
    changes,
    models_table,
    summary,
)
from rpms.evals.labels import ON_THE_CARD, effective, find_label
from rpms.evals.measures import metric_of
from rpms.evals.protocol import card_differences, card_text, protocol_card
from rpms.evals.report.source import source_of
from rpms.evals.run_files import Run, read_run
from rpms.evals.tables import Table
from rpms.nodes.context import RunContext
from rpms.vocabulary.errors import RpmsError

# What the card tells already, under names of its own.
_ON_THE_CARD = {"max_steps", "seed", "temperature", "trials", "repeats", "limit"}


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
        found = [f"- {line}" for line in self.differences] or ["- nothing that is recorded"]
        head = ["# Runs compared", *runs, "", "What was set differently:", "", *found, ""]
        return "\n".join([*head, *(table.as_markdown() for table in self.tables)])


def compare_runs(
    runs: Sequence[Run], mapping: Mapping[str, str] | None = None, allow_differences: bool = False
) -> Comparison:
    """Pair runs with the first one by condition and task.

    Args:
        runs: two or more.
        mapping: labels to be read as others, in every run that has them.
        allow_differences: go on where the protocols differ.

    Raises:
        RpmsError: there is nothing to pair, or the protocols differ.
    """
    if len(runs) < 2:
        raise RpmsError("give at least two runs to compare")
    runs = relabelled(runs, mapping or {})
    first, others = runs[0], runs[1:]
    called = ("first", "second") if len(runs) == 2 else tuple(row_names(runs))
    sides = [Side(name, run, _shared(first, run)) for name, run in zip(called, runs, strict=True)]
    protocols = [_protocol_differences(first, side.run, side.shared) for side in sides[1:]]
    if any(protocols) and not allow_differences:
        raise RpmsError(
            f"the protocols differ, {_told(others, protocols)}: the figures are not comparable; "
            "give --allow-differences (allow_differences=True) to see them side by side"
        )
    alone = len(others) == 1
    differences: list[str] = []
    for side, protocol in zip(sides[1:], protocols, strict=True):
        lines = [*protocol, *_differences(first, side.run, side.shared)]
        differences += lines if alone else [f"{side.name}: {line}" for line in lines]
    metric = metric_of(first.manifest.env)
    models = models_table(runs, row_names(runs), metric)
    if alone:
        one, other = sides
        tables = [summary(one, other, metric), changes(one, other, metric), models]
    else:
        tables = [models, against_first(sides, metric)]
    text = card_text(protocol_card(first.manifest))
    if any(protocols):
        text += f". The protocols DIFFER, {_told(others, protocols)}"
    return Comparison(
        tuple(source_of(run) for run in runs),
        called,
        text,
        differences,
        [replace(table, protocol=text) for table in tables],
    )


def relabelled(runs: Sequence[Run], mapping: Mapping[str, str]) -> list[Run]:
    """The runs with their conditions called by other names."""
    known = dict.fromkeys(label for run in runs for label in run.conditions)
    for label in mapping:
        if label not in known:
            raise RpmsError(f"--map: no run has a condition '{label}'; {_listed(known)}")
    return [_relabel(run, mapping) for run in runs]


def read_mapping(words: Iterable[str], runs: Sequence[Run]) -> dict[str, str]:
    """``OLD=NEW`` as given on the command line; a label may have ``=`` in it itself."""
    known = dict.fromkeys(label for run in runs for label in run.conditions)
    found: dict[str, str] = {}
    for word in words:
        cuts = [i for i, sign in enumerate(word)
                if sign == "=" and find_label(word[:i].strip(), known) in known]  # fmt: skip
        if not cuts or not word[cuts[-1] + 1 :].strip():
            raise RpmsError(f"--map {word}: give OLD=NEW with a condition first; {_listed(known)}")
        old, new = word[: cuts[-1]].strip(), word[cuts[-1] + 1 :].strip()
        found[find_label(old, known)] = find_label(new, known)
    return found


def row_names(runs: Sequence[Run]) -> list[str]:
    """What tells the runs apart: their models, else their folders."""
    labels = [run.manifest.model_label for run in runs]
    folders = [run.folder.name for run in runs]
    if len(set(folders)) < len(folders):
        folders = [str(run.folder) for run in runs]
    return [
        label if labels.count(label) == 1 else folder
        for label, folder in zip(labels, folders, strict=True)
    ]


def _relabel(run: Run, mapping: Mapping[str, str]) -> Run:
    def name(label: str) -> str:
        return mapping.get(label, label)

    conditions = {name(label): context for label, context in run.manifest.conditions.items()}
    if len(conditions) < len(run.conditions):
        raise RpmsError(
            f"--map would give two conditions of {run.folder} one name: {', '.join(run.conditions)}"
        )
    hashes, swapped = run.manifest.hashes, run.manifest.swapped
    memory = {name(label): digest for label, digest in hashes.memory.items()}
    rules_of = {name(label): digest for label, digest in hashes.rules_of.items()}
    changed = {
        "conditions": conditions,
        "hashes": hashes.model_copy(update={"memory": memory, "rules_of": rules_of}),
        "swapped": {name(label): found for label, found in swapped.items()},
    }
    episodes = {
        key._replace(condition=name(key[0])): episode.model_copy(
            update={"condition": name(key.condition)}
        )
        for key, episode in run.episodes.items()
    }
    return replace(run, manifest=run.manifest.model_copy(update=changed), episodes=episodes)


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
            f"{second.folder} has {', '.join(second.conditions)}; --map OLD=NEW renames them"
        )
    if not {t.id for t in first.manifest.tasks} & {t.id for t in second.manifest.tasks}:
        raise RpmsError(
            f"no task in common: {first.folder} is split {first.manifest.split}, "
            f"{second.folder} is split {second.manifest.split}"
        )
    return shared


def _protocol_differences(first: Run, second: Run, shared: Sequence[str]) -> list[str]:
    cards = [protocol_card(run.manifest, shared) for run in (first, second)]
    return card_differences(*cards)


def _told(others: Sequence[Run], protocols: Sequence[list[str]]) -> str:
    return "; ".join(
        f"{run.folder}: {', '.join(found)}"
        for run, found in zip(others, protocols, strict=True)
        if found
    )


def _listed(labels: Iterable[str]) -> str:
    return f"there are: {', '.join(labels)}"


def _differences(first: Run, second: Run, shared: Sequence[str]) -> Iterator[str]:
    """What else was set differently: the causes to look for first."""
    for what, field in (("model", "model_label"), ("base_url", "base_url"), ("commit", "commits")):
        one, other = getattr(first.manifest, field), getattr(second.manifest, field)
        if one != other:
            yield f"{what}: {one or '(none)'} -> {other or '(none)'}"
    for name in sorted({*first.manifest.settings, *second.manifest.settings} - _ON_THE_CARD):
        one, other = first.manifest.settings.get(name), second.manifest.settings.get(name)
        if one != other:
            yield f"{name}: {one} -> {other}"
    usual = RunContext().plain
    for label in shared:
        mine, yours = (
            effective({**usual, **run.manifest.conditions[label]}) for run in (first, second)
        )
        for name in sorted({*mine, *yours} - ON_THE_CARD):
            if mine.get(name) != yours.get(name):
                yield f"{label}, {name}: {mine.get(name)} -> {yours.get(name)}"


def compare(
    folders: Sequence[str | Path],
    map: Mapping[str, str] | Sequence[str] = (),
    allow_differences: bool = False,
) -> Comparison:
    """Two or more runs side by side: ``tables``, ``differences``, ``as_json()``, ``as_markdown()``.

    Args:
        folders: run folders; the others are paired with the first.
        map: labels to be read as others, as a dictionary or as ``OLD=NEW``.
        allow_differences: go on where the protocols differ.
    """
    runs = [read_run(Path(folder)) for folder in folders]
    if isinstance(map, Mapping):
        known = {label for run in runs for label in run.conditions}
        mapping = {find_label(old, known): find_label(new, known) for old, new in map.items()}
    else:
        mapping = read_mapping(map, runs)
    return compare_runs(runs, mapping, allow_differences)
