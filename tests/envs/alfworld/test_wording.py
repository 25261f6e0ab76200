from __future__ import annotations

import re
from typing import Any

import pytest

from rpms.envs.alfworld import alfworld_package
from rpms.envs.alfworld.adapter import (
    ENVIRONMENT,
    AlfworldGame,
    read_action,
    to_agent,
    to_game,
)
from rpms.envs.alfworld.game_file import GameFile
from rpms.envs.alfworld.tasks import ensure_games
from rpms.envs.manuals import load_manual
from tests.envs.playing import plan_of, task_of


@pytest.mark.parametrize("dialect", alfworld_package.DIALECTS)
def test_a_game_file_tells_its_dialect(dialect: Any) -> None:
    generated = ensure_games("generated_seen", 1, dialect=dialect)[0]
    assert GameFile(generated).release.dialect == dialect


@pytest.mark.parametrize(
    ("action", "move", "put"),
    [
        ("put mug 1 in/on desk 1", "move mug 1 to desk 1", "put mug 1 in/on desk 1"),
        ("go to desk 1", "go to desk 1", "go to desk 1"),
        ("take mug 1 from desk 1", "take mug 1 from desk 1", "take mug 1 from desk 1"),
        ("look", "look", "look"),
    ],
)
def test_the_agents_action_in_each_dialect(action: str, move: str, put: str) -> None:
    assert to_game(action, "move") == move
    assert to_game(action, "put") == put


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("You move the mug 1 to the desk 1.", "You put the mug 1 in/on the desk 1."),
        ("You put the mug 1 in/on the desk 1.", "You put the mug 1 in/on the desk 1."),
        ("You arrive at bed 1. On the bed 1, you see nothing.", "On the bed 1, you see nothing."),
        ("You arrive at loc 12. The safe 1 is closed.", "The safe 1 is closed."),
        ("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.\n",
         "You are in the middle of a room."),
        ("Nothing happens.", "Nothing happens."),
    ],
)  # fmt: skip
def test_the_games_text_in_the_agents_wording(said: str, read: str) -> None:
    assert to_agent(said) == read
    assert to_agent(read) == read


@pytest.mark.parametrize("text", ["dance", "go to", "put mug 1", "take mug 1", "heat", ""])
def test_what_is_no_action_passes_through(text: str) -> None:
    assert read_action(text) == text


def test_every_command_of_the_engine_is_spoken_by_the_agent_or_left_out_on_purpose() -> None:
    manual = load_manual("alfworld")
    taught = {rule.syntax.split()[0] for rule in manual.actions}
    assert set(ENVIRONMENT.command_verbs()) == taught | set(manual.environment.not_taught)


GAME_WORDS = re.compile(r"You arrive at|You move the|Welcome to TextWorld|\bloc \d+")


@pytest.mark.engine
def test_the_same_home_in_both_dialects_gives_the_agent_the_same_texts() -> None:
    told: dict[str, list[str]] = {}
    game = AlfworldGame()
    for dialect in alfworld_package.DIALECTS:
        told[dialect] = []
        for file in ensure_games("generated_seen", 6, dialect=dialect):
            told[dialect].append(game.reset(task_of(file)))
            for action in plan_of(file):
                outcome = game.step(action)
                told[dialect] += [action, outcome.observation]
            assert outcome.won
    game.close()
    assert told["move"] == told["put"]
    assert any(text.startswith("You put the ") for text in told["move"])
    assert not any(GAME_WORDS.search(text) for text in told["move"])
