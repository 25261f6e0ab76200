from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from rpms.envs import get_environment
from rpms.envs.alfworld.adapter import AlfworldGame
from rpms.envs.alfworld.tasks import ensure_games
from rpms.envs.base import Task
from rpms.envs.manuals import load_manual
from rpms.memory_store import merge_entries
from rpms.memory_store.grounding import UNEXPLAINED
from rpms.memory_store.lessons import learn, lessons
from rpms.rules.ablate import leave_out
from rpms.vocabulary.turn import EpisodeRecord, RecordedTurn

ENV = get_environment("alfworld")
MANUAL = load_manual("alfworld")

OPENING = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, "
    "a countertop 1, a desk 1, a fridge 1, and a microwave 1.\n\nYour task is to: "
    "put a hot mug in cabinet."
)
TURNS = [
    ("go to desk 1", "On the desk 1, you see a pen 1."),
    ("take mug 1 from fridge 1", "Nothing happens."),
    ("go to fridge 1", "The fridge 1 is closed."),
    ("open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a mug 1."),
    ("take mug 1 from fridge 1", "You pick up the mug 1 from the fridge 1."),
    ("heat mug 1 with microwave 1", "Nothing happens."),
    ("go to microwave 1", "The microwave 1 is closed."),
    ("heat mug 1 with microwave 1", "You heat the mug 1 using the microwave 1."),
    ("go to cabinet 1", "The cabinet 1 is closed."),
    ("open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see nothing."),
    ("put mug 1 in/on cabinet 1", "You put the mug 1 in/on the cabinet 1."),
]


def record(turns: list[tuple[str, str]] = TURNS, success: bool = True) -> EpisodeRecord:
    return EpisodeRecord(
        env="alfworld", split="s", task="t", goal="put a hot mug in cabinet",
        first_observation=OPENING, success=success,
        history=[
            RecordedTurn(action=a, observation=o, failed=o == "Nothing happens.") for a, o in turns
        ],
    )  # fmt: skip


def test_an_episode_is_split_at_its_sub_goals() -> None:
    snippets = [lesson for lesson in lessons(record()) if lesson["type"] == "success"]
    summaries = [(s["sub_goal_type"], s["state_signature"], s["actions"]) for s in snippets]
    take = ["go to fridge 1", "open fridge 1", "take mug 1 from fridge 1"]
    heat = ["go to microwave 1", "heat mug 1 with microwave 1"]
    place = ["go to cabinet 1", "open cabinet 1", "put mug 1 in/on cabinet 1"]
    full = "holding=mug 1|open=fridge 1"
    assert summaries == [
        ("take_object", "holding=none", take),
        ("heat_object", "holding=none", [*take, *heat]),
        ("heat_object", full, heat),
        ("place_object", "holding=none", [*take, *heat, *place]),
        ("place_object", full, [*heat, *place]),
    ]
    assert snippets[0]["lifted"] == [
        "go to {object's place}", "open {object's place}", "take {object} from {object's place}",
    ]  # fmt: skip
    assert snippets[2]["lifted"] == ["go to {a microwave}", "heat {object} with {a microwave}"]
    assert snippets[4]["lifted"][2:] == [
        "go to {destination}", "open {destination}", "put {object} in/on {destination}",
    ]  # fmt: skip
    snippets[1] = snippets[2]
    assert snippets[1]["precondition"] == {
        "holding": "mug 1", "action_type": "heat", "tool_location": "microwave 1"
    }  # fmt: skip
    assert snippets[1]["outcome"] == {"heat": "mug 1"}
    assert {s["goal_signature"] for s in snippets} == {
        "pick_heat_then_place_in_recep:mug:hot:cabinet"
    }


def test_a_refused_action_becomes_a_lesson_with_the_precondition_it_violated() -> None:
    failures = [lesson for lesson in lessons(record()) if lesson["type"] == "failure"]
    assert [(f["failed_action"], f["state_signature"], f["lifted"]) for f in failures] == [
        ("take mug 1 from fridge 1", "holding=none", "take {object} from {object's place}"),
        ("heat mug 1 with microwave 1", "holding=mug 1|open=fridge 1",
         "heat {object} with {a microwave}"),
    ]  # fmt: skip
    assert all(f["violated"] == ["at(place)"] for f in failures)
    assert all(f["failure_message"] == "Nothing happens." for f in failures)
    assert {f["corrective_rule"] for f in failures} == {"needs you to be at <place>"}


