"""Experience lifted out of the home it was made in, filled in for another, and put into words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.nodes.manual import load_manual
from rpms.nodes.memories.grounding import (
    FATAL,
    NOT_UNDERSTOOD,
    UNEXPLAINED,
    GroundingContext,
    ground,
    in_words,
    reason,
)
from rpms.nodes.memories.roles import fill, lift
from rpms.rules import Manual
from rpms.rules.predicates import PREDICATES, World, parse_predicate, phrase
from rpms.rules.schema import Wording
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.goal import GoalSignature
from rpms.vocabulary.turn import Turn

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


@pytest.mark.parametrize(
    ("goal", "actions", "lifted"),
    [
        (LOOK, ["go to desk 1", "use desklamp 1"],
         ["go to {destination's place}", "use {destination}"]),
        (COOL, ["go to drawer 7"], ["go to {a drawer}"]),  # a walk alone goes by its kind
        (COOL, ["go to cabinet 7"], ["go to {destination}"]),
        (COOL, ["take pen 1 from desk 1"], None),  # it handles another thing
        (COOL, ["heat apple 3 with microwave 1"], None),
    ],
)  # fmt: skip
def test_other_steps(goal: GoalSignature, actions: list[str], lifted: list[str] | None) -> None:
    assert lift(HOME, goal, actions) == lifted


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
    players = {"object": mug, "object's place": desk, "destination": cabinet}
    assert [fill(text, players) for text in lifted] == actions
    assert fill("go to {a safe}", players) == "go to ?"


ENV = get_environment("alfworld")
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
    return GroundingContext(HOME, goal, ENV.sub_goal(goal, now, [turn] if done else []), now)


def advised(entry: dict[str, Any], now: GroundingContext) -> list[str] | None:
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
    assert advised(PLAN, moment(**SEEN)) == ["take cup 2 from countertop 1", *REST]
    held = {"location": "countertop 1", "searched": ["countertop 1"], "holding": ["cup 2"]}
    assert advised(PLAN, moment(**held)) == REST
    assert advised(PLAN, moment(**{**held, "location": "microwave 1"})) == REST[1:]
    heated = moment(done="heat cup 2 with microwave 1", **{**held, "location": "microwave 1"})
    assert advised(PLAN, heated) == REST[2:]


def test_what_was_said_before_in_a_moment_changes_nothing() -> None:
    """Who plays a role and what is left to do are found once for all memories of a moment."""
    shared = moment(**SEEN)
    held_now = {**PLAN, "lifted": HEATED[3:]}
    entries = [PLAN, held_now, PLAN, {**PLAN, "lifted": ["go to {a fridge}"]}]
    assert [advised(entry, shared) for entry in entries] == [
        advised(entry, moment(**SEEN)) for entry in entries
    ]
    assert shared.players["object"] == "cup 2" and len(shared.undone) == 3
    first, again = ground(PLAN, shared), ground(PLAN, shared)
    assert first and again and first["actions"] is not again["actions"]


def test_a_closed_door_stays_in_and_what_has_none_is_not_opened() -> None:
    shut = {
        "location": "drawer 1",
        "containers": {"drawer 1": "closed"},
        "last_seen": {"cup 2": "drawer 1"},
    }
    assert advised(PLAN, moment(**shut)) == ["open drawer 1", "take cup 2 from drawer 1", *REST]


def test_nothing_is_said_in_names_that_are_not_here() -> None:
    assert advised(PLAN, moment()) is None  # no cup seen yet
    bare = {**SEEN, "places": ["countertop 1", "cabinet 1"]}
    assert advised(PLAN, moment(**bare)) is None  # no microwave
    for role in ("{object}", "{destination}", "{a microwave}", "{object's place}"):
        entry = {**PLAN, "lifted": [f"go to {role}", "take {object} from {object's place}"]}
        assert advised(entry, moment()) is None and advised(entry, moment(places=[])) is None


def test_nothing_is_said_once_the_sub_goal_lies_behind() -> None:
    heat = {**PLAN, "lifted": HEATED[:5], "sub_goal_type": "heat_object"}
    done = moment(done="heat cup 2 with microwave 1", holding=["cup 2"], location="desk 1")
    assert advised(heat, done) is None


def test_the_second_thing_goes_where_the_first_one_is() -> None:
    two = {**PLAN, "lifted": HEATED[-2:], "goal_signature": "pick_two_obj_and_place:mug:none:desk"}
    now = moment("put two cup in cabinet", holding=["cup 2"], last_seen={"cup 1": "cabinet 2"})
    assert advised(two, now) == ["go to cabinet 2", "put cup 2 in/on cabinet 2"]


def test_an_entry_written_by_hand_is_lifted_when_it_is_asked() -> None:
    actions = ["go to desk 9", "take mug 4 from desk 9"]
    assert advised({**PLAN, "lifted": [], "actions": actions}, moment(**SEEN)) == [
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


DOCUMENT = Path(__file__).parents[3] / "docs" / "memory.md"
LIGHTHOUSE = "examples.lighthouse.world:WORLD"
WORLDS = ["alfworld", "scienceworld", LIGHTHOUSE]


def conditions(manual: Manual) -> Iterator[str]:
    """Every predicate there is, those of the world's own that an action needs, and its tables."""
    arities = {name: arity for name, (arity, _) in PREDICATES.items()}
    used = [parse_predicate(text) for rule in manual.actions for text in rule.preconditions]
    arities |= {predicate.name: len(predicate.arguments) for predicate in used}
    for name, arity in arities.items():
        yield f"{name}({', '.join('XY'[:arity])})" if arity else name


