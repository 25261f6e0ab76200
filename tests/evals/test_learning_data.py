"""Test splits are declared once, and nothing is learned from them."""

from __future__ import annotations

import pytest

from rpms.envs import get_environment
from rpms.evals.running.learning_data import (
    default_split,
    is_learning_split,
    learning_splits,
    refuse_judging,
)
from rpms.vocabulary.errors import RpmsError

LEARNED_FROM = {
    "alfworld": ["generated_seen", "train", "valid_train"],
    "scienceworld": ["train", "train_mini"],
    "telecom": ["train"],
}


@pytest.mark.parametrize("env", LEARNED_FROM)
def test_every_split_either_judges_or_may_be_learned_from(env: str) -> None:
    world = get_environment(env)
    assert learning_splits(env) == LEARNED_FROM[env]
    assert {*world.judging} == {*world.splits()} - {*LEARNED_FROM[env]}
    assert is_learning_split(env, world.learning_split)
    assert default_split(env) in world.judging, "what is played by default is not learned from"
    assert not is_learning_split(env, "nowhere") and is_learning_split(env, "my_train")
    for split in world.judging:
        with pytest.raises(
            RpmsError, match=f"split '{split}' of {env} is a test split.*; use (train|gener)"
        ):
            refuse_judging(env, split)