def test_a_rejection_for_what_was_so_already_teaches_nothing() -> None:
    """To go where one is, or to open what is open: that it lacked the contrary is no news."""
    needless = [
        ("go to desk 1", "Nothing happens."),
        ("open fridge 1", "Nothing happens."),
        ("close microwave 1", "Nothing happens."),
    ]
    turns = [TURNS[0], needless[0], *TURNS[2:4], needless[1], TURNS[4], TURNS[6], needless[2]]
    assert not [e for e in lessons(record(turns, success=False)) if e["type"] == "failure"]
    # Nor does a reason of its own go under: closed *and* out of reach is worth telling.
    apart = [TURNS[0], ("open fridge 1", "Nothing happens.")]
    (lesson,) = [e for e in lessons(record(apart, success=False)) if e["type"] == "failure"]
    assert lesson["violated"] == ["at(place)"]
    # Without rules nobody can tell.
    alone = lessons(record(turns, success=False), load_manual("alfworld", syntax_only=True))
    assert len([e for e in alone if e["type"] == "failure"]) == 3


def test_only_the_end_of_a_won_episode_solves() -> None:
    for success in (True, False):
        snippets = [e for e in lessons(record(success=success)) if e["type"] == "success"]
        assert [s["sub_goal_type"] for s in snippets if s["solves"]] == (
            ["place_object"] * 2 if success else []
        )
    # Won once is won: the same way out of a lost episode adds to it and takes nothing back.
    by_order = [
        learn([record(success=first), record(success=not first)]) for first in (True, False)
    ]
    assert by_order[0] == by_order[1]
    solving = [e for e in by_order[0] if e.type == "success" and e.solves]
    assert {e.sub_goal_type for e in solving} == {"place_object"}
    assert {e.success_count for e in solving} == {2}


def test_no_step_is_told_twice_in_a_row() -> None:
    again = ("heat mug 1 with microwave 1", "You heat the mug 1 using the microwave 1.")
    turns = [*TURNS[:8], again, *TURNS[8:]]
    for manual in (MANUAL, load_manual("alfworld", syntax_only=True)):
        snippets = [e for e in lessons(record(turns), manual) if e["type"] == "success"]
        assert snippets
        for snippet in snippets:
            for way in (snippet["actions"], snippet["lifted"]):
                assert not [a for a, b in pairwise(way) if a == b], way


def test_schemas_come_from_the_uses_of_an_action_alone() -> None:
    schemas = {e.action_type: e for e in learn([record()]) if e.type == "schema"}
    heat = schemas["heat"]
    assert (heat.success_count, heat.failure_count, heat.confidence) == (1, 1, 1.0)
    assert heat.preconditions == ["at(place)"]  # what the refusal lacked
    assert heat.effects == ["holding(object)"]  # it stays in the hand
    assert schemas["take"].effects == ["holding(object)"]
    assert schemas["put"].effects == ["hand_empty", "in(object, place)"]
    assert schemas["go_to"].preconditions == [] and schemas["go_to"].effects == ["at(place)"]


def test_what_was_seen_in_a_place_is_counted_by_kind() -> None:
    finds = {e.place: e for e in learn([record(), record()]) if e.type == "found"}
    assert (finds["fridge"].looked, finds["fridge"].objects) == (2, {"mug": 2})
    assert (finds["cabinet"].looked, finds["cabinet"].objects) == (2, {})
    assert "microwave" not in finds  # never opened


def test_what_concerns_another_thing_than_the_goals_is_not_told() -> None:
    turns = [TURNS[0], ("take pen 1 from desk 1", "You pick up the pen 1 from the desk 1."),
             ("heat pen 1 with microwave 1", "Nothing happens.")]  # fmt: skip
    assert {e.type for e in learn([record(turns, success=False)])} == {"schema", "found"}


@pytest.mark.parametrize(
    "action", ["go to pen 1", "go to pen", "open pen 1", "put mug 1 in/on pen 1", "go to mug 1",
               "take mug 1 from pen 1", "heat mug 1 with pen 1"],
)  # fmt: skip
def test_a_refusal_at_what_is_no_place_is_not_told(action: str) -> None:
    turns = [TURNS[0], (action, "Nothing happens.")]
    assert not [e for e in learn([record(turns, success=False)]) if e.type == "failure"]
    there = [TURNS[0], (action.replace("pen 1", "fridge 1"), "Nothing happens.")]
    if there != turns:
        assert [e.type for e in learn([record(there, success=False)]) if e.type == "failure"]


