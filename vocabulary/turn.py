"""One step of an episode, as it is kept in the history, the logs and the viewer."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

FailureMode = Literal[
    "timeout", "wrong_termination", "format", "model_error", "infrastructure_error"
]


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


class Message(TypedDict):
    """One chat message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str
