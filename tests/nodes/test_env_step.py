from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langgraph.runtime import Runtime

from rpms.envs import live
from rpms.envs.base import Outcome
from rpms.graph.run import StepEvent
from rpms.nodes import env_step
from rpms.nodes.context import RunContext
from rpms.nodes.env_step import NO_ACTION
from rpms.nodes.state import EpisodeState, follow
from rpms.vocabulary.errors import EnvironmentFault

Play = Callable[..., list[EpisodeState]]
REFUSED = Outcome("Nothing happens.", False, False, 0.0)
FINE = Outcome("You are not carrying anything.", False, False, 0.0)
WON = Outcome("You put the mug 1 in/on the desk 1.", True, True, 1.0)
LOST = Outcome("The house burns down.", True, False, -1.0)


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
        monkeypatch.setattr(live, "play", world.play)
        monkeypatch.setattr(live, "finish", world.finish)

        def step(*replies: str, chosen: str = "", **settings: Any) -> EpisodeState:
            context = RunContext.for_condition("B", **settings)
            runtime = Runtime(context=context, stream_writer=world.events.append)
            current = EpisodeState(**{**state, "action": chosen})
            for reply in replies:
                assert not current["done"]
                current = EpisodeState(**{**current, "reply": reply})
                follow(current, env_step(current, runtime))  # type: ignore[arg-type]
            return current

        return world, step

    return begin


def test_an_action_chosen_since_the_reply_is_played_once(start: Any) -> None:
    """By the guard, or by a person in Studio; the next reply counts again."""
    world, step = start(FINE, FINE)
    step("Action: inventory", "Action: look", chosen="go to desk 1")
    assert world.played == ["go to desk 1", "look"]


def test_one_step(start: Any) -> None:
    world, step = start(FINE)
    state = step("Thought: Hands?\nAction: Check inventory.")
    assert world.played == ["inventory"]
    assert state["history"] == [
        {
            "step": 1,
            "thought": "Hands?",
            "action": "inventory",
            "observation": FINE.observation,
            "failed": False,
            "reply": "",
        }
    ]
    assert state["action"] == ""  # it was played
    assert state["observation"] == FINE.observation
    assert (state["steps"], state["invalid_actions"], state["format_errors"]) == (1, 0, 0)
    assert (state["done"], state["success"], state["failure_mode"]) == (False, False, None)
    assert world.finished == []


def test_counters(start: Any) -> None:
    world, step = start(REFUSED, FINE, REFUSED)
    state = step("Action: open mug 1", "no idea", "Action: inventory", "Action: dance")
    assert state["steps"] == 4
    assert state["invalid_actions"] == 3
    assert state["format_errors"] == 1
    assert [turn["failed"] for turn in state["history"]] == [True, True, False, True]
    assert [turn["step"] for turn in state["history"]] == [1, 2, 3, 4]
    assert world.played == ["open mug 1", "inventory", "dance"]


def test_an_unreadable_reply_never_reaches_the_world(start: Any) -> None:
    world, step = start()
    state = step("I am lost.")
    assert world.played == []
    assert state["observation"] == NO_ACTION
    assert state["history"][0]["reply"] == "I am lost."
    assert state["history"][0]["action"] == ""


def test_winning(start: Any) -> None:
    world, step = start(REFUSED, WON)
    state = step("Action: look", "Action: put mug 1 on desk 1")
    assert (state["done"], state["success"], state["score"]) == (True, True, 1.0)
    assert state["failure_mode"] is None
    assert world.finished == [state["episode_id"]]


def test_winning_with_the_last_step_is_success(start: Any) -> None:
    _, step = start(REFUSED, WON)
    state = step("Action: look", "Action: put mug 1 in/on desk 1", max_steps=2)
    assert (state["success"], state["failure_mode"]) == (True, None)


def test_done_without_winning_is_wrong_termination(start: Any) -> None:
    world, step = start(LOST)
    state = step("Action: use stove 1")
    assert (state["done"], state["success"], state["score"]) == (True, False, -1.0)
    assert state["failure_mode"] == "wrong_termination"
    assert world.finished == [state["episode_id"]]


def test_running_out_of_steps_is_a_timeout(start: Any) -> None:
    world, step = start(FINE, FINE, FINE)
    state = step(*["Action: inventory"] * 3, max_steps=3)
    assert (state["done"], state["failure_mode"], state["steps"]) == (True, "timeout", 3)
    assert world.finished == [state["episode_id"]]


def test_the_budget_is_the_environments_own_by_default(start: Any) -> None:
    _, step = start(*[FINE] * 50)
    assert not step(*["Action: inventory"] * 49)["done"]
    _, step = start(*[FINE] * 50)
    assert step(*["Action: inventory"] * 50)["failure_mode"] == "timeout"


@pytest.mark.parametrize(
    ("unreadable", "mode"), [(0, "timeout"), (2, "timeout"), (3, "format"), (4, "format")]
)
def test_mostly_unreadable_replies_are_a_format_failure(
    unreadable: int, mode: str, start: Any
) -> None:
    _, step = start(*[FINE] * 4)
    replies = ["?"] * unreadable + ["Action: inventory"] * (4 - unreadable)
    state = step(*replies, max_steps=4)
    assert state["failure_mode"] == mode
    assert state["format_errors"] == unreadable


def test_a_fault_of_the_simulator_is_nobody_elses(start: Any) -> None:
    world, step = start(FINE, EnvironmentFault("the engine died"))
    state = step("Action: inventory", "Action: look")
    assert (state["done"], state["success"]) == (True, False)
    assert state["failure_mode"] == "infrastructure_error"
    assert state["error"] == "the engine died"
    assert state["steps"] == 1
    assert state["invalid_actions"] == 0
    assert world.finished == [state["episode_id"]]


def test_a_viewer_sees_each_step(start: Any) -> None:
    world, step = start(FINE, REFUSED)
    state = step("Action: inventory", "Action: look")
    assert [event["turn"] for event in world.events] == state["history"]
    event = world.events[0]
    assert set(event) == set(StepEvent.__annotations__)
    assert event["rules"] > 20
    assert event["knowledge_tokens"] > 500


def test_memories_are_counted_by_fate(start: Any, play_script: Play) -> None:
    full = play_script("D")[-1]
    kept = sum(not recall["dropped_by"] for recall in full["recalls"])
    world, _ = start(FINE)
    runtime = Runtime(context=RunContext(), stream_writer=world.events.append)
    env_step(EpisodeState(**{**full, "reply": "Action: inventory"}), runtime)
    assert world.events[-1]["memories"] == kept > 0
    assert world.events[-1]["dropped"] == len(full["recalls"]) - kept > 0
