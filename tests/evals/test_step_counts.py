"""From which goal types the memories in a prompt came."""

from __future__ import annotations

from typing import Any

from rpms.evals.step_counts import ANY_GOAL, source_counts, source_type


def first(printed: str) -> str:
    return printed.partition(":")[0]


def recall(name: str, dropped: str = "", **entry: Any) -> dict[str, Any]:
    return {"entry": {"id": name, **entry}, "dropped_by": dropped}


def test_an_entry_is_counted_once_and_its_steps_all() -> None:
    heat, cool = {"goal_signature": "heat:mug"}, {"goal_signature": "cool:mug"}
    steps = [
        {"recalls": [recall("m1", **heat), recall("m2", **heat), recall("m3", **cool)]},
        {"recalls": [recall("m1", **heat), recall("m4", "scf", **cool), recall("m5")]},
        {"recalls": []},
        {},
    ]
    found = source_counts(steps, {}, first)["memory_sources"]
    assert found == {"heat": [2, 2], "cool": [1, 1], ANY_GOAL: [1, 1]}
    assert source_counts(steps, {"memory_control": "filler"}, first)["memory_sources"] == {}


def test_an_entry_without_a_goal_may_name_its_source() -> None:
    assert source_type({"goal_signature": "heat:mug", "source": "x"}, first) == "heat"
    assert source_type({"source": "insights"}, first) == "insights"
    assert source_type({}, first) == source_type({"goal_signature": ":"}, first) == ANY_GOAL
