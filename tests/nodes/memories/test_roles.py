"""What a home's names stand for: experience lifted out of it, and said again elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.nodes.manual import load_manual
from rpms.nodes.memories.roles import fill, lift
from rpms.vocabulary.goal import GoalSignature

HOME, LAB = load_manual("alfworld"), load_manual("scienceworld")
COOL = GoalSignature("pick_cool_then_place_in_recep", "mug", "cabinet")
LOOK = GoalSignature("look_at_obj_in_light", "pen", "desklamp")


def test_every_step_is_told_with_the_walk_to_where_it_is_done() -> None:
    actions = ["go to desk 3", "take mug 2 from desk 3", "go to fridge 1",
               "cool mug 2 with fridge 1", "go to cabinet 4", "open cabinet 4",
               "put mug 2 in/on cabinet 4"]  # fmt: skip
    assert lift(HOME, COOL, actions) == [
        "go to {object's place}", "take {object} from {object's place}",
        "go to {a fridge}", "cool {object} with {a fridge}",
        "go to {destination}", "open {destination}", "put {object} in/on {destination}",
    ]  # fmt: skip


def test_two_roles_at_one_place_come_apart() -> None:
    """It lay in the fridge that cools it: elsewhere it will lie somewhere else."""
    actions = ["open fridge 1", "take mug 2 from fridge 1", "cool mug 2 with fridge 1"]
    assert lift(HOME, COOL, actions) == [
        "go to {object's place}", "open {object's place}", "take {object} from {object's place}",
        "go to {a fridge}", "cool {object} with {a fridge}",
    ]  # fmt: skip


def test_a_lamp_is_used_where_it_stands() -> None:
    assert lift(HOME, LOOK, ["go to desk 1", "use desklamp 1"]) == [
        "go to {destination's place}", "use {destination}",
    ]  # fmt: skip


@pytest.mark.parametrize("action", ["take pen 1 from desk 1", "heat apple 3 with microwave 1"])
def test_what_handles_another_thing_cannot_be_lifted(action: str) -> None:
    assert lift(HOME, COOL, [action]) is None


def test_a_walk_alone_goes_by_its_kind() -> None:
    assert lift(HOME, COOL, ["go to drawer 7"]) == ["go to {a drawer}"]
    assert lift(HOME, COOL, ["go to cabinet 7"]) == ["go to {destination}"]


def test_names_without_numbers_stay_but_for_the_goals_own_object() -> None:
    goal = GoalSignature("F3", "tin", "melt")
    actions = ["focus on tin", "move metal pot to stove", "focus on tin in metal pot"]
    assert lift(LAB, goal, actions) == [
        "focus on {the object}", "move metal pot to stove", "focus on {the object} in metal pot",
    ]  # fmt: skip


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30))
def test_filled_in_with_its_own_names_it_says_what_was_done(
    thing: int, place: int, to: int
) -> None:
    mug, desk, cabinet = f"mug {thing}", f"desk {place}", f"cabinet {to}"
    actions = [f"go to {desk}", f"take {mug} from {desk}", f"go to {cabinet}",
               f"put {mug} in/on {cabinet}"]  # fmt: skip
    lifted = lift(HOME, COOL, actions)
    assert lifted is not None and not any(c.isdigit() for text in lifted for c in text)
    cast = {"object": mug, "object's place": desk, "destination": cabinet}
    assert [fill(text, cast) for text in lifted] == actions
    assert fill("go to {a safe}", cast) == "go to ?"
