"""A finished episode with its texts: what every memory method learns from."""

from __future__ import annotations

from typing import NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict


class RecordedTurn(TypedDict):
    """The part of a turn that learning reads; logs may hold more."""

    __pydantic_config__ = ConfigDict(extra="ignore")  # type: ignore[misc]

    action: str
    observation: str
    failed: bool


class EpisodeRecord(TypedDict):
    """One finished episode.

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

    __pydantic_config__ = ConfigDict(extra="ignore")  # type: ignore[misc]

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
