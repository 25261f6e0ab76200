"""Experience lifted out of the home it was made in, filled in for another, and put into words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.envs.manuals import load_commands, load_manual
from rpms.memory_store.grounding import (
    FATAL,
    NOT_UNDERSTOOD,
    UNEXPLAINED,
    GroundingContext,
    ground,
    remaining_steps,
)
from rpms.memory_store.roles import fill, to_roles
from rpms.rules import Manual
from rpms.rules.predicates import StaticFacts, parse_predicate, reading
from rpms.rules.wording import need, statement
from rpms.vocabulary.context import MemoryForm
from rpms.vocabulary.goal import GoalSignature
from tests.envs.playing import believing

# Learning asks the manual; retrieval knows the commands alone.
RULES, LAB_RULES = load_manual("alfworld"), load_manual("scienceworld")
HOME, BARE = load_commands("alfworld"), load_manual("alfworld", syntax_only=True)
FORMS = get_args(MemoryForm)
COOL = GoalSignature("pick_cool_then_place_in_recep", "mug", "cabinet")
LOOK = GoalSignature("look_at_obj_in_light", "pen", "desklamp")


def test_every_step_is_told_with_the_walk_to_where_it_is_done() -> None:
    actions = ["go to desk 3", "take mug 2 from desk 3", "go to fridge 1",
               "cool mug 2 with fridge 1", "go to cabinet 4", "open cabinet 4",
               "put mug 2 in/on cabinet 4"]  # fmt: skip
    assert to_roles(RULES, COOL, actions) == [
        "go to {object's place}", "take {object} from {object's place}",
        "go to {a fridge}", "cool {object} with {a fridge}",
        "go to {destination}", "open {destination}", "put {object} in/on {destination}",
    ]  # fmt: skip


def test_two_roles_at_one_place_come_apart() -> None:
    """It lay in the fridge that cools it: elsewhere it will lie somewhere else."""
    actions = ["open fridge 1", "take mug 2 from fridge 1", "cool mug 2 with fridge 1"]
    assert to_roles(RULES, COOL, actions) == [
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
    assert to_roles(RULES, goal, actions) == lifted


def test_names_without_numbers_stay_but_for_the_goals_own_object() -> None:
    goal = GoalSignature("F3", "tin", "melt")
    actions = ["focus on tin", "move metal pot to stove", "focus on tin in metal pot"]
    assert to_roles(LAB_RULES, goal, actions) == [
        "focus on {the object}", "move metal pot to stove", "focus on {the object} in metal pot",
    ]  # fmt: skip


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30))
def test_filled_in_with_its_own_names_it_says_what_was_done(
    thing: int, place: int, to: int
) -> None:
    mug, desk, cabinet = f"mug {thing}", f"desk {place}", f"cabinet {to}"
    actions = [f"go to {desk}", f"take {mug} from {desk}", f"go to {cabinet}",
               f"put {mug} in/on {cabinet}"]  # fmt: skip
    lifted = to_roles(RULES, COOL, actions)
    assert lifted is not None and not any(c.isdigit() for text in lifted for c in text)
    role_names = {"object": mug, "object's place": desk, "destination": cabinet}
    assert [fill(text, role_names) for text in lifted] == actions
    assert fill("go to {a safe}", role_names) == "go to ?"


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
    sentence: str = "put a hot cup in cabinet",
    form: Any = "grounded",
    **fields: Any,
) -> GroundingContext:
    now = believing(**{"places": PLACES, **fields})
    goal = ENV.parse_goal(sentence)
    return GroundingContext(ENV, HOME, goal, ENV.sub_goal(goal, now, []), now, form=form)


def advised(entry: dict[str, Any], now: GroundingContext) -> list[str] | None:
    """What is printed; None where it cannot be said here."""
    wording = ground(entry, now)
    return None if wording.not_groundable else wording.advice["printed"]


SEEN = {
    "location": "countertop 1",
    "searched": ["countertop 1"],
    "last_seen": {"cup 2": "countertop 1"},
}
WHOLE = ["go to countertop 1", "open countertop 1", "take cup 2 from countertop 1",
         "go to microwave 1", "heat cup 2 with microwave 1", "go to cabinet 1",
         "put cup 2 in/on cabinet 1"]  # fmt: skip


AWAY = {**SEEN, "location": "desk 1"}
HELD = {"location": "microwave 1", "searched": ["countertop 1"], "holding": ["cup 2"]}
HOT = {**HELD, "flags": {"cup 2": "hot"}}


@pytest.mark.parametrize(
    ("fields", "done"),
    [
        # The countertop has no door: nobody has to open it.
        (AWAY, [1]),
        (SEEN, [0, 1]),
        (HELD, [0, 1, 2, 3]),
        (HOT, [0, 1, 2, 3, 4]),
        ({**HOT, "location": "cabinet 1"}, [0, 1, 2, 3, 4, 5]),
        # Taken already, and then gone elsewhere: the walk to the microwave is ahead again.
        ({**HELD, "location": "fridge 1"}, [0, 1, 2]),
        # The cup was put down on the way.
        ({**SEEN, "location": "cabinet 1"}, [1]),
    ],
)
def test_names_of_this_home_and_only_the_steps_ahead(
    fields: dict[str, Any], done: list[int]
) -> None:
    """With rules on: Tier 2 tells what lies behind, Tier 3 what would change nothing."""
    now = moment(**fields)
    plan = {**PLAN, "lifted": HEATED}
    if "last_seen" not in fields:  # in the hand it has no place any more
        plan["lifted"] = HEATED[3:]
        done = [step - 3 for step in done if step > 2]
    whole = WHOLE[-len(plan["lifted"]) :]
    advice = ground(plan, now).advice
    assert advice["actions"] == advice["printed"]
    assert advice["done"] == [whole[step] for step in done]
    assert advice["printed"] == [step for n, step in enumerate(whole) if n not in done]


@pytest.mark.parametrize(
    ("played", "location", "begun"),
    [
        ([], "countertop 1", 0),
        (["go to microwave 1"], "microwave 1", 1),
        (["go to desk 1", "go to microwave 1"], "microwave 1", 1),
        (["go to microwave 1", "heat cup 2 with microwave 1"], "microwave 1", 2),
        # What came in between does not matter as long as one stands where it left off.
        (["go to microwave 1", "heat cup 2 with microwave 1", "open microwave 1"],
         "microwave 1", 2),
        # Begun, and left: told from the start.
        (["go to microwave 1", "go to desk 1"], "desk 1", 0),
        (["heat cup 2 with microwave 1"], "microwave 1", 0),
    ],
)  # fmt: skip
def test_executed_steps_are_behind_where_no_result_says_so(
    played: list[str], location: str, begun: int
) -> None:
    fields = {**HELD, "location": location}
    now = replace(moment(**fields), commands=BARE, played=played)
    assert [*remaining_steps(WHOLE[3:], now)] == [0, 1, 2, 3][begun:]
    wording = ground({**PLAN, "lifted": HEATED[3:]}, now)
    assert (wording.advice["done"], wording.advice["printed"]) == (
        WHOLE[3 : 3 + begun], WHOLE[3 + begun :],
    )  # fmt: skip
    # By the results of the commands it is known without having been played.
    assert [*remaining_steps(WHOLE[3:], moment(**HELD))] == [1, 2, 3]


def test_a_thing_that_began_in_its_place_is_not_done() -> None:
    """It has to be hot there, so every step of the snippet is still ahead."""
    now = moment("put a hot cup in countertop", **SEEN)
    plan = {**PLAN, "lifted": [step for step in HEATED if not step.startswith("open")]}
    assert advised(plan, now) == [
        "take cup 2 from countertop 1", "go to microwave 1", "heat cup 2 with microwave 1",
        "go to countertop 1", "put cup 2 in/on countertop 1",
    ]  # fmt: skip


def test_what_is_all_behind_has_nothing_to_say() -> None:
    there = moment("put a cup in cabinet", location="cabinet 1", last_seen={"cup 2": "cabinet 1"},
                   searched=["cabinet 1"])  # fmt: skip
    for manual, played in ((HOME, []), (BARE, ["go to cabinet 1"])):
        now = replace(there, commands=manual, played=played)
        wording = ground({**PLAN, "lifted": ["go to {destination}"]}, now)
        assert wording.not_groundable == "no step of it is still ahead"


def test_who_plays_a_role_is_found_once_for_a_moment() -> None:
    shared = moment(**SEEN)
    entries = [PLAN, {**PLAN, "lifted": HEATED[3:]}, PLAN, {**PLAN, "lifted": ["go to {a fridge}"]}]
    assert [advised(entry, shared) for entry in entries] == [
        advised(entry, moment(**SEEN)) for entry in entries
    ]
    assert shared.role_names["object"] == "cup 2"
    first, again = ground(PLAN, shared).advice, ground(PLAN, shared).advice
    assert first["actions"] is not again["actions"]


def test_what_cannot_be_said_here_comes_with_its_reason() -> None:
    unseen = ground(PLAN, moment())
    assert unseen.not_groundable == "nothing here is known as {object's place}, {object}"
    bare = {**SEEN, "places": ["countertop 1", "cabinet 1"]}
    assert ground(PLAN, moment(**bare)).not_groundable == "nothing here is known as {a microwave}"
    other = {**PLAN, "lifted": [], "actions": ["take pen 1 from desk 1"]}
    assert "play no part" in ground(other, moment(**SEEN)).not_groundable
    # By their kinds they can still be held against the rules, as far as a kind is known.
    assert unseen.advice["by_kind"] and unseen.advice["actions"] == [
        "go to microwave", "heat cup with microwave", "go to cabinet", "put cup in/on cabinet",
    ]  # fmt: skip


@pytest.mark.parametrize("fields", [SEEN, {}])
def test_every_form_of_one_memory(fields: dict[str, Any]) -> None:
    """What is judged is what is printed."""
    recorded = {**PLAN, "actions": ["go to desk 9", "take mug 4 from desk 9"]}
    wordings = {form: ground(recorded, moment(form=form, **fields)) for form in FORMS}
    assert wordings["recorded"].advice["printed"] == recorded["actions"]
    assert wordings["recorded"].advice["actions"] == recorded["actions"]
    assert wordings["roles"].advice["printed"] == HEATED and wordings["roles"].advice["by_kind"]
    if fields:
        assert wordings["grounded"].advice["printed"] == wordings["grounded"].advice["actions"]
    not_groundable = {form for form, wording in wordings.items() if wording.not_groundable}
    assert not_groundable == (set() if fields else {"grounded"})


def test_the_second_thing_goes_where_the_first_one_is() -> None:
    two = {**PLAN, "lifted": HEATED[-2:], "goal_signature": "pick_two_obj_and_place:mug:none:desk"}
    now = moment("put two cup in cabinet", holding=["cup 2"], last_seen={"cup 1": "cabinet 2"})
    assert advised(two, now) == ["go to cabinet 2", "put cup 2 in/on cabinet 2"]


def test_an_entry_written_by_hand_is_lifted_when_it_is_asked() -> None:
    entry = {**PLAN, "lifted": [], "actions": ["go to drawer 9", "take mug 4 from drawer 9"]}
    assert advised(entry, moment(**SEEN)) == ["take cup 2 from countertop 1"]


def lesson(lifted: str, words: str, failed: str = "x", *violated: str) -> dict[str, Any]:
    return {"type": "failure", "lifted": lifted, "violated": [*violated], "failed_action": failed,
            "goal_signature": PLAN["goal_signature"], "corrective_rule": words}  # fmt: skip


@pytest.mark.parametrize("manual", [HOME, BARE])
def test_a_lesson_says_what_it_lacked_as_a_need(manual: Manual) -> None:
    entry = lesson(
        "heat {object} with {a microwave}", "needs you to be at <place>; you to hold <object>",
        "heat mug 3 with microwave 2", "at(place)", "holding(object)", "at(place)",
    )  # fmt: skip
    for form, name, place in (
        ("grounded", "cup 2", "microwave 1"), ("roles", "{object}", "{a microwave}"),
        ("recorded", "mug 3", "microwave 2"),
    ):  # fmt: skip
        # Where it would happen again, and where it would not: that is for others to judge.
        for location in ("fridge 1", "microwave 1"):
            now = moment(holding=["cup 2"], location=location, form=form)
            advice = ground(entry, replace(now, commands=manual)).advice
            assert advice["printed"] == [f"heat {name} with {place}"]
            assert advice["needs"] == [f"you to be at {place}", f"you to hold {name}"]
            judged = "heat cup with microwave" if form == "roles" else advice["printed"][0]
            assert advice["actions"] == [judged]
    assert ground(lesson("go to {a safe}", "x"), moment()).not_groundable
    # Words that somebody wrote are told as they are, and no reason as none.
    for words, needs in (("it was too hot", ["it was too hot"]), (UNEXPLAINED, [])):
        spoken = lesson("heat {object} with {a microwave}", words)
        assert ground(spoken, now).advice["needs"] == needs
    by_hand = lesson("heat {object} with {a microwave}", "be there", "x", "must be there")
    assert ground(by_hand, now).advice["needs"] == ["be there"]


def test_a_schema_speaks_of_the_thing_at_hand() -> None:
    entry = {
        "type": "schema", "action_type": "heat", "action_template": "heat {object} with {place}",
        "preconditions": ["at(place)"], "effects": ["holding(object)"],
        "kinds": {"object": {"egg": 4}, "place": {"microwave": 4}},
        "uses": [{"before": {"holding(object)": True}, "worked": True, "after": [], "count": 4}],
    }  # fmt: skip
    advice = ground(entry, moment(holding=["cup 2"])).advice
    assert advice["printed"] == advice["actions"] == ["heat cup 2 with microwave 1"]
    assert advice["needs"] == ["you to be at microwave 1"]
    assert advice["then"] == ["you hold cup 2 still"]
    assert ground(entry, moment()).not_groundable  # no cup is known yet
    for form, words in (("recorded", "<place>"), ("roles", "{a microwave}")):
        assert ground(entry, moment(form=form)).advice["needs"] == [f"you to be at {words}"]
    twice = {**entry, "kinds": {"object": {"cup": 4}, "place": {"cup": 4}}}
    said = ground(twice, moment(holding=["cup 2"]))
    assert said.not_groundable == "it would be about one thing twice", said
    # An action of which nothing was noticed teaches nothing.
    used = [{"before": {"at(place)": True}, "worked": True, "after": [], "count": 4}]
    idle = {**entry, "preconditions": [], "effects": [], "uses": used}
    empty = ground(idle, moment(holding=["cup 2"]))
    assert empty.not_groundable == "it says nothing: no need and no effect was noticed"
    by_hand = {**entry, "uses": [], "preconditions": ["be there"]}
    advice = ground(by_hand, moment()).advice
    assert (advice["printed"], advice["needs"]) == (["heat <object> with <place>"], ["be there"])


PAGES = Path(__file__).parents[2] / "docs"
SMALL = "rpms.commands.world_template.world:WORLD"
WORLDS = ["alfworld", "scienceworld", SMALL]


def conditions(manual: Manual) -> Iterator[str]:
    """Every predicate there is, those of the world's own that an action needs, and its tables."""
    arities = {each.name: each.arity or 0 for each in reading("things")}
    used = [parse_predicate(text) for rule in manual.actions for text in rule.preconditions]
    arities |= {predicate.name: len(predicate.arguments) for predicate in used}
    for name, arity in arities.items():
        yield f"{name}({', '.join('XY'[:arity])})" if arity else name


