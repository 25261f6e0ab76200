"""Which actions serve a sub-goal, and what speaks against others: from belief and manual alone."""

from __future__ import annotations

from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.guard.procedure import applicable_actions, find_violation
from rpms.rules.conditions import DecisionPoint
from rpms.rules.verdicts import Violation
from rpms.vocabulary.goal import SubGoal
from tests.envs.playing import believing

ENV = get_environment("alfworld")
MANUAL = load_manual("alfworld")
PLACES = ["cabinet 2", "cabinet 10", "countertop 1", "fridge 1", "microwave 1", "sofa 1"]
HEAT = "put a hot apple in cabinet"


def now(sentence: str = HEAT, no_effect: tuple[str, ...] = (), **fields: Any) -> DecisionPoint:
    goal, belief = ENV.parse_goal(sentence), believing(places=PLACES, **fields)
    return DecisionPoint(MANUAL, goal, ENV.sub_goal(goal, belief, []), belief, no_effect)


def actions(situation: DecisionPoint) -> list[str]:
    return [choice["action"] for choice in applicable_actions(situation)]


def test_search_goes_to_likely_places_first_and_never_back() -> None:
    fresh = actions(now())
    assert fresh[:2] == ["go to fridge 1", "go to countertop 1"]
    likely = ("fridge 1", "countertop 1", "cabinet 2", "cabinet 10", "microwave 1")
    assert set(fresh) == {f"go to {place}" for place in likely}
    remaining = actions(now(location="fridge 1", searched=["fridge 1", "countertop 1"],
                       containers={"fridge 1": "open"}))  # fmt: skip
    assert remaining == ["go to cabinet 2", "go to cabinet 10", "go to microwave 1"]
    assert not {"go to fridge 1", "go to countertop 1"} & set(remaining)
    # Unlikely places are for when no likely one is left.
    searched = ["fridge 1", "countertop 1", "microwave 1", "cabinet 2", "cabinet 10"]
    rest = actions(now(location="fridge 1", containers={"fridge 1": "open"}, searched=searched))
    assert rest == ["go to sofa 1"]


def test_a_refused_walk_tells_that_the_place_is_here() -> None:
    searched = ["countertop 1"]
    refused = now(location="countertop 1", searched=searched, no_effect=("go to cabinet 2",))
    assert actions(refused) == ["look"]
    # Having looked, nothing has to be walked to: the door is seen from here, then opened.
    here = ["cabinet 2", "countertop 1"]
    looked = now(location="countertop 1", searched=searched, reachable=["cabinet 2"],
                 spots=dict.fromkeys(here, here))  # fmt: skip
    assert actions(looked) == ["examine cabinet 2"]
    seen = looked._replace(
        belief=believing(**{**looked.belief, "containers": {"cabinet 2": "closed"}})
    )
    assert actions(seen) == ["open cabinet 2"]


def test_what_is_closed_here_is_opened_first() -> None:
    here = now(location="fridge 1", containers={"fridge 1": "closed"})
    (first, *_) = applicable_actions(here)
    assert first == {
        "action": "open fridge 1", "rule": "O-ACT-002",
        "reason": "fridge 1 is closed and has not been looked into",
    }  # fmt: skip


@pytest.mark.parametrize(("fields", "best"), [
    ({"location": "sofa 1", "last_seen": {"apple 1": "fridge 1"}}, "go to fridge 1"),
    ({"location": "fridge 1", "last_seen": {"apple 1": "fridge 1"}, "searched": ["fridge 1"],
      "containers": {"fridge 1": "open"}}, "take apple 1 from fridge 1"),
    ({"location": "fridge 1", "last_seen": {"apple 1": "fridge 1"}, "searched": ["fridge 1"],
      "containers": {"fridge 1": "closed"}}, "open fridge 1"),
    ({"location": "fridge 1", "holding": ["apple 1"]}, "go to microwave 1"),
    ({"location": "microwave 1", "holding": ["apple 1"]}, "heat apple 1 with microwave 1"),
    ({"location": "sofa 1", "holding": ["pillow 1"], "searched": ["sofa 1"]},
     "put pillow 1 in/on sofa 1"),
])  # fmt: skip
def test_the_canonical_sequence(fields: dict[str, Any], best: str) -> None:
    assert actions(now(**fields))[0] == best


def test_the_destination_of_a_heated_object() -> None:
    goal = ENV.parse_goal("put a hot mug in cabinet")
    belief = believing(places=PLACES, location="microwave 1", holding=["mug 1"])
    step = SubGoal(name="place_object", target="mug 1 in/on cabinet", progress=75)
    assert actions(DecisionPoint(MANUAL, goal, step, belief)) == [
        "go to cabinet 2", "go to cabinet 10",
    ]  # fmt: skip
    there = believing(places=PLACES, location="cabinet 2", holding=["mug 1"],
                      searched=["cabinet 2"], containers={"cabinet 2": "open"})  # fmt: skip
    # Only once it is hot: the manual forbids to place it before.
    assert actions(DecisionPoint(MANUAL, goal, step, there)) == ["go to cabinet 10"]
    hot = believing(**{**there, "flags": {"mug 1": "hot"}})
    assert actions(DecisionPoint(MANUAL, goal, step, hot))[0] == "put mug 1 in/on cabinet 2"


