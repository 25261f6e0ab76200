"""What ``rpms export`` does: a run into another format, or expert play into training data."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from rpms.envs import get_environment
from rpms.evals.arms import parse_arm
from rpms.evals.distilling import assign, refuse_judged
from rpms.evals.export import CHAT, export_chat, export_run
from rpms.evals.export.chat import PER, Per, Written, write_chat
from rpms.evals.plan import Selection
from rpms.evals.run_files import read_run
from rpms.evals.teaching import taught
from rpms.evals.variants import Variant
from rpms.nodes.context import RunContext, condition_name
from rpms.nodes.manual import manual_for
from rpms.nodes.memories import check_memory
from rpms.vocabulary.errors import RpmsError

EVERY_S = 2.0


class Expertise(NamedTuple):
    """What the expert plays, and how.

    Attributes:
        env: the world.
        split: the tasks; empty for the ones the world itself learns on.
        limit: how many of them; 0 for all.
        spread: evenly from the whole split.
        mistakes: how often it errs, 0 to 1.
        settings: what every arm begins with; its seed is that of the mistakes, too.
        workers: processes; 0 plays in this one, None takes one per processor.
    """

    env: str
    split: str = ""
    limit: int = 0
    spread: bool = False
    mistakes: float = 0.0
    settings: RunContext = RunContext()
    workers: int | None = None


def export_folder(
    folder: Path,
    format: str,
    out: Path,
    conditions: Sequence[str],
    prompts: bool,
    per: str,
    most: int = 0,
) -> str:
    """Write a run; returns what to tell the user."""
    run = read_run(folder)
    if format == CHAT:
        tell = _progress(len(run.episodes))
        return _told(out, export_chat(run, out, conditions, _checked(per), tell, most))
    done = export_run(run, format, out, conditions, prompts)
    left = (
        f"; {done.without_log} have no step log that can be read and were left out"
        if done.without_log
        else ""
    )
    return f"written: {out} ({done.episodes} episodes{left})"


def export_expert(
    play: Expertise,
    out: Path,
    per: str = "decision",
    conditions: Sequence[str] = (),
    arms: Sequence[str] = (),
    most: int = 0,
) -> str:
    """Let the expert play and write its decisions; returns what to tell the user.

    ``conditions`` and ``arms`` take turns; one that is named twice gets twice as much.
    """
    world = get_environment(play.env)
    split = play.split or world.learning_split
    refuse_judged(play.env, split)
    base = play.settings
    letters = conditions or ([] if arms else ["A", "B", "C", "D"])
    mix = [(condition_name(name), Variant(base.under(name))) for name in letters]
    mix += [parse_arm(text, base) for text in arms]
    for _, variant in mix:  # a wrong file is an answer at once
        manual_for(play.env, variant.settings())
        check_memory(play.env, variant.settings())
    tasks = Selection(play.limit, play.spread).of(world, split)
    workers = play.workers if play.workers is not None else os.cpu_count() or 1
    lessons = taught(assign(tasks, mix, play.mistakes, base.seed), min(workers, len(tasks)))
    return _told(out, write_chat(lessons, out, _checked(per), _progress(len(tasks)), most))


def _checked(per: str) -> Per:
    if per not in PER:
        raise RpmsError(f"unknown --per '{per}'; choose from {', '.join(PER)}")
    return per


def _progress(total: int) -> Callable[[Written], None]:
    """A line on stderr now and then, and one at the end."""
    last = monotonic()

    def tell(done: Written) -> None:
        nonlocal last
        if done.episodes == total or monotonic() - last > EVERY_S:
            last = monotonic()
            print(f"rpms: {done.episodes} of {total} episodes, {done.targets} decisions",
                  file=sys.stderr)  # fmt: skip

    return tell


def _told(out: Path, done: Written) -> str:
    lost = f"; {done.lost} were lost and left out" if done.lost else ""
    return (
        f"written: {out} ({done.lines} lines, {done.targets} decisions to learn, "
        f"{done.episodes - done.lost} episodes{lost})"
    )
