"""An episode in its steps: what was said, decided, done and seen, and what learning reads of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

FailureMode = Literal[
    "timeout", "wrong_termination", "format", "model_error", "infrastructure_error"
]
ERRORS: tuple[FailureMode, ...] = ("model_error", "infrastructure_error")
"""Endings that say nothing about the agent."""
Verdict = Literal["accepted", "retried", "fallback", "overridden", "replaced"]
"""What rules-first arbitration made of an action that the model proposed."""


class Turn(TypedDict):
    """What the agent said and what came of it.

    Attributes:
        step: counted from 1.
        thought: the reasoning before the action, if any was given.
        action: the action played, in the paper's wording; empty when none could be read.
        observation: what the environment answered.
        failed: the environment refused the action, or there was none to play.
        reply: the model's whole reply when no action could be read from it, else empty.
        call: the tool call that the action is the text of (``Call``), where it is one.
    """

    step: int
    thought: str
    action: str
    observation: str
    failed: bool
    reply: str
    call: NotRequired[dict[str, Any]]


def rejected_since(turns: Sequence[Turn], ineffective: Sequence[str]) -> list[Turn]:
    """The turns that the world refused since the belief last changed: so many are ineffective."""
    latest = turns[len(turns) - len(ineffective) :]
    return [turn for turn in latest if turn["failed"] and turn["action"]]


class Usage(TypedDict):
    """What one model call cost.

    Attributes:
        prompt_tokens: length of the prompt, as reported by the model, else estimated.
        cached_tokens: the part of it that the provider read from its own cache.
        output_tokens: length of the reply.
        replayed: the reply came from our response cache; no call was made.
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
    """An action worth considering: the Tier-3 rule it follows and why it serves the sub-goal."""

    action: str
    rule: str
    reason: str


class Decision(TypedDict):
    """One proposal and its outcome.

    Attributes:
        step: the step it was made for.
        proposal: the action the model proposed; empty when none could be read.
        verdict: ``retried`` sends it back to the model, ``fallback`` plays what is left when
            that did not help or the reply had no action, ``overridden`` plays it although something
            speaks against it, and ``replaced`` plays one that the procedure offers.
        rule: id of the rule that speaks against the proposal; empty if none does.
        reason: what it says.
        repair: what would make the proposal possible, in words, where the model was told.
        played: the action that goes to the environment; empty when asked again.
    """

    step: int
    proposal: str
    verdict: Verdict
    rule: str
    reason: str
    repair: str
    played: str


# Logs hold more than is read here; a plain mapping, as a command line that only prints help loads
# no pydantic.
_LENIENT: Any = {"extra": "ignore"}


class RecordedTurn(TypedDict):
    """The part of a turn that learning reads; logs may hold more."""

    __pydantic_config__ = _LENIENT  # type: ignore[misc]

    action: str
    observation: str
    failed: bool
    call: NotRequired[dict[str, Any]]


class EpisodeRecord(TypedDict):
    """A finished episode with its texts: what every memory method learns from.

    Attributes:
        env: the environment.
        split: the list the task belongs to.
        task: its id.
        goal: the task sentence.
        first_observation: o_0.
        success: whether it was won.
        score: the final score, where the run recorded one.
        history: the turns.
        condition: the label it was played under.
        repeat: which of several independent plays it is.
        trial: which of several tries.
        failure_mode: how it ended, if not by success.
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
