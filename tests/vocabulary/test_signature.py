from __future__ import annotations

import pytest

from rpms.vocabulary.goal import GoalSpec
from rpms.vocabulary.signature import (
    GoalSignature,
    goal_signature,
    hand_was_empty,
    occasion,
    read_signature,
)

GOAL = GoalSpec(
    sentence="put a hot mug in cabinet.",
    type="pick_heat_then_place_in_recep",
    object="mug",
    state="hot",
    count=1,
    destination="cabinet",
    signature="pick_heat_then_place_in_recep:mug:hot:cabinet",
)


def test_gamma_is_type_object_and_destination() -> None:
    gamma = goal_signature(GOAL)
    assert gamma == GoalSignature("pick_heat_then_place_in_recep", "mug", "cabinet")


def test_gamma_matches_on_three_fields_only() -> None:
    # The printed form has four; the paper's formula, which we match on, has three.
    kind, thing, _, place = GOAL["signature"].split(":")
    other = GoalSpec(**{**GOAL, "count": 2, "signature": f"{kind}:{thing}:cold:{place}"})
    assert goal_signature(other) == goal_signature(GOAL)


@pytest.mark.parametrize("field", [0, 1, 3])
def test_gamma_tells_goals_apart(field: int) -> None:
    parts = GOAL["signature"].split(":")
    parts[field] = "other"
    other = GoalSpec(**{**GOAL, "signature": ":".join(parts)})
    assert goal_signature(other) != goal_signature(GOAL)


def test_signatures_are_read_in_both_printed_forms() -> None:
    assert read_signature("pick_heat_then_place_in_recep:mug:hot:cabinet") == goal_signature(GOAL)
    assert read_signature("F3:melt:water") == ("F3", "water", "melt")


def test_the_hand_is_read_from_the_printed_state() -> None:
    assert hand_was_empty("holding=none|open=fridge 1")
    assert not hand_was_empty("holding=mug 1|open=fridge 1")


def test_an_occasion_is_the_room_or_else_the_hand() -> None:
    assert occasion("room=kitchen|inventory=empty|progress=0") == "kitchen"
    assert occasion("holding=none") != occasion("holding=mug 1|open=fridge 1")
    assert occasion("holding=none|open=fridge 1") == occasion("holding=none")


def test_signatures_are_keys() -> None:
    assert {goal_signature(GOAL): 1}[goal_signature(GOAL)] == 1
