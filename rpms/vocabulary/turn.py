"""The steps of an episode: replies, decisions, actions and observations, and its record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

FailureMode = Literal[
    "timeout", "wrong_termination", "format", "model_error", "infrastructure_error"
]
ERRORS: tuple[FailureMode, ...] = ("model_error", "infrastructure_error")
"""Failures that say nothing about the agent."""
ActionVerdict = Literal["accepted", "retried", "fallback", "overridden", "replaced"]
"""What the graph's guard does with a proposed action."""


class Turn(TypedDict):
    """One step: the agent's reply and the environment's answer.

    Attributes:
        step: counted from 1.
        thought: the reasoning before the action, if there is any.
        action: the executed action, in the paper's wording; empty if none could be parsed.
        observation: the environment's answer.
        failed: the environment rejected the action, or there was none.
        reply: the model's whole reply if no action could be parsed, else empty.
        call: the tool call behind the action's text (``Call``), if it is one.
    """

    step: int
    thought: str
    action: str
    observation: str
    failed: bool
    reply: str
    call: NotRequired[dict[str, Any]]


def rejected_since(turns: Sequence[Turn], ineffective: Sequence[str]) -> list[Turn]:
    """The rejected turns since the belief last changed: the last ``len(ineffective)`` ones."""
    latest = turns[len(turns) - len(ineffective) :]
    return [turn for turn in latest if turn["failed"] and turn["action"]]


class Usage(TypedDict):
    """The tokens of one model call.

    Attributes:
        prompt_tokens: length of the prompt, as reported by the model, else estimated.
        cached_tokens: the part of the prompt that the provider read from its cache.
        output_tokens: length of the reply.
        replayed: the reply came from a cache; no call was made.
    """

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    replayed: bool


class Message(TypedDict):
    """One chat message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


class Choice(TypedDict):
    """An applicable action, its Tier-3 rule, and why it advances the sub-goal."""

    action: str
    rule: str
    reason: str


class Decision(TypedDict):
    """One proposal and its outcome.

    Attributes:
        step: the step it was made for.
        proposal: the action that the model proposed; empty if none could be parsed.
        verdict: ``retried`` returns it to the model, ``fallback`` executes another action after
            retries failed or the reply had no action, ``overridden`` executes the proposal despite
            a veto, and ``replaced`` executes an action that the procedure offers.
        rule: id of the rule that vetoes the proposal; empty if none does.
        reason: the reason of the veto.
        repair: what would make the proposal possible, in words, if the model was told.
        played: the action that goes to the environment; empty if the model is asked again.
    """

    step: int
    proposal: str
    verdict: ActionVerdict
    rule: str
    reason: str
    repair: str
    played: str


# Logs hold further fields. A plain mapping, so that `rpms --help` need not load pydantic.
_LENIENT: Any = {"extra": "ignore"}


class RecordedTurn(TypedDict):
    """The fields of a turn that learning reads; logs may hold more."""

    __pydantic_config__ = _LENIENT  # type: ignore[misc]

    action: str
    observation: str
    failed: bool
    call: NotRequired[dict[str, Any]]


class EpisodeRecord(TypedDict):
    """A finished episode with its texts, from which every memory method learns.

    Attributes:
        env: the environment.
        split: the list the task belongs to.
        task: its id.
        goal: the task sentence.
        first_observation: o_0.
        success: true if the task was solved.
        score: the final score, if the run recorded one.
        history: the turns.
        condition: the label of its condition.
        repeat: the number of the independent run.
        trial: the number of the attempt.
        failure_mode: how it ended, if without success.
    """

    __pydantic_config__ = _LENIENT  # type: ignore[misc]

    env: str
    split: str
    task: str
    goal: str
    first_observation: str
    success: bool
    score: NotRequired[float]
    history: list[RecordedTurn]
    condition: NotRequired[str]
    repeat: NotRequired[int]
    trial: NotRequired[int]
    failure_mode: NotRequired[str | None]
