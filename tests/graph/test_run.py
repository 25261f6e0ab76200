from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Overwrite

from rpms.envs import live
from rpms.graph import (
    arun_episode,
    astream_episode,
    build_graph,
    run_episode,
    stream_episode,
)
from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState, apply_update
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Turn
from tests.gold import household_gold
from tests.openai_server import OpenAIServer
from tests.processes import RETRY_DEADLINE_S

pytestmark = pytest.mark.engine

B = RunContext.for_condition("B")


def test_an_episode_in_one_call() -> None:
    result = run_episode(0, context=B, model=household_gold(0))
    assert set(result) == set(EpisodeOutput.__annotations__)
    assert result["success"]
    assert result["failure_mode"] is None
    assert result["steps"] == len(result["history"])
    assert result["prompt_tokens"] > 1000
    assert result["task_id"].startswith("pick_and_place_simple-")


def test_defaults_are_the_full_method_on_the_first_unseen_home() -> None:
    short = RunContext(max_steps=2)
    result = run_episode(context=short)
    assert result["condition"] == "D"
    assert result == run_episode("0", split="generated_unseen", context=short)


async def test_the_four_ways_of_running_give_the_same() -> None:
    whole = run_episode(2, context=B)
    assert await arun_episode(2, context=B) == whole
    *events, last = parts = list(stream_episode(2, context=B))
    assert last == whole
    assert [event["turn"] for event in events] == last["history"]
    assert all(event["rules"] > 20 for event in events)
    assert [part async for part in astream_episode(2, context=B)] == parts


async def test_many_in_flight_give_what_one_by_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """More episodes than the registry keeps open, so some are rebuilt on the way."""
    monkeypatch.setattr(live, "MOST_OPEN", 2)
    tasks = [(task, condition) for task in range(2) for condition in "AB"]
    assert len(tasks) > live.MOST_OPEN
    contexts = [RunContext.for_condition(c, max_steps=4) for _, c in tasks]
    together = await asyncio.gather(
        *(arun_episode(t, context=c) for (t, _), c in zip(tasks, contexts, strict=True))
    )
    alone = [run_episode(t, context=c) for (t, _), c in zip(tasks, contexts, strict=True)]
    assert together == alone
    assert {result["condition"] for result in together} == {"A", "B"}


