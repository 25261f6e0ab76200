"""Which splits may be learned from: all but those that an environment declares as judging.

A memory, a rule or a model's weights that come from the tasks they are judged by show nothing. What
judges is one declaration per environment (``Environment.judging``) for all three of them.
"""

from __future__ import annotations

from rpms.envs import get_environment
from rpms.vocabulary.errors import RpmsError

NAMED_FOR_LEARNING = {"train", "seen"}
"""An agent of one's own may name its splits: these parts of a name say that one is for learning."""


def is_learning_split(env: str, split: str) -> bool:
    """Whether the tasks of a split may be learned from."""
    world = get_environment(env)
    if split in world.splits():
        return split not in world.judging
    return bool(NAMED_FOR_LEARNING & {*split.split("_")})


def learning_splits(env: str) -> list[str]:
    """The splits of an environment that may be learned from."""
    return [split for split in get_environment(env).splits() if is_learning_split(env, split)]


def refuse_judging(env: str, split: str) -> None:
    """Refuse to train on a split that judges, and name those that are for training."""
    if not is_learning_split(env, split):
        problem = (
            f"split '{split}' of {env} judges: nothing may be trained on its tasks"
            if split in get_environment(env).judging
            else f"{env} has no split '{split}'"
        )
        raise RpmsError(f"{problem}; use {' or '.join(learning_splits(env))}")


def default_split(env: str) -> str:
    """The split that an evaluation plays where none is named: the first that judges."""
    world = get_environment(env)
    return next(iter(world.judging), world.splits()[0])
