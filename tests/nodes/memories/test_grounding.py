"""Memories filled in for one home and one moment."""

from __future__ import annotations

from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.nodes.memories.grounding import GroundingContext, ground
from rpms.rules import load_manual
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.turn import Turn

ENV, MANUAL = get_environment("alfworld"), load_manual("alfworld")
PLACES = ["cabinet 2", "cabinet 1", "countertop 1", "desk 1", "drawer 1", "fridge 1", "microwave 1"]
HEATED = [
    "go to {object's place}", "open {object's place}", "take {object} from {object's place}",
    "go to {a microwave}", "heat {object} with {a microwave}",
    "go to {destination}", "put {object} in/on {destination}",
]  # fmt: skip
PLAN = {
    "type": "success", "lifted": HEATED,
    "goal_signature": "pick_heat_then_place_in_recep:mug:hot:desk",
    "sub_goal_type": "place_object", "state_signature": "holding=none", "actions": ["look"],
}  # fmt: skip


def moment(
    sentence: str = "put a hot cup in cabinet", done: str = "", **fields: Any
) -> GroundingContext:
    now = Belief(**{**empty_belief(), "places": PLACES, **fields})  # type: ignore[typeddict-item]
    goal = ENV.parse_goal(sentence)
    turn = Turn(step=1, thought="", action=done, observation="", failed=False, reply="")
    return GroundingContext(MANUAL, goal, ENV.sub_goal(goal, now, [turn] if done else []), now)


def said(entry: dict[str, Any], now: GroundingContext) -> list[str] | None:
    advice = ground(entry, now)
    return advice and advice["actions"]


SEEN = {
    "location": "countertop 1",
    "searched": ["countertop 1"],
    "last_seen": {"cup 2": "countertop 1"},
}
REST = ["go to microwave 1", "heat cup 2 with microwave 1", "go to cabinet 1",
        "put cup 2 in/on cabinet 1"]  # fmt: skip


def test_names_of_this_home_and_only_what_is_left_to_do() -> None:
    assert said(PLAN, moment(**SEEN)) == ["take cup 2 from countertop 1", *REST]
    held = {"location": "countertop 1", "searched": ["countertop 1"], "holding": ["cup 2"]}
    assert said(PLAN, moment(**held)) == REST
    assert said(PLAN, moment(**{**held, "location": "microwave 1"})) == REST[1:]
    heated = moment(done="heat cup 2 with microwave 1", **{**held, "location": "microwave 1"})
    assert said(PLAN, heated) == REST[2:]


def test_what_was_said_before_in_a_moment_changes_nothing() -> None:
    """Who plays a role and what is left to do are found once for all memories of a moment."""
    shared = moment(**SEEN)
    held_now = {**PLAN, "lifted": HEATED[3:]}
    entries = [PLAN, held_now, PLAN, {**PLAN, "lifted": ["go to {a fridge}"]}]
    assert [said(one, shared) for one in entries] == [said(one, moment(**SEEN)) for one in entries]
    assert shared.players["object"] == "cup 2" and len(shared.undone) == 3
    first, again = ground(PLAN, shared), ground(PLAN, shared)
    assert first and again and first["actions"] is not again["actions"]


def test_a_closed_door_stays_in_and_what_has_none_is_not_opened() -> None:
    shut = {
        "location": "drawer 1",
        "containers": {"drawer 1": "closed"},
        "last_seen": {"cup 2": "drawer 1"},
    }
    assert said(PLAN, moment(**shut)) == ["open drawer 1", "take cup 2 from drawer 1", *REST]


def test_nothing_is_said_in_names_that_are_not_here() -> None:
    assert said(PLAN, moment()) is None  # no cup seen yet
    bare = {**SEEN, "places": ["countertop 1", "cabinet 1"]}
    assert said(PLAN, moment(**bare)) is None  # no microwave
    for role in ("{object}", "{destination}", "{a microwave}", "{object's place}"):
        entry = {**PLAN, "lifted": [f"go to {role}", "take {object} from {object's place}"]}
        assert said(entry, moment()) is None and said(entry, moment(places=[])) is None


