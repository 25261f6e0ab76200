"""``rpms learn``: from episodes to a frozen snapshot, on the evaluation runner."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path

from rpms.envs import get_environment
from rpms.envs.registry import FIRST_WORLD
from rpms.evals.evaluate import USUAL, ExecutionOptions, play_plan
from rpms.evals.plan import make_plan
from rpms.evals.run_folder import read_run
from rpms.evals.training_episodes import (
    RULES_ONLY,
    Experience,
    check_usual,
    find_runs,
    gather,
    round_context,
    round_folder,
)
from rpms.memory_store import Header, read_header
from rpms.memory_store.snapshot import OWN
from rpms.models.response_cache import default_file
from rpms.nodes.chat import reply_cache
from rpms.nodes.manual import manual_for
from rpms.nodes.memories import Learned, MemoryMethod, Origin, Writer, can_write, find_method
from rpms.nodes.memories.registry import takes_manual
from rpms.vocabulary.context import RunContext, condition_name
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.files import refuse_special
from rpms.vocabulary.output import say

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


def learn(
    out: str | PathLike[str],
    *,
    env: str = FIRST_WORLD,
    split: str = "",
    context: RunContext | None = None,
    method: str = OWN,
    rounds: int = 1,
    limit: int = 0,
    from_runs: str | PathLike[str] = "",
    runs: str | PathLike[str] = "",
    condition: str = "",
    allow: str = "",
    execution: ExecutionOptions = USUAL,
    show: bool = True,
) -> Header:
    """Learn a memory and freeze it; called again, go on where it stopped.

    Args:
        out: the file to write.
        env: the world.
        split: its tasks; the world's learning split by default.
        context: who plays and writes: the model, its decoding, the rules.
        method: whose memory it becomes.
        rounds: how often the tasks are played.
        limit: how many of them; 0 for all.
        from_runs: learn from these recorded runs instead of playing.
        runs: where the episodes are kept; beside ``out`` by default.
        condition: what to play under, or to take from runs; Rules-only by default.
        allow: why anything but Rules-only on a learning split may be learned from.
        execution: processes and the like.
        show: say how it goes.
    """
    if not fspath(out):
        raise RpmsError("no memory file given; say where the memory is to be written")
    refuse_special(Path(out))
    lesson = Lesson(Path(out), env, split, condition, allow, method)
    base = context or RunContext()
    if from_runs:
        learn_from_folder(Path(from_runs), lesson, base, show)
    else:
        folder = Path(runs or f"{fspath(out)}.runs")
        learn_rounds(lesson, base, rounds, limit, folder, execution, show)
    return read_header(Path(out))


def learn_rounds(
    lesson: Lesson,
    base: RunContext,
    rounds: int,
    limit: int,
    runs: Path,
    execution: ExecutionOptions,
    show: bool = True,
) -> None:
    """Rounds 1..N, with a snapshot of everything learned so far after each of several.

    Other methods than our own learn once, after the last round. Every round is a run folder of its
    own: called again, what is finished there is not played again, and what ended in an error is.
    """
    if rounds < 1:
        raise RpmsError("--rounds must be at least 1")
    _check_writer(lesson, base)
    env, split = lesson.env, lesson.split or get_environment(lesson.env).learning_split
    base.under(lesson.condition or RULES_ONLY)  # refused as it was typed
    label = condition_name(lesson.condition or RULES_ONLY)
    check_usual(env, split, asdict(round_context(base, 1, label)), lesson.allowed)
    manual_for(env, base)  # a mistake in it is told before anything is played
    folders: list[Path] = []
    for number in range(1, rounds + 1):
        context = round_context(base, number, label)
        plan = make_plan(env, split, {label: context}, limit, cache=str(default_file()))
        folders.append(round_folder(runs, number))
        play_plan(plan, str(folders[-1]), execution, show=show, strict=False)
        found = gather([read_run(one) for one in folders], allowed=lesson.allowed)
        each = rounds > 1 and lesson.method == OWN
        targets = [lesson.out.with_suffix(f".round{number}.jsonl")] if each else []
        # The output itself is only ever replaced by a whole one.
        _write([*targets, *([lesson.out] if number == rounds else [])], lesson, base, found, show)
    if failed := _name_failed(found):
        raise RpmsError(
            f"{failed} episodes ended in an error; what the others taught is kept. Run the same "
            "command again to play them again"
        )


def learn_from_folder(
    runs: Path, lesson: Lesson, base: RunContext | None = None, show: bool = True
) -> None:
    """Learn from episodes that were recorded before; ``base`` names the model that writes."""
    base = base or RunContext()
    _check_writer(lesson, base)
    found = gather(find_runs(runs, lesson.env, lesson.split), lesson.condition, lesson.allowed)
    _write([lesson.out], lesson, base, found, show)
    if failed := _name_failed(found):
        say(f"rpms: {failed} episodes ended in an error and are left out", file=sys.stderr)


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


def _write(
    targets: Sequence[Path], lesson: Lesson, base: RunContext, found: Experience, show: bool
) -> None:
    if not targets:
        return
    method = find_method(lesson.method)
    learned, writer = asyncio.run(_learn(method, lesson.env, base, found))
    origin = Origin(found.sources, found.players, found.rounds, writer)
    for target in targets:
        header = method.save(target, lesson.env, learned, origin)
        counts = ", ".join(f"{count} {name}" for name, count in header.counts.items())
        if show:
            told = f"{header.entries} entries ({counts}) from {len(found.records)} episodes"
            say(f"{target}: {told}")
    if learned.unread:
        say(
            f"rpms: {learned.unread} parts of {writer}'s replies had no form that could be read; "
            "they are left out",
            file=sys.stderr,
        )


async def _learn(
    method: MemoryMethod, env: str, base: RunContext, found: Experience
) -> tuple[Learned, str]:
    """What was learned, and the model that wrote it, if any did."""
    rules = {"manual": manual_for(env, base)} if takes_manual(method) else {}
    if not can_write(base.model):
        return await method.learn(found.records, None, **rules), ""
    cache = reply_cache(base, str(default_file()))
    writer = Writer(env, base, method.name, cache)
    learned = await method.learn(found.records, writer, **rules)
    return learned, base.model if writer.asked else ""


def _name_failed(found: Experience) -> int:
    """How many episodes taught nothing because the model or the simulator broke down in them."""
    if found.damaged:
        print(f"rpms: {found.damaged} damaged lines of runs are left out", file=sys.stderr)
    for told in found.failed[:NAMED]:
        say(f"rpms: not learned from: {told}", file=sys.stderr)
    return len(found.failed)