def row(text: str, facts: StaticFacts) -> str:
    predicate = parse_predicate(text)
    denied = predicate._replace(positive=False)
    cells = [statement(predicate, {}, facts), need(predicate, {}, facts), need(denied, {}, facts)]
    return f"| `{text}` | {' | '.join(cells)} |"


def test_the_document_has_wordings_of_ours() -> None:
    manuals = [load_manual(env) for env in WORLDS[:2]]
    rows = {row(text, manual.facts) for manual in manuals for text in conditions(manual)}
    yours = row("yours(X)", StaticFacts({"yours": frozenset()}, {}))
    reference = (PAGES / "api.md").read_text(encoding="utf-8")
    table = reference.partition("\n| condition |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) > 5 and table[-1] == yours and {*table[:-1]} <= rows
    for text in (UNEXPLAINED, NOT_UNDERSTOOD.format("dance"), FATAL.format(-100)):
        assert text in " ".join((PAGES / "memory.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("env", WORLDS)
def test_no_condition_is_said_as_it_is_written(env: str) -> None:
    """Nor as a fact where it is a need, nor as its contrary."""
    manual = load_manual(env)
    world = manual.facts
    for text in conditions(manual):
        predicate = parse_predicate(text)
        both = (predicate, predicate._replace(positive=False))
        facts, needs = ([say(each, {}, world) for each in both] for say in (statement, need))
        for words in (*facts, *needs):
            assert not re.search(r"[:{}_]|not not|\b(\w+) \1\b", words), words
            mentioned = predicate.arguments
            assert all(re.search(rf"\b{name}\b", words) for name in mentioned), words
        assert len({*facts, *needs}) == 4, (facts, needs)
