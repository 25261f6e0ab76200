"""``rpms learn``: from episodes to a frozen snapshot, on the evaluation runner."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
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
    target, base, scribe = Path(out), context or RunContext(), find_method(method)
    refuse_special(target)
    _check_writer(scribe, env, base)
    if from_runs:
        experience = gather(find_runs(Path(from_runs), env, split), condition, allow)
        _write([target], scribe, env, base, experience, show)
        if failed := _name_failed(experience):
            say(f"rpms: {failed} episodes ended in an error and are left out", file=sys.stderr)
        return read_header(target)
    if rounds < 1:
        raise RpmsError("--rounds must be at least 1")
    split = split or get_environment(env).learning_split
    base.under(condition or RULES_ONLY)  # refused as it was typed
    label = condition_name(condition or RULES_ONLY)
    check_usual(env, split, round_context(base, 1, label).plain, allow)
    manual_for(env, base)  # a mistake in it is told before anything is played
    # Every round is a run folder of its own: what is finished there is not played again.
    folders: list[Path] = []
    for number in range(1, rounds + 1):
        contexts = {label: round_context(base, number, label)}
        plan = make_plan(env, split, contexts, limit, cache=str(default_file()))
        folders.append(Path(runs or f"{fspath(out)}.runs") / f"round{number}")
        play_plan(plan, str(folders[-1]), execution, show=show, strict=False)
        experience = gather([read_run(folder) for folder in folders], allowed=allow)
        # After each of several rounds a snapshot of all so far; other methods learn once, at the
        # end. The output itself is only ever replaced by a whole one.
        each = rounds > 1 and scribe.name == OWN
        targets = [target.with_suffix(f".round{number}.jsonl")] if each else []
        targets += [target] if number == rounds else []
        _write(targets, scribe, env, base, experience, show)
    if failed := _name_failed(experience):
        raise RpmsError(
            f"{failed} episodes ended in an error; what the others taught is kept. Run the same "
            "command again to play them again"
        )
    return read_header(target)


def _check_writer(method: MemoryMethod, env: str, base: RunContext) -> None:
    """No episode is played for a memory that nobody could write."""
    if not method.learns:
        raise RpmsError(
            f"memory method '{method.name}' learns nothing beforehand: it goes by earlier trials "
            "of the same task"
        )
    if method.needs_model:
        Writer(env, base, method.name)


def _write(
    targets: Sequence[Path], method: MemoryMethod, env: str, base: RunContext,
    experience: Experience, show: bool,
) -> None:  # fmt: skip
    if not targets:
        return
    learned, writer = asyncio.run(_learn(method, env, base, experience))
    origin = Origin(experience.sources, experience.players, experience.rounds, writer)
    for target in targets:
        header = method.save(target, env, learned, origin)
        counts = ", ".join(f"{count} {name}" for name, count in header.counts.items())
        if show:
            episodes = f"{len(experience.records)} episodes"
            say(f"{target}: {header.entries} entries ({counts}) from {episodes}")
    if learned.unread:
        say(
            f"rpms: {learned.unread} parts of {writer}'s replies had no form that could be read; "
            "they are left out",
            file=sys.stderr,
        )


async def _learn(
    method: MemoryMethod, env: str, base: RunContext, experience: Experience
) -> tuple[Learned, str]:
    """What was learned, and the model that wrote it, if any did."""
    rules = {"manual": manual_for(env, base)} if takes_manual(method) else {}
    if not can_write(base.model):
        return await method.learn(experience.records, None, **rules), ""
    cache = reply_cache(base, str(default_file()))
    writer = Writer(env, base, method.name, cache)
    learned = await method.learn(experience.records, writer, **rules)
    return learned, base.model if writer.asked else ""


def _name_failed(experience: Experience) -> int:
    """How many episodes taught nothing because the model or the simulator broke down in them."""
    if experience.damaged:
        say(f"rpms: {experience.damaged} damaged lines of runs are left out", file=sys.stderr)
    for failure in experience.failed[:NAMED]:
        say(f"rpms: not learned from: {failure}", file=sys.stderr)
    return len(experience.failed)
