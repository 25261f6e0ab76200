"""One step of an episode, as it is kept in the history, the logs and the viewer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from typing_extensions import TypedDict

FailureMode = Literal[
    "timeout", "wrong_termination", "format", "model_error", "infrastructure_error"
]


ERRORS: tuple[FailureMode, ...] = ("model_error", "infrastructure_error")
"""Endings that say nothing about the agent."""


class Turn(TypedDict):
    """What the agent said and what came of it.

    Attributes:
        step: counted from 1.
        thought: the reasoning before the action, if any was given.
        action: the action played, in the paper's wording; empty when none could be read.
        observation: what the environment answered.
        failed: the environment refused the action, or there was none to play.
        reply: the model's whole reply when no action could be read from it, else empty.
    """

    step: int
    thought: str
    action: str
    observation: str
    failed: bool
    reply: str


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


def repeated_refusals(history: list[Any]) -> int:
    """P1 cycles: refused actions that are the very action refused in the step before."""
    refused = [
        turn.get("action") if isinstance(turn, dict) and turn.get("failed") else None
        for turn in history
    ]
    return sum(bool(now) and now == before for before, now in pairwise(refused))
