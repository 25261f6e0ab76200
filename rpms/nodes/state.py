"""The graph's state: what goes in, what comes out, and what the stages pass along.

Plain data only. The live environment is not here; nodes reach it through ``rpms.envs.live``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeVar, cast

from langchain_core.messages import AnyMessage, MessageLikeRepresentation, convert_to_messages
from langgraph.types import Overwrite
from pydantic import Field
from typing_extensions import TypedDict

from rpms.envs import environment_names, get_environment
from rpms.envs.base import Task
from rpms.prompts.blocks import Knowledge
from rpms.rules.conditions import DecisionPoint
from rpms.rules.manual import ActiveRules
from rpms.rules.world_manual import load_manual
from rpms.vocabulary.belief import Belief, fingerprint
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.error_place import ErrorPlace, place_of
from rpms.vocabulary.errors import EnvironmentFault
from rpms.vocabulary.goal import GoalSpec, SubGoal
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import Choice, Decision, FailureMode, Turn, Usage, rejected_since


def _choices(names: Callable[[], list[str]], description: str) -> Any:
    """A form offers these; they are asked for when the form is drawn, not before."""
    return Field(
        description=description, json_schema_extra=lambda form: form.update(enum=[*names()])
    )


def _splits() -> list[str]:
    """Of all worlds, each once."""
    names = [split for env in environment_names() for split in get_environment(env).splits()]
    return list(dict.fromkeys(names))


T = TypeVar("T")


def add_new(old: list[T], new: list[T]) -> list[T]:
    """Both together; a graph used as a node hands the old back with what it may have added."""
    return new if new[: len(old)] == old else [*old, *new]


def as_messages(_: Any, messages: Sequence[MessageLikeRepresentation]) -> list[AnyMessage]:
    """A prompt in whatever form LangChain takes one: pairs, dictionaries of role and content."""
    return cast(list[AnyMessage], convert_to_messages(messages))


# What grows during an episode: a stage returns only what is new, LangGraph adds it.
History = Annotated[list[Turn], add_new]
Decisions = Annotated[list[Decision], add_new]


def afresh(value: list[T]) -> list[T]:
    """A new beginning for what grows, where the stage's value would be added to the old one."""
    return cast(list[T], Overwrite(value))


class EpisodeInput(TypedDict, total=False):
    """Which episode to run: an environment, a split, and a task by its id or its index.

    ``cross_trial_memory`` is what a memory method kept of earlier trials of the same task; it is
    left out in a first trial.
    """

    env: Annotated[str, _choices(environment_names, "The world; the first one by default.")]
    split: Annotated[str, _choices(_splits, "A list of tasks of that world; its first by default.")]
    task: str | int
    cross_trial_memory: dict[str, Any]


