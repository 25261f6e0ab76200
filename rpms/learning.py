"""``rpms learn``: from episodes to a frozen snapshot, on the evaluation runner."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rpms.envs import get_environment
from rpms.evals.experience import Experience, check_usual, find_runs, gather
from rpms.evals.plan import make_plan
from rpms.evals.rounds import RULES_ONLY, round_context, round_folder
from rpms.evals.run_files import read_run
from rpms.evaluating import Effort, play_plan, reply_file
from rpms.memory_store.snapshot import OWN
from rpms.nodes.context import RunContext
from rpms.nodes.memories import Learned, MemoryMethod, Origin, Writer, can_write, find_method
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
        method: whose memory it becomes.
    """

    out: Path
    env: str
    split: str = ""
    condition: str = ""
    allowed: str = ""
    method: str = OWN


def learn_rounds(
    lesson: Lesson, base: RunContext, rounds: int, limit: int, runs: Path, effort: Effort
) -> None:
    """Rounds 1..N, with a snapshot of everything learned so far after each of several.

    Other methods than our own learn once, after the last round. Every round is a run folder of its
    own: called again, what is finished there is not played again, and what ended in an error is.
    """
    if rounds < 1:
        raise RpmsError("--rounds must be at least 1")
    _check_writer(lesson, base)
    env, split = lesson.env, lesson.split or get_environment(lesson.env).learning_split
    label = lesson.condition or RULES_ONLY
    check_usual(env, split, asdict(round_context(base, 1, label)), lesson.allowed)
    effort = replace(effort.suited_to(base.model), retry_failed=True)
    folders: list[Path] = []
    for number in range(1, rounds + 1):
        context = round_context(base, number, label)
        plan = make_plan(env, split, {label: context}, limit, cache=reply_file(context))
        folders.append(round_folder(runs, number))
        play_plan(plan, str(folders[-1]), effort)
        found = gather([read_run(one) for one in folders], allowed=lesson.allowed)
        each = rounds > 1 and lesson.method == OWN
        targets = [lesson.out.with_suffix(f".round{number}.jsonl")] if each else []
        # The output itself is only ever replaced by a whole one.
        _write([*targets, *([lesson.out] if number == rounds else [])], lesson, base, found)
        _name_failed(found, "; run the same command again to play them again")


def learn_from_folder(runs: Path, lesson: Lesson, base: RunContext | None = None) -> None:
    """Learn from episodes that were recorded before; ``base`` names the model that writes."""
    base = base or RunContext()
    _check_writer(lesson, base)
    found = gather(find_runs(runs, lesson.env, lesson.split), lesson.condition, lesson.allowed)
    _write([lesson.out], lesson, base, found)
    _name_failed(found)


def _check_writer(lesson: Lesson, base: RunContext) -> None:
    """No episode is played for a memory that nobody could write."""
    method = find_method(lesson.method)
    if not method.learns:
        raise RpmsError(
            f"memory method '{method.name}' learns nothing beforehand: it goes by earlier trials "
            "of the same task"
        )
    if method.needs_model:
        Writer(lesson.env, base, method.name)


def _write(targets: Sequence[Path], lesson: Lesson, base: RunContext, found: Experience) -> None:
    if not targets:
        return
    method = find_method(lesson.method)
    learned, writer = asyncio.run(_learn(method, lesson.env, base, found))
    origin = Origin(found.sources, found.players, found.rounds, writer)
    for target in targets:
        header = method.save(target, lesson.env, learned, origin)
        counts = ", ".join(f"{count} {name}" for name, count in header.counts.items())
        print(f"{target}: {header.entries} entries ({counts}) from {len(found.records)} episodes")
    if learned.unread:
        print(
            f"rpms: {learned.unread} parts of {writer}'s replies had no form that could be read; "
            "they are left out",
            file=sys.stderr,
        )


async def _learn(
    method: MemoryMethod, env: str, base: RunContext, found: Experience
) -> tuple[Learned, str]:
    """What was learned, and the model that wrote it, if any did."""
    if not can_write(base.model):
        return await method.learn(found.records, None), ""
    writer = Writer(env, base, method.name, reply_file(base))
    learned = await method.learn(found.records, writer)
    return learned, base.model if writer.asked else ""


def _name_failed(found: Experience, advice: str = "") -> None:
    """Episodes that taught nothing because the model or the simulator broke down in them."""
    for told in found.failed[:NAMED]:
        print(f"rpms: not learned from: {told}", file=sys.stderr)
    if found.failed:
        print(f"rpms: {len(found.failed)} episodes ended in an error{advice}", file=sys.stderr)
