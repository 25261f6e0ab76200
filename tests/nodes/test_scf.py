from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.nodes.scf import scf
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall, new_advice, new_recall, surviving

GOAL = get_environment("alfworld").parse_goal("put a hot mug in cabinet")


def recall(**entry: Any) -> Recall:
    return new_recall(entry, 1.0, 1, new_advice(entry.get("actions", [])))


def belief(**fields: Any) -> Belief:
    return Belief(**{**empty_belief(), **fields})  # type: ignore[typeddict-item]


def run(recalls: list[Recall], now: Belief, mode: str = "occupancy") -> list[Recall]:
    runtime = SimpleNamespace(context=RunContext(scf=mode))  # type: ignore[arg-type]
    state = EpisodeState(env="alfworld", goal=GOAL, belief=now, recalls=recalls)
    return scf(state, runtime)["recalls"]  # type: ignore[arg-type]


FULL = recall(type="success", state_signature="holding=mug 2", actions=["go to cabinet 1"])
EMPTY = recall(type="success", state_signature="holding=none|open=fridge 1",
               actions=["go to fridge 1", "take mug 1 from fridge 1"])  # fmt: skip
SCHEMA = recall(type="schema", action_template="cool {object} with fridge 1")
CASES = [("", FULL, EMPTY), ("mug 1", EMPTY, FULL)]


@pytest.mark.parametrize(("held", "dropped", "kept"), CASES)
def test_hand_occupancy_must_match(held: str, dropped: Recall, kept: Recall) -> None:
    now = belief(holding=[held] if held else [])
    first, second, third = run([dropped, kept, SCHEMA], now)
    assert first["dropped_by"] == "scf"
    assert "hand" in first["reason"]
    assert second == kept and third == SCHEMA


def test_the_reason_names_what_is_held() -> None:
    assert run([EMPTY], belief(holding=["mug 1"]))[0]["reason"] == (
        "recorded with an empty hand, holding mug 1 now"
    )


def test_preconditions_mode_asks_whether_the_first_action_can_work() -> None:
    now = belief(location="desk 1", places=["desk 1", "cabinet 1"])
    away = recall(type="success", state_signature="holding=none", actions=["go to shelf 7"])
    near = recall(type="success", state_signature="holding=none", actions=["go to cabinet 1"])
    assert not run([away], now)[0]["dropped_by"]
    checked = run([away, near], now, "preconditions")
    assert checked[0]["dropped_by"] == "scf"
    assert checked[0]["reason"] == "'go to shelf 7' cannot work now: shelf 7 exists in this room"
    assert surviving(checked) == [near]


def test_the_input_is_not_changed() -> None:
    run([FULL], belief())
    assert FULL["dropped_by"] == ""
