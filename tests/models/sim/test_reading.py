from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rpms.models.sim.reading import NEW_TASK, kind, names, read_prompt
from rpms.nodes.prompt_build import NEW_TASK as SAID

ROOM = (
    "You are in the middle of a room. Looking quickly around you, you see a desk 2, a desk 1, "
    "and a fridge 1.\n\nYour task is to: put a hot mug in fridge."
)
EXAMPLE = [
    ("system", "You are an agent."),
    ("human", "Looking quickly around you, you see a bed 1.\n\nYour task is to: put a pen in bed."),
    ("ai", "Action: go to bed 1"),
]
BLOCKS = """[RULES - CRITICAL, Always Follow]
=== Universal Principles ===
  [U-SEARCH-001] Search.
=== Domain Knowledge ===
  [D-LOC-002] mug is usually at: cabinet -> desk
=== Environment-Specific ===
  [E-ACT-001] go to <place>

[Task-Specific Rules]
  - S-002: Hands empty.
  - S-003: 'open mug 1' was refused: be at mug 1

[Task Goal]
  Goal: put a hot mug in fridge.
  Type: pick_heat_then_place_in_recep
  Current sub-goal: find_object - mug
  Progress: 0%

[Current State]
  Location: desk 1
  Holding: nothing
  Searched: desk 1, desk 2

[Past Experience - Learned from History]
  OK: transformed: go to desk 1 -> take mug 2 from desk 1
  AVOID: take mug 1 from shelf 1
    Rule: be there
  AVOID [CRITICAL]: focus on stove
    Rule: check first"""


def prompt(opening: str, *rest: tuple[str, str]) -> list[tuple[str, str]]:
    return [*EXAMPLE, ("human", f"Done.\n\n{SAID}\n\n{opening}"), *rest]


def test_the_mark_between_example_and_task_is_the_prompts_own() -> None:
    assert NEW_TASK in SAID


def test_the_bare_prompt() -> None:
    view = read_prompt(prompt(ROOM))
    assert view.places == ["desk 2", "desk 1", "fridge 1"]
    assert view.task == "put a hot mug in fridge"
    assert view.turns == []
    assert (view.state, view.sub_goal, view.rules, view.needs) == ({}, "", set(), "")
    assert (view.snippets, view.avoid) == ([], [])


def test_the_example_is_not_the_task() -> None:
    view = read_prompt(prompt(ROOM, ("ai", "Action: look"), ("human", "Nothing happens.")))
    assert "bed 1" not in view.places
    assert view.turns == [("look", "Nothing happens.")]


def test_knowledge_blocks() -> None:
    view = read_prompt(prompt(f"{BLOCKS}\n\n{ROOM}"))
    assert view.places == ["desk 2", "desk 1", "fridge 1"]
    assert view.state["Location"] == "desk 1"
    assert view.state["Searched"] == "desk 1, desk 2"
    assert view.sub_goal == "find_object"
    assert {"U-SEARCH-001", "D-LOC-002", "E-ACT-001", "S-002"} <= view.rules
    assert view.likely == ["cabinet", "desk"]
    assert view.needs == "be at mug 1"
    assert view.snippets == [["go to desk 1", "take mug 2 from desk 1"]]
    assert view.avoid == ["take mug 1 from shelf 1", "focus on stove"]


def test_blocks_beside_the_newest_observation() -> None:
    """The layout that moves the changing blocks to the end says the same."""
    turns = [
        ("ai", "Thought: hm\nAction: go to desk 1"),
        ("human", "On the desk 1, you see a pen 1."),
    ]
    one = read_prompt(prompt(f"{BLOCKS}\n\n{ROOM}", *turns))
    moved = [turns[0], ("human", f"{BLOCKS}\n\n{turns[1][1]}")]
    assert read_prompt(prompt(ROOM, *moved)) == one
    assert one.turns == [("go to desk 1", "On the desk 1, you see a pen 1.")]


def test_an_unreadable_turn_of_its_own_is_kept() -> None:
    view = read_prompt(prompt(ROOM, ("ai", "no idea"), ("human", "Answer with a line.")))
    assert len(view.turns) == 1


def test_names() -> None:
    assert names("a mug 2, a mug 1, and a pen 1") == ["mug 2", "mug 1", "pen 1"]
    assert names("nothing") == []
    assert kind("mug 12") == "mug"


@given(st.lists(st.tuples(st.sampled_from(["human", "ai"]), st.text()), max_size=6), st.text())
def test_any_conversation_can_be_read(turns: list[tuple[str, str]], opening: str) -> None:
    assert isinstance(read_prompt([("human", opening), *turns]).task, str)
    assert isinstance(read_prompt([("system", opening), *turns]).task, str)
