"""What memory, rules and weights may be learned from: all splits but test splits.

Results on tasks that were learned from prove nothing. Each environment declares its test splits
once, in ``Environment.judging``.
"""

from __future__ import annotations

from collections.abc import Collection

from rpms.envs import get_environment
from rpms.evals.records.conditions import find_label
from rpms.evals.records.run_folder import Run
from rpms.vocabulary.errors import RpmsError

LEARNING_WORDS = {"train", "seen"}
"""A custom agent may name its splits; a name with one of these words is a learning split."""


def is_learning_split(env: str, split: str) -> bool:
    world = get_environment(env)
    if split in world.splits():
        return split not in world.judging
    return bool(LEARNING_WORDS & {*split.split("_")})


def learning_splits(env: str) -> list[str]:
    return [split for split in get_environment(env).splits() if is_learning_split(env, split)]


def refuse_judging(env: str, split: str) -> None:
    """Raise an error for a test split, which names the learning splits."""
    if not is_learning_split(env, split):
        problem = (
            f"split '{split}' of {env} is a test split, which must not be trained on"
            if split in get_environment(env).judging
            else f"{env} has no split '{split}'"
        )
        raise RpmsError(f"{problem}; use {' or '.join(learning_splits(env))}")


def default_split(env: str) -> str:
    """The default split of an evaluation: the first test split."""
    world = get_environment(env)
    return next(iter(world.judging), world.splits()[0])


def chosen_conditions(run: Run, typed: Collection[str]) -> list[str]:
    """The typed conditions of a run, by default all; an error if the run does not have one."""
    conditions = [find_label(label, run.conditions) for label in typed]
    if unknown := {*conditions} - {*run.conditions}:
        raise RpmsError(
            f"no condition '{min(unknown)}' in {run.folder}; it has {', '.join(run.conditions)}"
        )
    return conditions or run.conditions
