from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, get_type_hints

import pytest
from langgraph.runtime import Runtime

from rpms.envs import Task, get_environment
from rpms.envs.registry import find_task
from rpms.graph import run_episode
from rpms.nodes import reset_env
from rpms.nodes.state import EpisodeInput, EpisodeState
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import EnvironmentFault, RpmsError
from tests.scripted_episode import put_underneath

ENV, SPLIT = "alfworld", "generated_unseen"
# Written by the stage that follows at once, in every condition.
WRITTEN_NEXT = {"sub_goal"}


def test_by_index_by_id_and_by_trial() -> None:
    tasks = get_environment(ENV).tasks(SPLIT)
    third = tasks[3]
    trial = third["id"].split("/")[1]
    for name in ("3", " 3 ", "003", third["id"], trial):
        assert find_task(ENV, SPLIT, name) == third


def test_a_generated_split_grows_to_the_index() -> None:
    task = find_task(ENV, SPLIT, "75")
    assert task["index"] == 75
    assert len(get_environment(ENV).tasks(SPLIT)) == 60
    assert find_task(ENV, SPLIT, task["id"]) == task, "what a longer list shows"
    assert find_task(ENV, SPLIT, task["id"].split("/")[1]) == task


@pytest.mark.parametrize("name", ["10000", "9" * 30, "9" * 5000])
def test_a_mistyped_index_is_refused_without_generating_anything(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = []
    world = get_environment(ENV)
    tasks = world.tasks(SPLIT)
    monkeypatch.setattr(world, "tasks", lambda *args: listed.append(args) or tasks)
    with pytest.raises(RpmsError, match=r"'generated_unseen' has 60 tasks; there is no task") as e:
        find_task(ENV, SPLIT, name)
    assert len(str(e.value)) < 120
    assert listed == [(SPLIT, None)]


def test_an_index_beyond_a_fixed_split(monkeypatch: pytest.MonkeyPatch) -> None:
    world = get_environment(ENV)
    tasks = world.tasks(SPLIT)[:5]
    monkeypatch.setattr(world, "tasks", lambda split, count=None: tasks)
    assert find_task(ENV, SPLIT, "4") == tasks[4]
    with pytest.raises(RpmsError, match="split 'generated_unseen' has 5 tasks; there is no task 5"):
        find_task(ENV, SPLIT, "5")


@pytest.mark.parametrize("name", ["nosuch", "-1", "1.5", "\u00b2", "", "trial", "../etc"])
def test_unknown_task(name: str) -> None:
    with pytest.raises(
        RpmsError, match=r"no task .* in split 'generated_unseen' of alfworld.*rpms"
    ):
        find_task(ENV, SPLIT, name)


def test_a_trial_name_that_fits_two_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    base = get_environment(ENV).tasks(SPLIT)[0]
    tasks = [Task(**{**base, "id": name}) for name in ("a/trial_1", "b/trial_1", "trial_1/x")]
    monkeypatch.setattr(get_environment(ENV), "tasks", lambda split, count=None: tasks)
    with pytest.raises(RpmsError, match="'trial_1' names 2 tasks of 'generated_unseen'; give the"):
        find_task(ENV, SPLIT, "trial_1")
    assert find_task(ENV, SPLIT, "b/trial_1") == tasks[1]


def test_unknown_names() -> None:
    with pytest.raises(RpmsError, match="unknown environment 'mars'; known: alfworld"):
        find_task("mars", SPLIT, "0")
    with pytest.raises(RpmsError, match="unknown ALFWorld split 'dev'"):
        find_task(ENV, "dev", "0")


@pytest.fixture
def reset(monkeypatch: pytest.MonkeyPatch) -> Callable[..., EpisodeState]:
    """The stage, with an opening for every task instead of a game."""
    put_underneath(monkeypatch, start=lambda episode_id, spec: f"opening of {spec['id']}")

    def stage(condition: str = "D", k: int = 3, task: str | int = 0, **input: Any) -> EpisodeState:
        context = RunContext.for_condition(condition, k=k)
        return reset_env(EpisodeState(task=task, **input), Runtime(context=context))

    return stage


Reset = Callable[..., EpisodeState]


def test_sets_every_key_anew(reset: Reset) -> None:
    """A thread that is run a second time must not see anything of the first episode."""
    update = reset("B", env=ENV, split=SPLIT, task="1")
    state_only = set(get_type_hints(EpisodeState)) - set(get_type_hints(EpisodeInput))
    assert state_only - set(update) == WRITTEN_NEXT
    assert update["task_id"] == update["spec"]["id"]
    assert update["condition"] == "B"
    assert update["observation"] == update["first_observation"]
    assert update["observation"] == f"opening of {update['task_id']}"
    assert update["goal"]["type"] in update["task_id"]
    assert (update["steps"], update["success"], update["done"]) == (0, False, False)
    assert not any(update["rules"].values())


def test_what_the_input_leaves_open(reset: Reset) -> None:
    update = reset()
    world = get_environment(update["env"])
    assert update["spec"] == world.tasks(world.splits()[0])[0]
    assert len({reset(task="0")["episode_id"] for _ in range(3)}) == 3
    for task in (1, "1", " 1 "):
        assert reset(task=task)["spec"]["index"] == 1


def test_the_settings_of_the_run_are_copied_into_the_state(reset: Reset) -> None:
    update = reset("C", k=1)
    assert settings(update["settings"]) == RunContext.for_condition("C", k=1)
    assert json.loads(json.dumps(update["settings"])) == update["settings"]


def test_an_unreadable_goal_starts_no_simulator(
    reset: Reset, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    put_underneath(monkeypatch, start=lambda episode_id, spec: started.append(episode_id))
    task = Task(**{**find_task(ENV, SPLIT, "0"), "goal": "dance"})
    monkeypatch.setattr(import_module("rpms.nodes.reset_env"), "find_task", lambda *_: task)
    with pytest.raises(RpmsError, match="cannot read the goal 'dance'"):
        reset(task="0")
    assert not started


def test_a_world_that_does_not_start_is_an_infrastructure_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(episode_id: str, spec: Task) -> str:
        raise EnvironmentFault("the simulator did not start")

    put_underneath(monkeypatch, start=broken)
    result = run_episode(0)
    assert (result["failure_mode"], result["success"]) == ("infrastructure_error", False)
    assert result["error"] == "the simulator did not start" and result["steps"] == 0
