"""Stage 1: b_t = f_upd(b_{t-1}, a_{t-1}, o_t), and the sub-goal that follows from it."""

from __future__ import annotations

from rpms.envs import get_environment
from rpms.nodes.state import EpisodeState, no_rules
from rpms.vocabulary.belief import Belief, without_calls


def belief_update(state: EpisodeState) -> EpisodeState:
    """Read the last turn and the observation; return the new belief and sub-goal.

    A decision begins without rules and memories, so that those of the last one never stay in the
    prompt, whichever stages follow. A reply without an action never reached the environment, so the
    belief does not change.
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
    return {**follow_belief(state, belief), "rules": no_rules(), "recalls": [], "truncated": {}}


def follow_belief(state: EpisodeState, belief: Belief) -> EpisodeState:
    """Return the belief, its sub-goal and the actions without effect since the last change."""
    env, history = get_environment(state["env"]), state["history"]
    ineffective: list[str] = []
    if history and without_calls(belief) == without_calls(state["belief"]):
        ineffective = [*state["ineffective"], history[-1]["action"]]
    sub_goal = env.sub_goal(state["goal"], belief, history)
    return EpisodeState(belief=belief, sub_goal=sub_goal, ineffective=ineffective)
