"""What may be learned from: rounds of Rules-only on a learning split, and where they come from.

The paper gathers experience under Rules-only on seen tasks, each round an ordinary run. Episodes
of another condition, of a guarded agent or of the tasks that are to be judged make another memory:
that takes a word from the user, and the word stays in the snapshot's header.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rpms.envs import get_environment
from rpms.evals.conditions import find_label
from rpms.evals.run_folder import MANIFEST, Run, read_records, read_run
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import is_folder
from rpms.vocabulary.turn import EpisodeRecord

# Greedy decoding repeats itself, so later rounds sample: that is where new experience comes from.
LATER_TEMPERATURE = 0.7
RULES_ONLY = "B"


def round_context(base: RunContext, number: int, condition: str = RULES_ONLY) -> RunContext:
    """Rules-only unless another condition was asked for, with a seed of its own per round."""
    temperature = base.temperature if number == 1 else max(base.temperature, LATER_TEMPERATURE)
    return base.under(condition).with_(temperature=temperature, seed=base.seed + number - 1)


# Splits whose names say that their tasks are for learning.
FOR_LEARNING = {"train", "seen"}


@dataclass(frozen=True)
class Experience:
    """Episodes to learn from.

    Attributes:
        records: the episodes themselves, those that ended in an error left out.
        sources: where they come from, in words.
        players: the models or policies that played them.
        rounds: how often the tasks were played.
        failed: the episodes that ended in an error, and with which.
        damaged: how many lines of the runs could not be read.
    """

    records: list[EpisodeRecord]
    sources: list[str]
    players: list[str]
    rounds: int
    failed: list[str] = field(default_factory=list)
    damaged: int = 0


def find_runs(folder: Path, env: str, split: str = "") -> list[Run]:
    """Every run of a world, or of one split of it, in a folder or below it."""
    files = sorted(folder.rglob(MANIFEST)) if is_folder(folder) else []
    if not files:
        raise RpmsError(
            f"no {MANIFEST} in {folder}; give a folder that 'rpms eval' or 'rpms learn' wrote"
        )
    runs = [
        run for run in (read_run(file.parent) for file in files)
        if run.manifest.env == env and split in ("", run.manifest.split)
    ]  # fmt: skip
    if not any(run.episodes for run in runs):
        raise RpmsError(f"{folder} holds no episodes of {f'{env} {split}'.rstrip()}")
    return runs


def gather(runs: Sequence[Run], condition: str = "", allowed: str = "") -> Experience:
    """What some runs have to teach.

    Args:
        runs: runs of one world.
        condition: the one label to take; empty for all of them.
        allowed: why something other than Rules-only on a learning split may be learned from.
    """
    records: list[EpisodeRecord] = []
    failed: list[str] = []
    # By what runs must share to be rounds of one thing: episodes learned from, and planned.
    rounds: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    players: set[str] = set()
    for run in runs:
        for label in _chosen(run, condition):
            departures = list(unusual(run.manifest.env, run.manifest.split, run.settings(label)))
            if departures and not allowed:
                raise RpmsError(_refusal(f"{run.folder}, condition {label}", departures))
            learned = read_records(run, [label])
            records += learned
            failed += [
                f"{episode.task}: {episode.error}"
                for episode in run.played(label)
                if episode.is_error
            ]
            origin = (*_origin(run, label), *departures)
            rounds[origin].append((len(learned), len(run.manifest.tasks)))
            players.add(run.model(label))
    if not records:
        raise RpmsError(
            f"nothing to learn from in {', '.join(str(run.folder) for run in runs)}"
            + (f": the first error was {failed[0]}" if failed else "")
        )
    sources = [_source(origin, counts, allowed) for origin, counts in rounds.items()]
    often, damaged = max(map(len, rounds.values())), sum(len(run.damaged) for run in runs)
    return Experience(records, sources, sorted(players), often, failed, damaged)


def unusual(env: str, split: str, context: Mapping[str, Any]) -> Iterator[str]:
    """What sets episodes apart from the paper's learning phase; nothing for Rules-only."""
    if not is_learning_split(env, split):
        yield "not a learning split"
    if not context.get("rules"):
        yield "without rules"
    if context.get("memory"):
        yield "with memory"
    if (guard := context.get("guard", "off")) != "off":
        yield f"guard {guard}"


def is_learning_split(env: str, split: str) -> bool:
    """Whether the tasks are there to be learned from; the paper learns on seen ones."""
    return split == get_environment(env).learning_split or bool(FOR_LEARNING & {*split.split("_")})


def check_usual(env: str, split: str, context: Mapping[str, Any], allowed: str) -> None:
    """Refuse to play what would not be learned from."""
    if not allowed and (departures := list(unusual(env, split, context))):
        raise RpmsError(_refusal(f"{env} {split}", departures))


def _refusal(what: str, departures: Sequence[str]) -> str:
    return (
        f"{what}: {', '.join(departures)}. Memory is learned under Rules-only (condition B, no "
        'guard) on a learning split; choose with --condition and --split, or say --allow "why", '
        "which is kept in the memory's header"
    )


def _chosen(run: Run, condition: str) -> list[str]:
    if not condition:
        return run.conditions
    condition = find_label(condition, run.conditions)
    if condition not in run.conditions:
        raise RpmsError(
            f"{run.folder} has no condition '{condition}'; it has {', '.join(run.conditions)}"
        )
    return [condition]


def _origin(run: Run, label: str) -> tuple[str, ...]:
    manifest = run.manifest
    return (
        run.model(label),
        f"{manifest.env} {manifest.split}",
        f"{len(manifest.tasks)} tasks",
        f"condition {label}{_own_rules(run.settings(label))}",
        f"commit {manifest.commits}",
    )


def _own_rules(context: Mapping[str, Any]) -> str:
    """Another manual than the one shipped makes another memory."""
    own = {"rules": context.get("rules_dir"), "without": context.get("without_rules")}
    return "".join(f" {word} {value}" for word, value in own.items() if value)


def _source(origin: Sequence[str], rounds: Sequence[tuple[int, int]], allowed: str) -> str:
    model, where, tasks, condition, commit, *departures = origin
    often = f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}"
    parts = [model, where, tasks, f"{often} of {condition}"]
    learned, planned = map(sum, zip(*rounds, strict=True))
    if learned < planned:
        parts.append(f"{learned} of {planned} episodes")
    if departures:
        parts.append(f"{', '.join(departures)} (allowed: {' '.join(allowed.split())})")
    return ", ".join([*parts, commit])
