from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rpms.envs.alfworld.goals import parse_goal
from rpms.models.sim.household import ATTENTION, assess, decide, read_task
from rpms.models.sim.reading import View

PLACES = ["cabinet 2", "cabinet 1", "desk 1", "fridge 1", "microwave 1", "sinkbasin 1", "shelf 1"]
RULES = {
    "U-SEARCH-001", "U-SEARCH-002", "U-FAIL-002", "D-CONT-001", "D-HEAT-001", "D-COOL-001",
    "D-CLEAN-001", "D-EXAM-001",
}  # fmt: skip


def view(task: str = "put a hot mug in shelf", **changes: object) -> View:
    blank = View(
        places=PLACES, task=task, turns=[], state={}, sub_goal="", rules=set(), likely=[""],
        needs="", snippets=[], avoid=[], schemas=set(),
    )  # fmt: skip
    return blank._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sentence",
    [
        "put a mug in shelf",
        "put some mug on desk",
        "find two mug and put them in shelf",
        "put two mug in shelf",
        "heat some mug and put it in shelf",
        "put a hot mug in shelf",
        "cool some mug and put it in shelf",
        "put a cool mug in shelf",
        "clean some mug and put it in shelf",
        "put a clean mug in shelf",
        "look at mug under the desklamp",
        "examine the mug with the desklamp",
    ],
)
def test_tasks_are_read_as_the_goal_parser_reads_them(sentence: str) -> None:
    goal, task = parse_goal(sentence), read_task(sentence)
    assert (task.thing, task.target, task.number) == (
        goal["object"], goal["destination"], goal["count"],
    )  # fmt: skip
    assert task.look == goal["type"].startswith("look")
    state = {"heat": "hot", "cool": "cool", "clean": "clean", "": None}[task.verb]
    assert state == goal["state"]


HOLDING = {"Location": "microwave 1", "Holding": "mug 1"}


def test_a_beginner_puts_things_into_the_microwave_to_heat_them() -> None:
    turns = [
        ("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1."),
        ("go to microwave 1", "The microwave 1 is open. In it, you see nothing."),
    ]
    assert decide(view(turns=turns))[1] == "put mug 1 in/on microwave 1"


@pytest.mark.parametrize(
    ("task", "tool", "command"),
    [
        ("put a hot mug in shelf", "microwave 1", "heat mug 1 with microwave 1"),
        ("put a cool mug in shelf", "fridge 1", "cool mug 1 with fridge 1"),
        ("put a clean mug in shelf", "sinkbasin 1", "clean mug 1 with sinkbasin 1"),
    ],
)
def test_with_the_rule_it_does_not(task: str, tool: str, command: str) -> None:
    state = {"Location": tool, "Holding": "mug 1"}
    turns = [("go to x", "On the x 1, you see nothing.")]
    found = decide(view(task, turns=turns, state=state, rules=RULES, sub_goal="heat_object"))
    assert found[1] == command


def test_searching_follows_the_locality_rule() -> None:
    state = {"Location": "middle of the room", "Holding": "nothing"}
    found = decide(view(state=state, rules=RULES, likely=["cabinet", "desk"]))
    assert found[1] == "go to cabinet 1"
    state["Searched"] = "cabinet 1, cabinet 2"
    found = decide(view(state=state, rules=RULES, likely=["cabinet", "desk"]))
    assert found[1] == "go to desk 1"


def test_past_success_tells_where_to_look() -> None:
    snippet = ["go to shelf 1", "take mug 3 from shelf 1"]
    found = decide(view(snippets=[snippet], state={"Location": "desk 1", "Holding": "nothing"}))
    assert found[1] == "go to shelf 1"


def test_a_diagnosis_is_acted_on() -> None:
    turns = [("take mug 1 from desk 1", "Nothing happens.")]
    state = {"Location": "shelf 1", "Holding": "nothing", "Seen": "mug 1 at desk 1"}
    found = decide(view(turns=turns, state=state, rules=RULES, needs="be at desk 1"))
    assert found[1] == "go to desk 1"


def test_only_the_last_turns_are_remembered() -> None:
    seen = ("go to desk 1", "On the desk 1, you see a mug 1.")
    idle = ("go to shelf 1", "On the shelf 1, you see nothing.")
    assert assess(view(turns=[seen, idle])).seen == {"mug 1": "desk 1"}
    assert assess(view(turns=[seen, *[idle] * ATTENTION])).seen == {}
    told = view(turns=[seen, *[idle] * ATTENTION], state={"Seen": "mug 1 at desk 1"})
    assert assess(told).seen == {"mug 1": "desk 1"}


def test_taken_things_are_no_longer_where_they_were() -> None:
    turns = [
        ("go to desk 1", "On the desk 1, you see a mug 1, and a mug 2."),
        ("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1."),
    ]
    now = assess(view(turns=turns))
    assert now.held == "mug 1"
    assert now.seen == {"mug 2": "desk 1"}


ACTIONS = st.sampled_from(
    ["go to desk 1", "go to cabinet 1", "open cabinet 1", "look", "take mug 1 from desk 1", ""]
)
SEEN = st.sampled_from(
    [
        "Nothing happens.",
        "On the desk 1, you see a mug 1.",
        "The cabinet 1 is closed.",
        "You open the cabinet 1. The cabinet 1 is open. In it, you see nothing.",
        "You pick up the mug 1 from the desk 1.",
        "You put the mug 1 in/on the shelf 1.",
        "",
    ]
)
TASKS = ["put a mug in shelf", "put a hot mug in fridge", "look at mug under the desklamp", ""]


@example(task="", turns=[("go to desk 1", "Nothing happens.")] * 5
         + [("take mug 1 from desk 1", "Nothing happens."), ("", "Nothing happens.")],
         informed=False)  # fmt: skip
@given(st.sampled_from(TASKS), st.lists(st.tuples(ACTIONS, SEEN), max_size=8), st.booleans())
def test_it_always_says_something_and_always_the_same(
    task: str, turns: list[tuple[str, str]], informed: bool
) -> None:
    shown = view(task, turns=turns, rules=RULES if informed else set())
    thought, action = decide(shown)
    assert thought and action
    assert decide(shown) == (thought, action)
