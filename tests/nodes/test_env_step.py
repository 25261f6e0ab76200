from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langgraph.runtime import Runtime

from rpms.envs.base import Outcome
from rpms.envs.manuals import load_manual
from rpms.nodes import env_step
from rpms.nodes.env_step import NO_ACTION, StepEvent
from rpms.nodes.state import EpisodeState, apply_update
from rpms.prompts.reply import read_action
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import EnvironmentFault
from tests.scripted_episode import put_underneath, under

Play = Callable[..., list[EpisodeState]]
REFUSED = Outcome("Nothing happens.", False, False, 0.0)
FINE = Outcome("You are not carrying anything.", False, False, 0.0)
WON = Outcome("You put the mug 1 in/on the desk 1.", True, True, 1.0)
LOST = Outcome("The house burns down.", True, False, -1.0)
LOOK, HANDS = "Action: look", "Action: inventory"


class World:
    """Stands in for the registry of live games and writes down what it is asked."""

    def __init__(self, outcomes: Iterable[Outcome | Exception]) -> None:
        self.outcomes = iter(outcomes)
        self.played: list[str] = []
        self.finished: list[str] = []
        self.events: list[dict[str, Any]] = []

    def play(
        self, episode_id: str, spec: Any, history: Any, action: str, world: Any = None
    ) -> Outcome:
        self.played.append(action)
        outcome = next(self.outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def finish(self, episode_id: str, spec: Any) -> None:
        self.finished.append(episode_id)


@pytest.fixture
def start(play_script: Play, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A world, and a function that plays replies one after another from a first state."""

    def begin(*outcomes: Outcome | Exception) -> tuple[World, Callable[..., EpisodeState]]:
        state = play_script("B")[0]
        world = World(outcomes)
        put_underneath(monkeypatch, play=world.play, finish=world.finish)

        def step(*replies: str, **settings: Any) -> EpisodeState:
            runtime = Runtime(stream_writer=world.events.append)
            current = under(state, RunContext.for_condition("B", **settings))
            for reply in replies:
                assert not current["done"]
                thought, action = read_action(reply, "alfworld", load_manual("alfworld"))
                said = {"reply": reply, "thought": thought, "action": action}
                current = EpisodeState(**{**current, **said})
                apply_update(current, env_step(current, runtime))  # type: ignore[arg-type]
            return current

        return world, step

    return begin


def test_one_step(start: Any) -> None:
    world, step = start(FINE)
    state = step("Thought: Hands?\nAction: Check inventory.")
    assert world.played == ["inventory"] and world.finished == []
    assert state["history"] == [
        {"step": 1, "thought": "Hands?", "action": "inventory", "observation": FINE.observation,
         "failed": False, "reply": ""}
    ]  # fmt: skip
    assert state["action"] == ""  # it was played
    assert state["observation"] == FINE.observation
    assert (state["steps"], state["invalid_actions"], state["format_errors"]) == (1, 0, 0)
    assert (state["done"], state["success"], state["failure_mode"]) == (False, False, None)


def test_counters(start: Any) -> None:
    """An unreadable reply counts, and never reaches the world."""
    world, step = start(REFUSED, FINE, REFUSED)
    state = step("Action: open mug 1", "no idea", HANDS, "Action: dance")
    assert (state["steps"], state["invalid_actions"], state["format_errors"]) == (4, 3, 1)
    history = state["history"]
    assert [turn["failed"] for turn in history] == [True, True, False, True]
    assert [turn["step"] for turn in history] == [1, 2, 3, 4]
    assert world.played == ["open mug 1", "inventory", "dance"]
    unread = history[1]
    assert (unread["reply"], unread["action"]) == ("no idea", "")
    assert unread["observation"] == NO_ACTION


PUT = "Action: put mug 1 in/on desk 1"


@pytest.mark.parametrize(
    ("outcomes", "replies", "most", "mode", "score"),
    [
        ([REFUSED, WON], [LOOK, PUT], 0, None, 1.0),
        ([REFUSED, WON], [LOOK, PUT], 2, None, 1.0),  # with the last step
        ([LOST], ["Action: use stove 1"], 0, "wrong_termination", -1.0),
        ([FINE] * 3, [HANDS] * 3, 3, "timeout", 0.0),
        ([FINE] * 4, [HANDS] * 4, 4, "timeout", 0.0),
        ([FINE] * 4, ["?"] * 2 + [HANDS] * 2, 4, "timeout", 0.0),
        ([FINE] * 4, ["?"] * 3 + [HANDS], 4, "format", 0.0),  # mostly unreadable
        ([FINE] * 4, ["?"] * 4, 4, "format", 0.0),
        ([FINE] * 50, [HANDS] * 50, 0, "timeout", 0.0),  # the world's own budget
    ],
)
def test_how_an_episode_ends(
    outcomes: list[Outcome], replies: list[str], most: int, mode: str | None, score: float,
    start: Any,
) -> None:  # fmt: skip
    world, step = start(*outcomes)
    if len(replies) > 1:
        assert not step(*replies[:-1], max_steps=most)["done"] and world.finished == []
    world, step = start(*outcomes)
    state = step(*replies, max_steps=most)
    assert (state["done"], state["success"]) == (True, mode is None)
    assert (state["failure_mode"], state["score"]) == (mode, score)
    assert state["format_errors"] == replies.count("?")
    assert world.finished == [state["episode_id"]]


def test_a_fault_of_the_simulator_is_nobody_elses(start: Any) -> None:
    world, step = start(FINE, EnvironmentFault("the engine died"))
    state = step(HANDS, LOOK)
    assert (state["done"], state["success"]) == (True, False)
    assert (state["failure_mode"], state["error"]) == ("infrastructure_error", "the engine died")
    assert (state["steps"], state["invalid_actions"]) == (1, 0)
    assert world.finished == [state["episode_id"]]


def test_a_viewer_sees_each_step(start: Any, play_script: Play) -> None:
    world, step = start(FINE, REFUSED)
    state = step(HANDS, LOOK)
    assert [event["turn"] for event in world.events] == state["history"]
    event = world.events[0]
    assert set(event) == set(StepEvent.__annotations__)
    assert event["rules"] > 20 and event["knowledge_tokens"] > 500
    full = play_script("D")[-1]
    shown = sum(not recall["dropped_by"] for recall in full["recalls"])
    world, _ = start(FINE)
    played = EpisodeState(**{**full, "reply": HANDS, "action": "inventory", "thought": ""})
    env_step(played, Runtime(stream_writer=world.events.append))
    assert world.events[-1]["memories"] == shown > 0
    assert world.events[-1]["dropped"] == len(full["recalls"]) - shown > 0
