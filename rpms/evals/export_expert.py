"""Expert play as training data."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rpms.envs import get_environment
from rpms.evals.arms import Variant, parse_arm
from rpms.evals.expert import refuse_judged, taught
from rpms.evals.export_chat import Per, Written, assign, write_chat
from rpms.evals.plan import Selection
from rpms.nodes.manual import manual_for
from rpms.nodes.memories import check_memory
from rpms.vocabulary.context import RunContext, condition_name


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


def export_expert(
    play: Expertise,
    out: Path,
    per: Per = "decision",
    conditions: Sequence[str] = (),
    arms: Sequence[str] = (),
    progress: Callable[[int], Callable[[Written], None]] = lambda total: lambda done: None,
    most: int = 0,
) -> Written:
    """Let the expert play and write its decisions.

    ``conditions`` and ``arms`` take turns; one that is named twice gets twice as much.
    ``progress`` is given the number of tasks and makes what is told of each line.
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
    return write_chat(lessons, out, per, progress(len(tasks)), most)