def test_the_same_experience_twice_is_one_entry_counted_twice() -> None:
    once, twice = learn([record()]), learn([record(), record()])
    assert [entry.id for entry in once] == [entry.id for entry in twice]
    assert {e.success_count for e in twice if e.type == "success"} == {2}


def test_replies_without_an_action_teach_nothing() -> None:
    assert learn([record([*TURNS[:1], ("", "No action could be read.")], success=False)]) == learn(
        [record(TURNS[:1], success=False)]
    )


def random_record(game: AlfworldGame, file: Path, rng: random.Random) -> EpisodeRecord:
    """Random play in a generated home: the engine makes the refusals."""
    spec = Task(env="alfworld", split="g", index=0, id=file.parent.name, goal="", source=str(file))
    opening = game.reset(spec)
    belief = ENV.first_belief(opening)
    turns: list[tuple[str, str]] = []
    for _ in range(50):
        rule = rng.choice(MANUAL.actions[:10])
        pool = {"place": belief["places"]}
        things = [*belief["last_seen"], *belief["holding"]] or ["mug 1"]
        names = {name: rng.choice(pool.get(name, things)) for name in rule.parameters}
        action = rule.syntax.format(**names)
        if rng.random() < 0.5:
            action = rng.choice([c for c in game.commands() if c != "help"])
        turns.append((action, game.step(action).observation))
        belief = ENV.update_belief(belief, *turns[-1])
    goal = opening.rpartition("Your task is to: ")[2]
    whole = record(turns, success=False)
    return EpisodeRecord(**{**whole, "goal": goal, "first_observation": opening})  # type: ignore[typeddict-item]


@pytest.mark.engine
def test_learning_grows_and_does_not_depend_on_the_order_of_trajectories() -> None:
    game, rng = AlfworldGame(), random.Random(7)
    records = [random_record(game, file, rng) for file in ensure_games("generated_seen", 8)]
    expected = learn(records)
    assert {entry.type for entry in expected} == {"success", "failure", "schema", "found"}
    assert learn(records[::-1]) == expected
    assert len(learn(records[:4])) < len(expected)


SCIENCE = "Your task is to melt water. First, focus on the substance. Then, take actions that will"
KITCHEN = (
    "This room is called the kitchen. In it, you see: \n\tthe agent\n\ta substance called air\n"
    "\ta sink, which is turned off. In the sink is: nothing.\n"
    "\ta stove, which is turned off. On the stove is: nothing.\n"
    "\ta metal pot (containing nothing)\nYou also see:\n\tA door to the hallway (that is open)\n"
)
UNKNOWN = "No known action matches that input."


def science_record(turns: list[tuple[str, str]], score: float) -> EpisodeRecord:
    world = get_environment("scienceworld")
    goal = f"{SCIENCE} cause it to change its state of matter."
    return EpisodeRecord(
        env="scienceworld", split="train", task="melt/0", goal=goal, score=score,
        first_observation=f"{KITCHEN}\n\n{goal}", success=score >= 100,
        history=[RecordedTurn(action=a, observation=o, failed=world.failed(o)) for a, o in turns],
    )  # fmt: skip


def test_a_negative_ending_becomes_a_critical_failure_of_double_weight() -> None:
    wrong = science_record([("focus on stove", "You focus on the stove.")], -100)
    (critical,) = [entry for entry in learn([wrong, wrong]) if entry.type == "critical_failure"]
    assert critical.goal_signature == "F3:melt:water"
    assert critical.state_signature == "room=kitchen|inventory=unknown|progress=0"
    assert (critical.failed_action, critical.failure_message) == (
        "focus on stove", "score = -100, terminated",
    )  # fmt: skip
    assert "score -100" in critical.corrective_rule and "device" not in critical.corrective_rule
    assert (critical.retrieval_weight, critical.occurrence_count) == (2.0, 2)


def test_a_low_score_or_an_earlier_focus_is_no_critical_failure() -> None:
    turns = [("focus on stove", "You focus on the stove."), ("look around", KITCHEN)]
    assert all(e.type != "critical_failure" for e in learn([science_record(turns, 3)]))
    (critical,) = [e for e in learn([science_record(turns[::-1], -100)]) if "critical" in e.type]
    assert critical.failed_action == "focus on stove"


def test_an_unknown_command_becomes_a_lesson() -> None:
    turns = [("pick up thermometer", UNKNOWN), ("dance", UNKNOWN)]
    failures = [entry for entry in learn([science_record(turns, 0)]) if entry.type == "failure"]
    rules = {entry.failed_action: entry.corrective_rule for entry in failures}
    assert rules["pick up thermometer"] == "needs <object> to be in view"
    assert rules["dance"] == "'dance' was not understood"
    assert all(entry.failure_message == UNKNOWN for entry in failures)


