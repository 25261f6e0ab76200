"""The graph's state: what goes in, what comes out, and what the stages pass along.

Plain data only. The live environment is not here; nodes reach it through ``rpms.envs.live``.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from rpms.envs.base import Task
from rpms.rules.manual import ActiveRules
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.decision import Choice, Decision
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import FailureMode, Message, Turn, Usage


class EpisodeInput(TypedDict, total=False):
    """Which episode to play: an environment, a split, and a task id or index as text."""

    env: str
    split: str
    task: str


class EpisodeOutput(TypedDict, total=False):
    """How it went.

    Attributes:
        task_id: the task that was played.
        condition: A, B, C or D, by which knowledge was on.
        success: the environment said won; nothing else counts.
        score: the environment's final score.
        steps: actions taken, including refused ones and unreadable replies.
        invalid_actions: steps the environment refused, or that held no action.
        format_errors: replies from which no action could be read.
        failure_mode: None on success.
        error: the message behind a model or infrastructure error.
        prompt_tokens: as reported by the model, else estimated.
        output_tokens: likewise.
        cached_tokens: prompt tokens that the provider read from its own cache.
        model_calls: replies that a model gave; retries of one call count once.
        cache_hits: replies that came from the response cache instead.
        decisions: what the guard made of each proposed action; empty while it is off.
        goal: what the task asked for.
        first_observation: o_0, which states the task and stays in every prompt.
        history: every turn.
    """

    task_id: str
    condition: str
    success: bool
    score: float
    steps: int
    invalid_actions: int
    format_errors: int
    failure_mode: FailureMode | None
    error: str
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    model_calls: int
    cache_hits: int
    decisions: list[Decision]
    goal: GoalSpec
    first_observation: str
    history: list[Turn]


class EpisodeState(EpisodeInput, EpisodeOutput, total=False):
    """Everything the stages read and write.

    Attributes:
        episode_id: key of the live environment.
        spec: the resolved task.
        observation: o_t.
        world: the environment's own state, where that is plain data; the agent never sees it.
        belief: b_t.
        sub_goal: where the agent is within the goal.
        rules: R_active, while rules are on.
        recalls: the candidates with their fates, while memory is on.
        prompt: p_t, exactly as sent.
        knowledge_tokens: estimated tokens of the injected blocks in this prompt.
        dropped_turns: earlier turns left out of this prompt for want of room.
        reply: the model's reply.
        usage: what that reply cost.
        thought: the reasoning read from it.
        action: a_t, read from it; empty when there was none.
        in_vain: actions played since the belief last changed.
        played_in: what the guard let through, by the fingerprint of the belief it was played in.
        shortlist: actions that serve the sub-goal, where the guard offers them.
        asked_again: this step's action was vetoed once already.
        chosen: the action that the guard lets through; empty without a guard.
        done: the episode has ended.
    """

    episode_id: str
    spec: Task
    observation: str
    world: dict[str, Any] | None
    belief: Belief
    sub_goal: SubGoal
    rules: ActiveRules
    recalls: list[Recall]
    prompt: list[Message]
    knowledge_tokens: int
    dropped_turns: int
    reply: str
    usage: Usage
    thought: str
    action: str
    in_vain: list[str]
    played_in: dict[str, list[str]]
    shortlist: list[Choice]
    asked_again: bool
    chosen: str
    done: bool