class EpisodeOutput(TypedDict, total=False):
    """How it went.

    Attributes:
        task_id: the task that was played.
        condition: the letter, by which knowledge was on.
        success: the environment said won; nothing else counts.
        score: the environment's final score.
        steps: actions taken, including refused ones and unreadable replies.
        invalid_actions: steps the environment refused, or that held no action.
        format_errors: replies from which no action could be read.
        failure_mode: None on success.
        error: the message behind a model or infrastructure error.
        error_place: where in your own code it was raised, if it was there.
        prompt_tokens: as reported by the model, else estimated.
        output_tokens: likewise.
        cached_tokens: prompt tokens that the provider read from its own cache.
        model_calls: replies that a model gave; retries of one call count once.
        cache_hits: replies that came from the response cache instead.
        capped_replies: replies that were longer than their tokens can be, and were cut off.
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
    error_place: ErrorPlace | None
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    model_calls: int
    cache_hits: int
    capped_replies: int
    decisions: Decisions
    goal: GoalSpec
    first_observation: str
    history: History


class EpisodeState(EpisodeInput, EpisodeOutput, total=False):
    """Everything the stages read and write.

    Attributes:
        settings: the ``RunContext`` of this episode as plain data, written by ``reset_env``. Every
            stage and every edge reads it here (``settings_of``), so an episode that is taken up
            again continues under the settings it began with.
        episode_id: key of the live environment.
        spec: the resolved task.
        observation: o_t.
        simulator_state: the simulator's state, where that is plain data; the agent never sees it.
        commands: what the world would accept now, where the run shows it; else empty.
        belief: b_t.
        sub_goal: where the agent is within the goal.
        rules: R_active, while rules are on.
        recalls: the candidates with their outcomes, while memory is on.
        truncated: candidates that are too many to be listed: how many, by outcome.
        prompt: p_t, exactly as sent, as LangChain's messages. Our stages return them as plain
            data, so that ``stream_mode="messages"`` shows what the model says and no prompts.
        knowledge_tokens: estimated tokens of the injected blocks in this prompt.
        dropped_turns: earlier turns left out of this prompt for want of room.
        reply: the model's reply.
        thought: the reasoning in that reply.
        action: a_t, the action to execute: the reply's own, until the guard, a node or a person
            chooses another. Empty where the reply had none.
        usage: what that reply cost.
        ineffective: actions played since the belief last changed.
        played_in: what the guard let through, by the fingerprint of the belief it was played in.
        shortlist: actions that serve the sub-goal, where the guard offers them.
        retries: how often the model was asked again for this step.
        done: the episode has ended.
    """

    settings: dict[str, Any]
    episode_id: str
    spec: Task
    observation: str
    simulator_state: dict[str, Any] | None
    commands: list[str]
    belief: Belief
    sub_goal: SubGoal
    rules: ActiveRules
    recalls: list[Recall]
    truncated: dict[str, int]
    prompt: Annotated[list[AnyMessage], as_messages]
    knowledge_tokens: int
    dropped_turns: int
    reply: str
    thought: str
    action: str
    usage: Usage
    ineffective: list[str]
    played_in: dict[str, list[str]]
    shortlist: list[Choice]
    retries: int
    done: bool


STATE_KEYS = frozenset(EpisodeState.__annotations__)
GROWING = ("history", "decisions")


def settings_of(state: Mapping[str, Any]) -> RunContext:
    """The settings of an episode; the defaults for a state that no episode began."""
    return _context(tuple((state.get("settings") or {}).items()))


def knowledge_of(state: EpisodeState) -> Knowledge:
    """The part of the state that the knowledge blocks print."""
    return Knowledge(
        get_environment(state["env"]), settings_of(state), state["goal"], state["sub_goal"],
        state["belief"], state["rules"], state["recalls"], state["history"], state["ineffective"],
    )  # fmt: skip


def decision_point(state: EpisodeState) -> DecisionPoint:
    """The part of the state that the rules judge an action by.

    The guard and the expert have the procedure under every condition; an agent without rules may
    have no sub-goal of its own.
    """
    context, history = settings_of(state), state.get("history", [])
    rejected = rejected_since(history, state["ineffective"])
    sub_goal = state["sub_goal"]
    if not sub_goal["name"]:
        sub_goal = get_environment(state["env"]).sub_goal(state["goal"], state["belief"], history)
    return DecisionPoint(
        manual=load_manual(state["env"], context.rules_dir, context.without_rules),
        goal=state["goal"],
        sub_goal=sub_goal,
        belief=state["belief"],
        no_effect=state["ineffective"],
        refused={turn["action"] for turn in rejected},
        repeated_here=state["played_in"].get(fingerprint(state["belief"]), ()),
        # Guard policy holds to the procedure anyway, also where that has nothing to offer.
        check_answers=context.check_answers or context.guard == "policy",
    )


def environment_failed(fault: EnvironmentFault, stage: str) -> EpisodeState:
    """The end of an episode whose simulator failed."""
    return EpisodeState(
        failure_mode="infrastructure_error",
        error=str(fault),
        error_place=place_of(fault, stage),
        done=True,
    )


@lru_cache(maxsize=256)
def _context(items: tuple[tuple[str, Any], ...]) -> RunContext:
    return settings(dict(items))


def follow(state: dict[str, Any], update: Mapping[str, Any]) -> None:
    """Do to ``state`` what LangGraph does with a stage's update, for whoever reads a stream."""
    for key, value in update.items():
        if isinstance(value, Overwrite):
            state[key] = value.value
        elif key in GROWING:
            state[key] = add_new(state.get(key, []), value)
        else:
            state[key] = value
