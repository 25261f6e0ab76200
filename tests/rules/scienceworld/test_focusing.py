"""What may be focused on: only what the belief tells to be meant, for a wrong one ends it all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rpms.envs import get_environment
from rpms.nodes.manual import load_manual
from rpms.policy import DecisionPoint, serving_actions
from rpms.vocabulary.belief import Belief, Event, empty_belief

WORLD = get_environment("scienceworld")
MANUAL = load_manual("scienceworld")
Served = Callable[..., list[str]]

POINT = (
    "Your task is to measure the melting point of tin, which is located around the kitchen. First, "
    "focus on the thermometer. Next, focus on the tin. If the melting point of tin is above 50.0 "
    "degrees celsius, focus on the red box. If the melting point of tin is below 50.0 degrees "
    "celsius, focus on the green box. The boxes are located around the kitchen."
)
FIND = (
    "Your task is to find a(n) {}. First, focus on the thing. Then, move it to the red box in the "
    "kitchen."
)
FRUIT = (
    "Your task is to grow a pear. This will require growing several plants, and them being "
    "crosspollinated to produce fruit.  Seeds can be found in the bedroom. To complete the task, "
    "focus on the grown pear."
)
PLANES = (
    "Your task is to determine which of the two inclined planes (C, D) has the steepest angle. "
    "After "
    "completing your experiment, focus on the inclined plane with the steepest angle."
)
SPAN = (
    "Your task is to find the animal with the {} life span.  The animals are in the 'outside' "
    "location.  Focus on the animal with the {} life span."
)
STAGES = (
    "Your task is to focus on the 4 life stages of the turtle, starting from earliest to latest."
)
TRAIT = (
    "Your task is to determine whether tall plant height is a dominant or recessive trait in the "
    "pea "
    "plant. If the trait is dominant, focus on the red box. If the trait is recessive, focus on "
    "the "
    "green box."
)


def test_a_box_is_focused_on_only_once_the_reading_decides(served: Served) -> None:
    goal = WORLD.parse_goal(POINT)
    seen = Belief(**{**empty_belief(), "location": "kitchen", "visible": ["red box", "green box"]})
    seen["events"] = [Event(kind="focus", thing=thing) for thing in ("thermometer", "tin")]
    read = {"tin was": "tin", "tin": "liquid, 210 degrees celsius"}
    for reading, offered in (("", []), (read["tin"], ["focus on red box"])):
        belief = Belief(**{**seen, "flags": {**read, "tin": reading or "liquid"}})
        step = WORLD.sub_goal(goal, belief, [])
        assert step["name"] == "answer_box"
        choices = serving_actions(DecisionPoint(MANUAL, goal, step, belief))
        assert [choice["action"] for choice in choices] == offered
    boiled = Belief(**{**seen, "flags": {**read, "tin": "gas, 210 degrees celsius"}})
    step = WORLD.sub_goal(goal, boiled, [])
    assert step["name"] == "measure_object"
    # Nothing the belief knows decides about a trait.
    boxes = "red box (dominant) or green box (recessive)"
    assert served(TRAIT, "answer_box", boxes, visible=["red box", "green box"]) == []


OUTSIDE = ["ground", "dove egg", "baby wolf", "axe", "pear tree", "fire pit"]


@pytest.mark.parametrize(("kind", "offered"), [
    ("animal", ["focus on baby wolf", "focus on dove egg"]),
    ("plant", ["focus on pear tree"]),
    ("living thing", ["focus on baby wolf", "focus on dove egg", "focus on pear tree"]),
    ("non-living thing", ["focus on axe"]),
])  # fmt: skip
def test_any_thing_of_the_kind_will_do(served: Served, kind: str, offered: list[str]) -> None:
    actions = served(FIND.format(kind), "focus_object", location="outside", visible=OUTSIDE)
    assert actions == offered


def test_what_was_chosen_is_taken_and_delivered_in_its_pot_if_it_has_one(served: Served) -> None:
    potted = {
        "events": [{"kind": "focus", "thing": "pear tree"}],
        "last_seen": {"pear tree": "flower pot 3"},
    }
    find = FIND.format("plant")
    here = {"visible": ["flower pot 3", "flower pot 4", "red box"], **potted}
    assert served(find, "take_object", **here) == ["pick up flower pot 3"]
    carried = {"visible": ["red box"], "holding": ["flower pot 3"], **potted}
    actions = served(find, "place_object", "plant to red box", **carried)
    assert "move flower pot 3 to red box" in actions
    assert all(action.endswith(" to red box") for action in actions)


def test_only_fruit_that_hangs_on_its_plant_has_grown(served: Served) -> None:
    def offered(where: str) -> list[str]:
        fields = {"visible": ["pear", "pear tree"], "last_seen": {"pear": where}}
        return served(FRUIT, "focus_object", "grown pear", **fields)

    assert offered("pear tree")[0] == "focus on pear"
    assert not any(action.startswith("focus") for action in offered("bowl"))


BOTH = ["wood block", "inclined plane C", "inclined plane D"]


@pytest.mark.parametrize(("other", "offered"), [
    ("60% down the plane", ["focus on inclined plane D"]),
    ("40% down the plane", []),
    ("bottom of the plane", []),
])  # fmt: skip
def test_the_plane_is_named_only_if_the_readings_differ(
    served: Served, other: str, offered: list[str]
) -> None:
    flags = {"inclined plane C": "wood block 40% down the plane",
             "inclined plane D": f"wood block {other}"}  # fmt: skip
    target = "inclined plane with the steepest angle"
    assert served(PLANES, "focus_object", target, visible=BOTH, flags=flags) == offered


@pytest.mark.parametrize(
    ("which", "animal"), [("longest", "parrot egg"), ("shortest", "baby mouse")]
)
def test_of_the_animals_in_view_one_lives_longest(served: Served, which: str, animal: str) -> None:
    seen = ["axe", "baby mouse", "parrot egg", "baby wolf", "ground"]
    target = f"animal with the {which} life span"
    actions = served(SPAN.format(which, which), "focus_object", target, location="outside",
                     visible=seen)  # fmt: skip
    assert actions == [f"focus on {animal}"]


def test_life_stages_start_with_the_first(served: Served) -> None:
    first = "turtle in life stage 1"
    assert served(STAGES, "focus_object", first, visible=["turtle egg"]) == ["focus on turtle egg"]
    late = served(STAGES, "focus_object", first, visible=["adult turtle"])
    assert not any(action.startswith("focus") for action in late)
    second = {"visible": ["hatchling turtle"], "events": [{"kind": "focus", "thing": "turtle egg"}]}
    assert served(STAGES, "focus_object", "turtle in life stage 2", **second) == [
        "focus on hatchling turtle"
    ]
