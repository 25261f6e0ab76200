"""Stage 1: b_t = f_upd(b_{t-1}, a_{t-1}, o_t), and the sub-goal that follows from it."""

from __future__ import annotations

from envs import get_environment
from nodes.state import EpisodeState
from vocabulary.belief import fingerprint


def belief_update(state: EpisodeState) -> EpisodeState:
    """Read the last turn and the observation; return the new belief and sub-goal.

    A reply without an action never reached the environment, so the belief stays as it was. What
    was played in which belief is noted: an action that led back to where it was played is a
    circle, however many steps the way round took.
    """
    env = get_environment(state["env"])
    history = state["history"]
    if not history:
        belief = env.first_belief(state["observation"])
    elif history[-1]["action"]:
        last = history[-1]
        belief = env.update_belief(state["belief"], last["action"], last["observation"])
    else:
        belief = state["belief"]
    in_vain: list[str] = []
    played_in = state["played_in"]
    if history:
        last_played = history[-1]["action"]
        then = fingerprint(state["belief"])
        played_in = {**played_in, then: [*played_in.get(then, []), last_played]}
        if belief == state["belief"]:
            in_vain = [*state["in_vain"], last_played]
    return EpisodeState(
        belief=belief,
        sub_goal=env.sub_goal(state["goal"], belief, history),
        in_vain=in_vain,
        played_in=played_in,
    )
