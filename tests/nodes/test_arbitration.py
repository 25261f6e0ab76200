"""The paper's conflicts, each settled the way the paper settles it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.nodes.arbitration import arbitration
from rpms.nodes.manual import load_manual
from rpms.nodes.memories.grounding import GroundingContext, ground
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.goal import SubGoal
from rpms.vocabulary.recall import Recall, new_advice, new_recall

ENV = get_environment("alfworld")
PLACES = ["fridge 1", "countertop 1", "microwave 1", "cabinet 1", "diningtable 1"]
COOL = "cool some apple and put it in countertop"


def belief(**fields: Any) -> Belief:
    return Belief(**{**empty_belief(), "places": PLACES, **fields})  # type: ignore[typeddict-item]


def snippet(*actions: str) -> Recall:
    return new_recall({"type": "success"}, 1.0, 1, new_advice(list(actions)))


def lesson(action: str) -> Recall:
    return new_recall({"type": "failure"}, 1.0, 1, new_advice([action]))


def judge(recall: Recall, sentence: str, now: Belief, mode: str = "hard+soft") -> Recall:
    goal = ENV.parse_goal(sentence)
    state = EpisodeState(
        env="alfworld", goal=goal, belief=now, recalls=[recall],
        sub_goal=ENV.sub_goal(goal, now, []),
    )  # fmt: skip
    runtime = SimpleNamespace(context=RunContext(arbitration=mode))  # type: ignore[arg-type]
    return arbitration(state, runtime)["recalls"][0]  # type: ignore[arg-type]


HOLDING = belief(location="fridge 1", holding=["apple 1"], containers={"fridge 1": "open"},
                 searched=["fridge 1"])  # fmt: skip


# Whether the countertop is at this very spot, and what is on it, nobody has looked yet.
UNSURE = belief(location="cabinet 1", searched=["cabinet 1"])


def test_putting_the_apple_into_the_fridge_before_cooling_is_removed() -> None:
    advice = snippet("put apple 1 in/on fridge 1", "cool apple 1 with fridge 1")
    judged = judge(advice, COOL, HOLDING)
    assert (judged["dropped_by"], judged["rule"]) == ("arbitration", "O-COOL-001")
    assert judged["reason"] == "'put apple 1 in/on fridge 1' is forbidden for this goal"


def test_cooling_in_hand_is_kept() -> None:
    judged = judge(snippet("cool apple 1 with fridge 1", "go to countertop 1"), COOL, HOLDING)
    assert judged["dropped_by"] == "" and judged["warning"] == ""


def test_putting_into_the_fridge_is_fine_when_the_fridge_is_the_destination() -> None:
    judged = judge(snippet("put apple 1 in/on fridge 1"), "put a apple in fridge", HOLDING)
    assert judged["dropped_by"] == ""


def test_advice_that_cannot_work_is_removed_with_the_rule() -> None:
    advice = snippet("take apple 1 from fridge 1")
    judged = judge(advice, COOL, belief(location="cabinet 1", spots={"cabinet 1": ["cabinet 1"]}))
    assert (judged["dropped_by"], judged["rule"]) == ("arbitration", "O-ACT-004")
    assert judged["reason"] == "'take apple 1 from fridge 1' needs: be at fridge 1"


def test_the_whole_advice_is_simulated_not_only_its_first_action() -> None:
    advice = snippet("go to microwave 1", "go to shelf 9", "take apple 1 from shelf 9")
    judged = judge(advice, COOL, belief(location="cabinet 1"))
    assert judged["dropped_by"] == "arbitration" and "shelf 9" in judged["reason"]


def test_what_the_belief_does_not_settle_is_kept_with_a_warning() -> None:
    judged = judge(snippet("take apple 1 from countertop 1"), COOL, UNSURE)
    assert judged["dropped_by"] == ""
    assert judged["rule"] == "O-ACT-004" and "countertop 1" in judged["warning"]


def test_a_lesson_against_what_a_rule_demands_is_caught() -> None:
    judged = judge(lesson("cool apple 1 with fridge 1"), COOL, HOLDING)
    assert (judged["dropped_by"], judged["rule"]) == ("arbitration", "O-ACT-007")
    assert judged["reason"] == "'cool apple 1 with fridge 1' is what cool_object demands now"


def test_a_lesson_against_something_merely_possible_is_warned_about() -> None:
    judged = judge(lesson("go to cabinet 1"), COOL, HOLDING)
    assert judged["dropped_by"] == "" and judged["warning"].endswith("its preconditions hold now")


def test_a_lesson_that_agrees_with_the_rules_stays_as_it_is() -> None:
    judged = judge(lesson("take apple 2 from cabinet 1"), COOL, HOLDING)
    assert judged["dropped_by"] == "" and judged["warning"] == ""


def test_a_lesson_about_another_object_is_only_warned_about() -> None:
    now = belief(location="fridge 1", holding=["apple 1", "mug 1"])
    judged = judge(lesson("cool mug 1 with fridge 1"), COOL, now)
    assert judged["dropped_by"] == "" and judged["warning"].endswith("its preconditions hold now")


MELT = (
    "Your task is to melt tin. First, focus on the substance. Then, take actions that will cause "
    "it to change its state of matter."
)
MEASURE = (
    "Your task is to measure the melting point of tin, which is located around the kitchen. First, "
    "focus on the thermometer. Next, focus on the tin. If the melting point of tin is above 50.0 "
    "degrees celsius, focus on the red box. If the melting point of tin is below 50.0 degrees "
    "celsius, focus on the blue box. The boxes are located around the kitchen."
)


def judge_fatal(action: str, sentence: str, step: str, target: str) -> Recall:
    recall = new_recall({"type": "critical_failure"}, 2.0, 1, new_advice([action]))
    goal = get_environment("scienceworld").parse_goal(sentence)
    now = belief(location="kitchen", visible=["stove", "tin", "lead", "red box", "blue box"])
    state = EpisodeState(
        env="scienceworld", goal=goal, belief=now, recalls=[recall],
        sub_goal=SubGoal(name=step, target=target, progress=20),
    )  # fmt: skip
    runtime = SimpleNamespace(context=RunContext())
    return arbitration(state, runtime)["recalls"][0]  # type: ignore[arg-type]


@pytest.mark.parametrize("action", ["focus on stove", "focus on lead"])
def test_a_critical_failure_that_the_rules_forbid_too_stays_as_it_is(action: str) -> None:
    judged = judge_fatal(action, MELT, "focus_object", "tin")
    assert judged["dropped_by"] == "" and judged["warning"] == ""


def test_a_critical_failure_against_what_the_task_names_is_removed() -> None:
    judged = judge_fatal("focus on tin", MELT, "focus_object", "tin")
    assert (judged["dropped_by"], judged["rule"]) == ("arbitration", "E-ACT-005")


def test_a_critical_failure_with_a_possible_answer_is_warned_about() -> None:
    choice = "red box (above 50.0 degrees celsius) or blue box (below 50.0 degrees celsius)"
    judged = judge_fatal("focus on red box", MEASURE, "answer_box", choice)
    assert judged["dropped_by"] == "" and judged["rule"] == "E-ACT-005"
    assert judged["warning"] == "'focus on red box' may be what answer_box demands now"
    assert judge_fatal("focus on red box", MEASURE, "find_object", "tin")["warning"] == ""


@pytest.mark.parametrize(
    ("mode", "dropped", "warned"),
    [
        ("hard+soft", True, False),
        ("hard", True, False),
        ("soft", False, True),
        ("none", False, False),
    ],
)
def test_modes_on_a_hard_conflict(mode: str, dropped: bool, warned: bool) -> None:
    judged = judge(snippet("put apple 1 in/on fridge 1"), COOL, HOLDING, mode)
    assert bool(judged["dropped_by"]) is dropped and bool(judged["warning"]) is warned


@pytest.mark.parametrize(
    ("mode", "warned"), [("hard+soft", True), ("soft", True), ("hard", False), ("none", False)]
)
def test_modes_on_a_soft_conflict(mode: str, warned: bool) -> None:
    judged = judge(snippet("take apple 1 from countertop 1"), COOL, UNSURE, mode)
    assert judged["dropped_by"] == "" and bool(judged["warning"]) is warned


def test_what_later_steps_leave_open_is_not_warned_about() -> None:
    advice = snippet("go to countertop 1", "take apple 1 from countertop 1")
    assert judge(advice, COOL, belief(location="fridge 1"))["warning"] == ""


def test_the_papers_example_goes_whatever_thing_it_was_recorded_with() -> None:
    """Goal: cool a cup. An entry of another home puts a mug into the fridge to cool it."""
    goal = ENV.parse_goal("cool some cup and put it in countertop")
    now = belief(location="fridge 1", holding=["cup 1"], containers={"fridge 1": "open"},
                 searched=["fridge 1"])  # fmt: skip
    entry = {
        "type": "success", "sub_goal_type": "cool_object", "state_signature": "holding=mug 2",
        "goal_signature": "pick_cool_then_place_in_recep:mug:cool:desk",
        "actions": ["put mug 2 in/on fridge 3", "take mug 2 from fridge 3",
                    "cool mug 2 with fridge 3"],
    }  # fmt: skip
    moment = GroundingContext(load_manual("alfworld"), goal, ENV.sub_goal(goal, now, []), now)
    entry["actions"] = ["put mug 2 in/on fridge 3"]
    advice = ground(entry, moment)
    assert advice is not None and advice["actions"] == ["put cup 1 in/on fridge 1"]
    sentence = "cool some cup and put it in countertop"
    judged = judge(new_recall(entry, 1.0, 1, advice), sentence, now)
    assert (judged["dropped_by"], judged["rule"]) == ("arbitration", "O-COOL-001")


def test_an_entry_that_scf_dropped_is_left_alone() -> None:
    gone = snippet("put apple 1 in/on fridge 1")
    gone["dropped_by"], gone["reason"] = "scf", "the hand"
    assert judge(gone, COOL, HOLDING) == gone
