"""``rpms learn``: from episodes to a frozen snapshot, on the evaluation runner."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rpms.envs import get_environment
from rpms.evals.experience import Experience, check_usual, find_runs, gather
from rpms.evals.learning import learn
from rpms.evals.plan import make_plan
from rpms.evals.rounds import RULES_ONLY, round_context, round_folder
from rpms.evals.run_files import read_run
from rpms.evaluating import Effort, play_plan
from rpms.memory_store import write_snapshot
from rpms.models.response_cache import default_file
from rpms.nodes.context import RunContext
from rpms.nodes.manual import manual_for
from rpms.rules import Manual
from rpms.vocabulary.errors import RpmsError

NAMED = 5
"""How many failed episodes are named; the run folder has them all."""


@dataclass(frozen=True)
class Lesson:
    """What is learned from, and where it goes.

    Attributes:
        out: the snapshot to write.
        env: the world.
        split: its tasks; empty for the world's learning split.
        condition: what to play under or to take; empty for Rules-only.
        allowed: why anything but Rules-only on a learning split may be learned from.
    """

    out: Path
    env: str
    split: str = ""
    condition: str = ""
    allowed: str = ""


def learn_rounds(
    lesson: Lesson, base: RunContext, rounds: int, limit: int, runs: Path, effort: Effort
) -> None:
    """Rounds 1..N, with a snapshot of everything learned so far after each of several.

    Every round is a run folder of its own: called again, what is finished there is not played
    again, and what ended in an error is.
    """
    if rounds < 1:
        raise RpmsError("--rounds must be at least 1")
    env, split = lesson.env, lesson.split or get_environment(lesson.env).learning_split
    label = lesson.condition or RULES_ONLY
    check_usual(env, split, asdict(round_context(base, 1, label)), lesson.allowed)
    manual = manual_for(env, base)  # a mistake in it is told before anything is played
    folders: list[Path] = []
    for number in range(1, rounds + 1):
        context = round_context(base, number, label)
        plan = make_plan(env, split, {label: context}, limit, cache=str(default_file()))
        folders.append(round_folder(runs, number))
        play_plan(plan, str(folders[-1]), effort)
        found = gather([read_run(one) for one in folders], allowed=lesson.allowed)
        targets = [lesson.out.with_suffix(f".round{number}.jsonl")] if rounds > 1 else []
        # The output itself is only ever replaced by a whole one.
        _write([*targets, *([lesson.out] if number == rounds else [])], env, found, manual)
        _name_failed(found, "; run the same command again to play them again")


def learn_from_folder(runs: Path, lesson: Lesson, base: RunContext | None = None) -> None:
    """Learn from episodes that were recorded before; of ``base`` only the rules count."""
    manual = manual_for(lesson.env, base or RunContext())
    found = gather(find_runs(runs, lesson.env, lesson.split), lesson.condition, lesson.allowed)
    _write([lesson.out], lesson.env, found, manual)
    _name_failed(found)


def _write(targets: Sequence[Path], env: str, found: Experience, manual: Manual) -> None:
    entries = learn(found.records, manual)
    for target in targets:
        header = write_snapshot(
            target, env, entries, found.sources, found.rounds, learned_by=found.players
        )
        counts = ", ".join(f"{count} {name}" for name, count in header.counts.items())
        print(f"{target}: {header.entries} entries ({counts}) from {len(found.records)} episodes")


def _name_failed(found: Experience, advice: str = "") -> None:
    """Episodes that taught nothing because the model or the simulator broke down in them."""
    for told in found.failed[:NAMED]:
        print(f"rpms: not learned from: {told}", file=sys.stderr)
    if found.failed:
        print(f"rpms: {len(found.failed)} episodes ended in an error{advice}", file=sys.stderr)
