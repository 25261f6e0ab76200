from __future__ import annotations

import copy
from collections.abc import Callable

from rpms.envs import get_environment
from rpms.nodes import belief_update
from rpms.nodes.state import EpisodeState

Play = Callable[..., list[EpisodeState]]


def test_the_input_is_left_alone(play_script: Play) -> None:
    for state in play_script("A"):
        before = copy.deepcopy(state)
        belief_update(state)
        assert state == before


def test_it_is_the_environment_that_decides(play_script: Play) -> None:
    """b_t = f_upd(b_{t-1}, a_{t-1}, o_t), folded over the history by hand."""
    env = get_environment("alfworld")
    last = play_script("A")[-1]
    belief = env.first_belief(last["first_observation"])
    for turn in last["history"]:
        if turn["action"]:
            belief = env.update_belief(belief, turn["action"], turn["observation"])
    assert last["belief"] == belief
