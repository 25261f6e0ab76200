from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.nodes import belief_update
from rpms.nodes.state import EpisodeState
from rpms.rules.answers import belief_after
from rpms.vocabulary.belief import empty_belief
from rpms.vocabulary.turn import Turn

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


RELEASE = "examples.release.agent:WORLD"
LOCKED = '{"lock": "api", "api": "changed"}'


@pytest.mark.parametrize(
    ("observation", "failed", "holding", "calls"),
    [
        (LOCKED, False, ["api"], 1),
        ('{"error": "refused"}', True, [], 1),  # an attempt
        # The tool raised an exception: what it says is no answer of the world.
        ("out of memory", True, [], 0),
    ],
)
def test_a_turn_of_a_tool_call_is_read_by_the_call(
    observation: str, failed: bool, holding: list[str], calls: int
) -> None:
    """Whatever the action's text is: nothing is read from that."""
    env, manual = get_environment(RELEASE), load_manual(RELEASE)
    turn = Turn(step=1, thought="", action="?", observation=observation, failed=failed, reply="",
                call={"tool": "lock", "arguments": {"service": "api"}})  # fmt: skip
    belief = belief_after(env, manual, empty_belief(), turn)
    assert (belief["holding"], len(belief["calls"])) == (holding, calls)
