from __future__ import annotations

import copy
from collections.abc import Callable

from rpms.envs import get_environment
from rpms.nodes import belief_update
from rpms.nodes.state import EpisodeState

Play = Callable[..., list[EpisodeState]]


def test_belief_and_sub_goal_follow_the_turns(play_script: Play) -> None:
    states = play_script("A")
    assert [state["belief"]["location"] for state in states] == [
        None, "fridge 1", "fridge 1", "fridge 1", "fridge 1", "countertop 1", "countertop 1",
    ]  # fmt: skip
    assert [state["belief"]["holding"] for state in states[-2:]] == [[], ["apple 1"]]
    names = [state["sub_goal"]["name"] for state in states]
    assert names == ["find_object"] * 5 + ["take_object", "heat_object"]
    assert states[0]["belief"]["places"][0] == "cabinet 2"
    assert states[2]["belief"]["containers"] == {"fridge 1": "open"}


def test_refused_actions_and_unreadable_replies_change_nothing(play_script: Play) -> None:
    opened, refused, unread = play_script("A")[2:5]
    assert refused["history"][-1]["failed"]
    assert unread["history"][-1]["action"] == ""
    assert opened["belief"] == refused["belief"] == unread["belief"]


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
