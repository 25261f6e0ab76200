"""The recorded examples are what the real simulator says, and they win."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rpms.envs import get_environment
from rpms.envs.base import Task
from rpms.envs.scienceworld.goals import FAMILIES
from rpms.envs.scienceworld.simulator import ScienceWorldGame
from rpms.prompts.reply import read_reply

ENVIRONMENT = get_environment("scienceworld")


@pytest.fixture(scope="module")
def game() -> Iterator[ScienceWorldGame]:
    running = ScienceWorldGame()
    yield running
    running.close()


@pytest.mark.engine
@pytest.mark.parametrize("family", FAMILIES)
def test_an_example_replays_word_for_word_and_wins(family: str, game: ScienceWorldGame) -> None:
    recorded = json.loads((ENVIRONMENT.prompts / "examples" / f"{family}.json").read_text())
    train = {task["id"]: task for task in ENVIRONMENT.tasks("train")}
    task: Task = train[recorded["task"]]
    assert ENVIRONMENT.parse_goal(task["goal"])["type"] == family == recorded["goal_type"]
    opening, *turns = recorded["messages"]
    assert game.reset(task) == opening["content"]
    won = False
    for reply, answer in zip(turns[::2], turns[1::2], strict=True):
        assert (reply["role"], answer["role"]) == ("assistant", "user")
        outcome = game.step(read_reply(reply["content"], ()).action)
        assert outcome.observation == answer["content"]
        won = outcome.won
    assert won