def test_the_destination_may_be_at_this_very_spot() -> None:
    goal = ENV.parse_goal("put a apple in countertop")
    belief = believing(places=PLACES, location="cabinet 2", holding=["apple 1"])
    step = SubGoal(name="place_object", target="apple 1 in/on countertop", progress=66)
    assert actions(DecisionPoint(MANUAL, goal, step, belief)) == ["go to countertop 1"]
    refused = DecisionPoint(MANUAL, goal, step, belief, ("go to countertop 1",))
    assert actions(refused) == ["put apple 1 in/on countertop 1"]
    seen = believing(**{**belief, "reachable": ["countertop 1"], "searched": ["countertop 1"]})
    assert actions(DecisionPoint(MANUAL, goal, step, seen)) == ["put apple 1 in/on countertop 1"]


def test_a_last_resort_is_offered_only_when_nothing_else_is() -> None:
    full = now(location="sofa 1", searched=["sofa 1"], holding=["pillow 1"])
    assert full.sub_goal["name"] == "free_hand"
    assert actions(full) == ["put pillow 1 in/on sofa 1"]
    nowhere = now(location="fridge 1", searched=["fridge 1"], holding=["pillow 1"],
                  containers={"fridge 1": "open"})  # fmt: skip
    assert set(actions(nowhere)) == {f"go to {place}" for place in PLACES if place != "fridge 1"}


@pytest.mark.parametrize(("action", "fields", "rule", "says"), [
    ("dance", {}, "O-FAIL-003", "it is not one of the available actions"),
    ("open fridge 1", {"location": "sofa 1"}, "O-ACT-002",
     "it needs you to be at fridge 1, and you are at sofa 1"),
    ("put apple 1 in/on microwave 1", {"location": "microwave 1", "holding": ["apple 1"]},
     "D-HEAT-001", "a rule forbids it for this goal"),
    ("put mug 1 in/on cabinet 2",
     {"sentence": "put a hot mug in cabinet", "location": "cabinet 2", "holding": ["mug 1"],
      "containers": {"cabinet 2": "open"}},
     "D-TRANS-003", "a rule forbids it for this goal"),
])  # fmt: skip
def test_vetoes(action: str, fields: dict[str, Any], rule: str, says: str) -> None:
    against = find_violation(now(**fields), action)
    assert against is not None
    assert (against.rule, against.reason) == (rule, says)


def test_what_was_tried_in_vain_is_not_tried_again() -> None:
    against = find_violation(now(no_effect=("go to fridge 1",)), "go to fridge 1")
    assert against == Violation(
        "U-FAIL-001", "it changed nothing before, and nothing has changed since"
    )
    assert "go to fridge 1" not in actions(now(no_effect=("go to fridge 1",)))
    assert find_violation(now(), "go to fridge 1") is None
    # Waiting and looking may be repeated: time passes. What was refused may not.
    assert find_violation(science(("wait",), visible=["stove"]), "wait") is None
    looked = science(("look in stove", "wait"), visible=["stove"])
    assert find_violation(looked, "look in stove") is None
    against = find_violation(looked._replace(rejected={"look in stove"}), "look in stove")
    assert against == Violation(
        "U-FAIL-001", "it was rejected before, and nothing has changed since"
    )


SCIENCE = load_manual("scienceworld")
MELT = (
    "Your task is to melt tin. First, focus on the substance. Then, take actions that will cause "
    "it to change its state of matter."
)


def test_a_way_that_led_back_is_not_taken_again_while_another_is_left() -> None:
    here = now(location="sofa 1", searched=["sofa 1", "countertop 1"])
    best, second, *_ = actions(here)
    again = here._replace(repeated_here=[best])
    assert actions(again)[0] == second and best not in actions(again)
    # The guard lets a second try pass, as the rule does, and sends the third back.
    assert find_violation(again, best) is None
    reason = "it was played in this very situation twice and led back here"
    assert find_violation(here._replace(repeated_here=[best, best]), best) == Violation(
        "U-FAIL-001", reason
    )
    # Where nothing else is left, one of them may have been left too early.
    assert actions(here._replace(repeated_here=actions(here))) == actions(here)


def science(no_effect: tuple[str, ...] = (), **fields: Any) -> DecisionPoint:
    world = get_environment("scienceworld")
    goal = world.parse_goal(MELT)
    belief = believing(location="kitchen", **fields)
    return DecisionPoint(SCIENCE, goal, world.sub_goal(goal, belief, []), belief, no_effect)


@pytest.mark.parametrize("thing", ["stove", "metal pot", "lead", "kitchen"])
def test_no_focus_on_what_is_not_the_target(thing: str) -> None:
    seen = science(visible=["stove", "metal pot", "lead", "tin"], last_seen={"tin": "metal pot"})
    against = find_violation(seen, f"focus on {thing}")
    assert against is not None and against.rule
    assert find_violation(seen, "focus on tin") is None
    assert actions(seen)[0] == "focus on tin"
