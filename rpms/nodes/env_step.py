"""Stage 8: execute a_t in the environment and check whether the episode is over."""

from __future__ import annotations

from langgraph.runtime import Runtime, get_runtime
from typing_extensions import TypedDict

from rpms.envs import Outcome, get_environment
from rpms.envs import live as episodes
from rpms.nodes.state import EpisodeState, environment_failed, settings_of
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import EnvironmentFault
from rpms.vocabulary.goal import SubGoal
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import Decision, FailureMode, Turn

NO_ACTION = "No action could be read from your reply. Answer with a line 'Action: <one action>'."


class StepEvent(TypedDict):
    """One step of a running episode: the turn, the belief, and the knowledge in the prompt."""

    turn: Turn
    belief: Belief
    sub_goal: SubGoal
    rules: int
    memories: int
    dropped: int
    recalls: list[Recall]
    truncated: dict[str, int]
    knowledge_tokens: int
    decisions: list[Decision]


def env_step(state: EpisodeState, runtime: Runtime[RunContext] | None = None) -> EpisodeState:
    """Read the action; return the new observation, the turn, the counters and the result."""
    action, episode = state["action"], (state["episode_id"], state["spec"])
    outcome = None
    try:
        if action:
            outcome = episodes.play(
                *episode, state["history"], action, state.get("simulator_state")
            )
        update = _conclude(state, runtime or get_runtime(), action, outcome)
    except EnvironmentFault as fault:
        update = environment_failed(fault, "env_step")
    if update["done"]:
        episodes.finish(*episode)
    return update


def _conclude(
    state: EpisodeState,
    runtime: Runtime[RunContext],
    action: str,
    outcome: Outcome | None,
) -> EpisodeState:
    context = settings_of(state)
    env = get_environment(state["env"])
    step = state["steps"] + 1
    observation, done, won, score, simulator_state = outcome or Outcome(
        NO_ACTION, False, False, state["score"], state.get("simulator_state")
    )
    failed = outcome is None or env.failed(observation)
    turn = Turn(
        step=step,
        thought=state["thought"],
        action=action,
        observation=observation,
        failed=failed,
        reply="" if action else state["reply"],
    )
    runtime.stream_writer(_event(state, turn))
    format_errors = state["format_errors"] + (not action)
    out_of_steps = step >= (context.max_steps or env.max_steps)
    update = EpisodeState(
        observation=observation,
        simulator_state=simulator_state,
        history=[turn],
        action="",
        steps=step,
        invalid_actions=state["invalid_actions"] + failed,
        format_errors=format_errors,
        score=score,
        success=won,
        condition=context.condition,  # the settings may have been edited during the episode
        done=done or out_of_steps,
    )
    if update["done"]:
        update["failure_mode"] = _failure(won, done, format_errors, step)
    return update


def _failure(won: bool, done: bool, format_errors: int, steps: int) -> FailureMode | None:
    """Classify a lost episode; ``format`` if most replies held no readable action."""
    if won:
        return None
    if done:
        return "wrong_termination"
    return "format" if format_errors * 2 > steps else "timeout"


def _event(state: EpisodeState, turn: Turn) -> StepEvent:
    recalls, truncated = state["recalls"], state["truncated"]
    return StepEvent(
        turn=turn,
        belief=state["belief"],
        sub_goal=state["sub_goal"],
        rules=sum(len(lines) for lines in state["rules"].values()),
        memories=sum(not recall["dropped_by"] for recall in recalls),
        dropped=sum(bool(recall["dropped_by"]) for recall in recalls) + sum(truncated.values()),
        recalls=recalls,
        truncated=truncated,
        knowledge_tokens=state["knowledge_tokens"],
        decisions=[each for each in state["decisions"] if each["step"] == turn["step"]],
    )