def test_nothing_is_said_once_the_sub_goal_lies_behind() -> None:
    heat = {**PLAN, "lifted": HEATED[:5], "sub_goal_type": "heat_object"}
    done = moment(done="heat cup 2 with microwave 1", holding=["cup 2"], location="desk 1")
    assert said(heat, done) is None


def test_the_second_thing_goes_where_the_first_one_is() -> None:
    two = {**PLAN, "lifted": HEATED[-2:], "goal_signature": "pick_two_obj_and_place:mug:none:desk"}
    now = moment("put two cup in cabinet", holding=["cup 2"], last_seen={"cup 1": "cabinet 2"})
    assert said(two, now) == ["go to cabinet 2", "put cup 2 in/on cabinet 2"]


def test_an_entry_written_by_hand_is_lifted_when_it_is_asked() -> None:
    actions = ["go to desk 9", "take mug 4 from desk 9"]
    assert said({**PLAN, "lifted": [], "actions": actions}, moment(**SEEN)) == [
        "take cup 2 from countertop 1"
    ]


def lesson(lifted: str, *violated: str) -> dict[str, Any]:
    return {"type": "failure", "lifted": lifted, "violated": list(violated), "failed_action": "x",
            "goal_signature": PLAN["goal_signature"], "corrective_rule": "as told"}  # fmt: skip


def test_a_lesson_is_said_where_it_would_happen_again() -> None:
    entry = lesson("heat {object} with {a microwave}", "at(place)")
    away = moment(holding=["cup 2"], location="fridge 1")
    advice = ground(entry, away)
    assert advice is not None
    assert (advice["actions"], advice["needs"]) == (
        ["heat cup 2 with microwave 1"], ["only when at microwave 1"],
    )  # fmt: skip
    assert ground(entry, moment(holding=["cup 2"], location="microwave 1")) is None
    assert ground(lesson("go to {a safe}", "not at(place)"), away) is None  # none here
    walked = ground(lesson("go to {a fridge}", "not at(place)"), away)
    assert walked is not None and walked["actions"] == ["go to fridge 1"]


def test_only_what_is_missing_now_is_said() -> None:
    entry = lesson("put {object} in/on {destination}", "at(place)", "accessible(place)")
    now = {"holding": ["cup 2"], "location": "cabinet 1"}
    shut = ground(entry, moment(**now, containers={"cabinet 1": "closed"}))
    assert shut is not None and shut["needs"] == ["only when cabinet 1 is not shut"]
    never = lesson("heat {object} with {a fridge}", "kind(place, microwave)")
    advice = ground(never, moment(holding=["cup 2"]))
    assert advice is not None and advice["needs"] == ["fridge 1 is no microwave"]


@pytest.mark.parametrize(
    "entry",
    [
        lesson("go to {a book}", "place(place)"),  # as older memories have it
        lesson("open {a book}", "at(place)"),
        lesson("heat {object} with {a book}", "kind(place, microwave)"),
        lesson("go to book", "place(place)"),
        lesson("heat {object} with {a microwave}", "at(place)", "magic(object)"),
        lesson("dance with {object}", "at(place)"),
    ],
)
def test_a_lesson_about_no_place_or_of_another_manual_is_not_said(entry: dict[str, Any]) -> None:
    now = {"location": "desk 1", "holding": ["cup 2"], "last_seen": {"book 1": "desk 1"}}
    assert ground(entry, moment(**now)) is None


def test_a_schema_speaks_of_the_thing_at_hand() -> None:
    entry = {
        "type": "schema", "action_type": "heat", "preconditions": ["at(place)"],
        "effects": ["holding(object)"], "kinds": {"object": {"egg": 4}, "place": {"microwave": 4}},
        "uses": [{"before": {"holding(object)": True}, "worked": True, "after": [], "count": 4}],
    }  # fmt: skip
    advice = ground(entry, moment(holding=["cup 2"]))
    assert advice is not None
    assert advice["actions"] == ["heat cup 2 with microwave 1"]
    assert advice["needs"] == ["at microwave 1"] and advice["then"] == ["still holding cup 2"]
    assert ground(entry, moment()) is None  # no cup is known yet