def row(text: str, world: World) -> str:
    cells = [in_words(text, {}, world), reason(text, {}, world), reason(f"not {text}", {}, world)]
    return f"| `{text}` | {' | '.join(cells)} |"


def test_the_document_has_every_wording_of_both_worlds() -> None:
    manuals = [load_manual(env) for env in WORLDS[:2]]
    rows = dict.fromkeys(
        row(text, manual.world) for manual in manuals for text in conditions(manual)
    )
    rows[row("yours(X)", World({"yours": frozenset()}, {}))] = None
    document = DOCUMENT.read_text(encoding="utf-8")
    table = document.partition("| condition |")[2].partition("\n\n")[0].splitlines()[2:]
    assert table == list(rows)
    for text in (UNEXPLAINED, NOT_UNDERSTOOD.format("dance"), FATAL.format(-100)):
        assert text in " ".join(document.split())


@pytest.mark.parametrize("env", WORLDS)
def test_no_condition_is_said_as_it_is_written_nor_as_the_manual_says_it(env: str) -> None:
    manual = load_manual(env)
    world = manual.world
    for text in conditions(manual):
        for condition in (text, f"not {text}"):
            predicate = parse_predicate(condition)
            taught = phrase(predicate, {}, world)
            still = in_words(condition, {}, world, still=True)
            for words in (in_words(condition, {}, world), still, reason(condition, {}, world)):
                assert not re.search(r"[:(){}_]|not not|\b(\w+) \1\b", words), words
                assert all(re.search(rf"\b{name}\b", words) for name in predicate.arguments), words
                assert taught not in words, words
        assert in_words(text, {}, world) != in_words(f"not {text}", {}, world)


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        ("hand_empty", "still empty-handed", "only when empty-handed"),
        ("not open(p)", "desk 1 does still not stand open", "only when desk 1 does not stand open"),
        ("at_hand(p)", "still holding desk 1 or still at desk 1",
         "only when holding desk 1 or at desk 1"),
        ("not at_hand(p)", "still not holding desk 1 and still not at desk 1",
         "only when not holding desk 1 and not at desk 1"),
        ("clean_and_dry(p)", "desk 1 still counts as clean and dry",
         "desk 1 does not count as clean and dry"),
        ("not clean_and_dry(p)", "desk 1 does still not count as clean and dry",
         "desk 1 counts as clean and dry"),
        ("warm(p)", "desk 1 is still warm to the hand", "desk 1 is not warm to the hand"),
        ("beside(p, o)", "desk 1 with {mug} still counts as beside",
         "only when desk 1 with {mug} counts as beside"),
        ("raining", "this still counts as raining", "only when this counts as raining"),
    ],
)  # fmt: skip
def test_a_users_own_predicate_reads_like_a_sentence(text: str, words: str, why: str) -> None:
    world = World(
        {"clean_and_dry": frozenset(), "warm": frozenset()}, {},
        predicates={"at_hand": [["holding(thing)"], ["at(thing)"]]},
        wording=Wording(recalled={"warm": "{0} is {how}warm to the hand"}),
    )  # fmt: skip
    names = {"p": "desk 1", "o": "{mug}"}
    assert (in_words(text, names, world, still=True), reason(text, names, world)) == (words, why)