async def test_a_failing_model_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Opening a client and handing back a simulator wait for what only a free loop can give."""
    opening, closing = threading.Event(), threading.Event()
    waited: list[bool] = []

    def no_model(*_: Any) -> Any:
        loop.call_soon_threadsafe(opening.set)
        waited.append(opening.wait(RETRY_DEADLINE_S))
        raise RpmsError("no such model")

    def finish(*_: Any) -> None:
        loop.call_soon_threadsafe(closing.set)
        waited.append(closing.wait(RETRY_DEADLINE_S))

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(import_module("rpms.nodes.llm_call"), "open_chat", no_model)
    monkeypatch.setattr(live, "finish", finish)
    with pytest.raises(RpmsError, match="no such model"):
        await arun_episode(0, context=B)
    assert waited == [True, True]


@pytest.mark.parametrize("condition", ["A", "D", "E"])
async def test_a_loop_gives_what_a_plain_run_gives(condition: str) -> None:
    """The same stages are visited in the same order, and every update is the same."""
    context = RunContext.for_condition(condition, max_steps=6)
    task = EpisodeInput(split="generated_unseen", task=4)
    graph = build_graph()
    plain = list(graph.stream(task, context=context, stream_mode="updates"))
    final: dict[str, Any] = {}
    number = 0
    async for update in graph.astream(task, context=context, stream_mode="updates"):
        assert list(update) == list(plain[number])
        for stage, change in update.items():
            assert {**change, "episode_id": ""} == {**plain[number][stage], "episode_id": ""}
            apply_update(final, change)
        number += 1
    assert number == len(plain)
    assert {key: final[key] for key in EpisodeOutput.__annotations__} == run_episode(
        4, context=context
    )


async def test_the_loop_is_free_while_models_are_slow(openai_server: OpenAIServer) -> None:
    """Four episodes ask while none of them is answered."""
    openai_server.plays(openai_server.script[0]._replace(delay=50.0))
    context = RunContext(model="openai:m", base_url=openai_server.url, max_steps=1)
    graph = build_graph()
    asking = [
        asyncio.create_task(arun_episode(task, graph=graph, context=context)) for task in range(4)
    ]
    while len(openai_server.requests) < 4:
        await asyncio.sleep(0.01)
        assert not any(episode.done() for episode in asking)
    for episode in asking:
        episode.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    live.close_all()


@pytest.mark.parametrize("context", [None, {}, RunContext(max_steps=9)])
def test_a_resumed_run_keeps_the_settings_it_began_with(context: Any) -> None:
    """Whatever the call gives: an episode is one experiment. A new one begins under the call's."""
    graph = build_graph(checkpointer=InMemorySaver())
    task = EpisodeInput(split="generated_unseen", task=2)
    begun = RunContext.for_condition("A", max_steps=3)
    graph.invoke(task, config("t"), context=begun, interrupt_after=["belief_update"])
    assert graph.get_state(config("t")).next == ("prompt_build",)
    result = graph.invoke(None, config("t"), context=context)
    assert (result["condition"], result["steps"]) == ("A", 3)
    assert graph.get_state(config("t")).values["settings"] == begun.plain
    anew = graph.invoke(task, config("t"), context=RunContext(max_steps=1))
    assert (anew["condition"], anew["steps"]) == ("D", 1)


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    if request.param == "memory":
        yield InMemorySaver()
        return
    connection = sqlite3.connect(tmp_path / "episodes.sqlite", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()


def config(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def test_after_a_crash_the_episode_goes_on_by_replay(
    saver: BaseCheckpointSaver[Any], caplog: pytest.LogCaptureFixture
) -> None:
    gold = household_gold(5)
    whole = run_episode(5, context=B, model=gold)
    assert whole["success"] and whole["steps"] > 6
    graph = build_graph(checkpointer=saver, model=gold)
    episode: Any = {"task": "5", "split": "generated_unseen"}
    for stop in range(7):
        graph.invoke(episode, config("a"), context=B, interrupt_before=["env_step"])
        episode = None
        if stop in (0, 3, 6):
            live.close_all()  # every simulator of this process is gone
    graph = build_graph(checkpointer=saver, model=gold)  # as a new process has it
    result = graph.invoke(None, config("a"), context=B)
    assert result == whole
    assert not caplog.records


POWER_CUT = """
import os, sys
import rpms
from langgraph.checkpoint.sqlite import SqliteSaver


def watched(state):
    return os._exit(9) if state["steps"] == 3 else {}


with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    context = rpms.RunContext.for_condition("B", max_steps=6)
    graph = rpms.build_graph(before={"env_step": watched}, checkpointer=saver, context=context)
    graph.invoke({"task": 5}, {"configurable": {"thread_id": "a"}}, durability="sync")
"""


def test_a_process_that_dies_loses_nothing_that_is_written_in_sync(tmp_path: Path) -> None:
    def watched(state: EpisodeState) -> EpisodeState:
        return {}

    file = str(tmp_path / "episodes.sqlite")
    done = subprocess.run([sys.executable, "-c", POWER_CUT, file], check=False)
    assert done.returncode == 9
    whole = run_episode(5, context=B.with_(max_steps=6))
    with SqliteSaver.from_conn_string(file) as saver:
        graph = build_graph(before={"env_step": watched}, checkpointer=saver)
        state = graph.get_state(config("a"))
        assert (state.next, state.values["steps"]) == (("watched",), 3)
        assert graph.invoke(None, config("a")) == whole


def test_an_earlier_checkpoint_can_be_taken_up_again() -> None:
    """Time travel: the simulator is further on than the state, and must be set back."""
    graph = build_graph(checkpointer=InMemorySaver())
    whole = graph.invoke({"task": "2", "split": "generated_unseen"}, config("t"), context=B)
    early = next(
        snapshot
        for snapshot in graph.get_state_history(config("t"))
        if snapshot.next == ("env_step",) and snapshot.values["steps"] == 2
    )
    assert graph.invoke(None, early.config, context=B) == whole


def test_a_record_that_does_not_fit_the_world_is_never_continued() -> None:
    graph = build_graph(checkpointer=InMemorySaver())
    graph.invoke({"task": "2", "split": "generated_unseen"}, config("t"), context=B,
                 interrupt_after=["env_step"])  # fmt: skip
    (turn,) = graph.get_state(config("t")).values["history"]
    forged = Turn(**{**turn, "observation": "You see a dragon."})
    graph.update_state(config("t"), {"history": Overwrite([forged])}, as_node="env_step")
    live.close_all()
    result = graph.invoke(None, config("t"), context=B)
    assert (result["failure_mode"], result["success"]) == ("infrastructure_error", False)
    assert "last recorded observation, 'You see a dragon.'" in result["error"]


def test_no_game_is_left_behind() -> None:
    live.close_all()
    for task in range(3):
        run_episode(task, context=B)
    assert live._open == {}
    assert live._spare == {}  # there is nothing to keep of an ALFWorld game
