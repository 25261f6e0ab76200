"""Stage 1: b_t = f_upd(b_{t-1}, a_{t-1}, o_t), and the sub-goal that follows from it."""

from __future__ import annotations

from rpms.envs import Environment, get_environment
from rpms.guard.answers import after_answer
from rpms.nodes.state import EpisodeState
from rpms.rules import Manual
from rpms.vocabulary.belief import Belief, without_calls
from rpms.vocabulary.calls import Call
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.goal import SubGoal
from rpms.vocabulary.turn import RecordedTurn, Turn


def belief_update(state: EpisodeState) -> EpisodeState:
    """Read the last turn and the observation; return the new belief and sub-goal.

    A reply without an action never reached the environment, so the belief stays as it was. Where
    sub-goals come from the manual, a run without rules has none.
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
    return follow_belief(state, belief)


def belief_after(
    env: Environment, manual: Manual, belief: Belief, turn: Turn | RecordedTurn
) -> Belief:
    """The belief after a turn: of a tool call that is data, of any other action by its text."""
    observation = turn["observation"]
    if "call" not in turn:
        return env.update_belief(belief, turn["action"], observation)
    if turn["failed"] and not env.failed(observation):
        return belief  # the tool raised an exception: its text tells nothing about the world
    return after_answer(manual, env, belief, Call(**turn["call"]), observation)


def follow_belief(state: EpisodeState, belief: Belief) -> EpisodeState:
    """What follows from a new belief: the sub-goal, and which actions have changed nothing."""
    env, history = get_environment(state["env"]), state["history"]
    ineffective: list[str] = []
    if history and without_calls(belief) == without_calls(state["belief"]):
        ineffective = [*state["ineffective"], history[-1]["action"]]
    rules = (state.get("settings") or RunContext().plain)["rules"]
    if env.sub_goal_from_manual and not rules:
        sub_goal = SubGoal(name="", target="", progress=0)
    else:
        sub_goal = env.sub_goal(state["goal"], belief, history)
    return EpisodeState(belief=belief, sub_goal=sub_goal, ineffective=ineffective)