def test_a_walk_to_what_is_no_place_is_not_told_of_rooms_either() -> None:
    turns = [(f"{walk} {name}", UNKNOWN) for walk in ("teleport to", "go to")
             for name in ("stove", "metal pot", "attic", "foundry")]  # fmt: skip
    failures = [entry for entry in learn([science_record(turns, 0)]) if entry.type == "failure"]
    assert {entry.failed_action for entry in failures} == {"teleport to foundry", "go to foundry"}


def test_science_snippets_write_down_what_compat_asks_for() -> None:
    turns = [
        ("move metal pot to sink", "You move the metal pot to the sink."),
        ("activate sink", "The sink is now activated."),
        ("look at metal pot", "a metal pot (containing a substance called water)"),
        ("focus on water", "You focus on the water."),
    ]
    (focus,) = [e for e in learn([science_record(turns, 100)]) if e.type == "success"]
    assert (
        focus.solves
        and focus.sub_goal_type == "focus_object"
        and focus.actions[-1] == "focus on water"
    )
    assert focus.precondition == {
        "instrument": None, "room": "kitchen", "progress": 0, "action_type": "focus",
    }  # fmt: skip
    # Whether the answer of a lost episode was right nobody knows.
    assert not [e for e in learn([science_record(turns, 10)]) if e.type == "success"]


@pytest.mark.parametrize("score", [-100, -1])
def test_what_ended_an_episode_badly_is_told_as_nothing_else(score: float) -> None:
    """Neither as a way to a sub-goal nor as a use that worked."""
    look, focus = ("look around", KITCHEN), ("focus on stove", "You focus on the stove.")
    entries = learn([science_record([look, focus], score)])
    (fatal,) = [e for e in entries if e.type not in ("schema", "found")]
    assert (fatal.type, fatal.failed_action) == ("critical_failure", "focus on stove")
    assert fatal.corrective_rule == f"it ended the task with score {score:.0f}"
    assert "focus" not in {e.action_type for e in entries if e.type == "schema"}
    # The very same turn is a use like others where it ended nothing.
    harmless = learn([science_record([focus, look], 0)])
    assert "focus" in {e.action_type for e in harmless if e.type == "schema"}
    assert not [e for e in harmless if e.type == "critical_failure"]


def test_an_answered_menu_is_learned_as_the_command_it_stands_for() -> None:
    turns = [
        ("focus on water", "Ambiguous request: Please enter the number for the action you intended "
         "(or blank to cancel):\n0:\tfocus on water (in sink, in kitchen)\n1:\tfocus on water "
         "(in metal pot, in kitchen)"),
        ("1", "You focus on the water."),
    ]  # fmt: skip
    entries = learn([science_record(turns, -100)])
    (fatal,) = [entry for entry in entries if entry.type == "critical_failure"]
    assert fatal.failed_action == "focus on water in metal pot"
    assert not [e for e in entries if e.type == "schema"], "no use that worked"
    entries = learn([science_record(turns, 5)])
    counts = [(e.action_type, e.success_count) for e in entries if e.type == "schema"]
    assert counts == [("focus", 1)]


def test_refusals_are_explained_by_the_manual_one_gives() -> None:
    manual = leave_out(MANUAL, ["environment"])
    failures = [lesson for lesson in lessons(record(), manual) if lesson["type"] == "failure"]
    assert failures and all(lesson["violated"] == [] for lesson in failures)
    assert learn([record()], manual) != learn([record()]) == learn([record()], MANUAL)


def test_an_entry_says_whether_the_manual_helped_and_can_do_without() -> None:
    helped, alone = learn([record()]), learn([record()], load_manual("alfworld", syntax_only=True))
    assert all(e.manual for e in helped if e.type in ("success", "failure"))
    assert alone and not any(getattr(entry, "manual", False) for entry in alone)
    assert {e.type for e in alone} == {e.type for e in helped}
    lessons_alone = [e for e in alone if e.type == "failure"]
    assert {(*e.violated, e.corrective_rule) for e in lessons_alone} == {(UNEXPLAINED,)}
    ways = {e.sub_goal_type: e.actions for e in alone if e.type == "success"}
    assert ways["take_object"][0] == "go to desk 1", "a detour that no rule tells from the way"
    assert merge_entries([*alone, *helped]) == merge_entries([*helped, *alone])
