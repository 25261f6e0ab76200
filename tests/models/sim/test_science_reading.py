from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rpms.envs.scienceworld.goals import parse_goal, read_details
from rpms.envs.scienceworld.tasks import list_tasks
from rpms.models.sim.science_listing import around, every, read_listing, without_articles
from rpms.models.sim.science_reading import is_science, read_science
from rpms.models.sim.science_scene import Scene, picture
from rpms.models.sim.science_task import read_science_task

KITCHEN = """This room is called the kitchen. In it, you see: 
	the agent
	a substance called air
	a counter. On the counter is: a bowl (containing a red apple, an orange), a drawer.
	a cupboard. The cupboard door is closed. 
	a freezer. The freezer door is open. In the freezer is: a tin cup (containing ice cream).
	a tin cup (containing nothing)
	a lighter
	a sink, which is turned off. In the sink is: nothing.
	a stove, which is turned off. On the stove is: nothing.
	a table. On the table is: a red light bulb, which is off, a switch, which is off.
	a flower pot 3 (containing a pea plant in the adult stage with a tall height, soil)
	an inclined plane with a bronze surface
You also see:
	A door to the hallway (that is open)
	A door to the outside (that is open)"""  # noqa: W291
TASK = "Your task is to melt ice cream. First, focus on the substance."
BLOCKS = """[Current State]
  Room: kitchen  Carrying: orange, metal pot  Progress: step 1
  Focused on: ice cream
  Seen: ice cream in tin cup (kitchen), red box in bathroom
  Looked around: kitchen, hallway

[Current Objective] pick up ice cream

[RULES - Tier 1: Universal Principles]
  U-FAIL-001: If the same action fails twice, do something else.

[RULES - Tier 2: Domain (F3_transform_verify)]
  F-LOC-004: ice cream is usually at: kitchen -> outside
  F3-FOCUS-001: CRITICAL: Focus on WHAT is to boil.

[Task-Specific Rules]
  - S-005: This room has not been looked at yet - look around.

[Past Experience - Learned from History]
  OK: F3: go to kitchen -> focus on ice cream
  AVOID [CRITICAL]: focus on stove
    Rule: never the device
  AVOID: move tin cup to oven
    Rule: closed"""


def prompt(blocks: str = BLOCKS, *turns: tuple[str, str]) -> list[tuple[str, str]]:
    parts = [
        "example",
        "=== The example is complete. A new task begins. ===",
        blocks,
        KITCHEN,
        TASK,
    ]
    messages = [("system", "rules of the game"), ("human", "\n\n".join(p for p in parts if p))]
    for action, answer in turns:
        messages += [("ai", f"Thought: so\nAction: {action}"), ("human", answer)]
    return messages


def scene(*turns: tuple[str, str]) -> Scene:
    return picture([("look around", KITCHEN), *turns], 100)


def test_a_listing_is_read_with_what_things_are_in() -> None:
    nodes = read_listing(KITCHEN.partition("\n")[2].partition("You also")[0])
    names = [node.name for node in every(nodes)]
    assert {"red apple", "drawer", "ice cream", "lighter", "pea plant", "soil"} <= set(names)
    assert {"red light bulb", "switch", "inclined plane with a bronze surface"} <= set(names)
    ice = next(node for node in every(nodes) if node.name == "ice cream")
    assert [node.name for node in around(nodes, ice)] == ["freezer", "tin cup"]
    assert {node.name: node.door for node in nodes if node.door} == {
        "cupboard": "closed", "freezer": "open",
    }  # fmt: skip
    plant = next(node for node in every(nodes) if node.name == "pea plant")
    assert "adult stage" in plant.note


def test_contents_may_be_listed_on_the_lines_below() -> None:
    text = "a blast furnace, which is turned on. In the blast furnace is: \n\ta tin cup\n\ta pot"
    nodes = read_listing(text)
    assert [node.name for node in nodes] == ["blast furnace"]
    assert [node.name for node in nodes[0].inside] == ["tin cup", "pot"]


def test_blocks_are_read() -> None:
    view = read_science(prompt())
    assert view.task.startswith("melt ice cream")
    assert view.state["Room"] == "kitchen"
    assert view.state["Carrying"] == "orange, metal pot"
    assert view.state["Looked around"] == "kitchen, hallway"
    assert view.objective == "pick up ice cream"
    assert set(view.rules) == {"U-FAIL-001", "F-LOC-004", "F3-FOCUS-001", "S-005"}
    assert view.snippets == [["go to kitchen", "focus on ice cream"]]
    assert view.avoid == {"focus on stove": True, "move tin cup to oven": False}


def test_nothing_is_read_where_nothing_is() -> None:
    view = read_science(prompt(""))
    assert not view.state and not view.objective and not view.rules and not view.snippets
    assert view.turns == [("look around", f"{KITCHEN}\n\n{TASK}")]


def test_the_last_message_may_bring_the_blocks() -> None:
    view = read_science(prompt("", ("wait", f"{BLOCKS}\n\nYou decide to wait for 10 iterations.")))
    assert view.objective == "pick up ice cream"
    assert view.turns[-1] == ("wait", "You decide to wait for 10 iterations.")


def test_a_menu_waits_for_its_number() -> None:
    menu = (
        "Ambiguous request: Please enter the number\n0:\tpick up a (in b)\n1:\tpick up a (in c)\n"
    )
    assert read_science(prompt("", ("pick up a", menu))).menu == [
        ("0", "pick up a (in b)"), ("1", "pick up a (in c)"),
    ]  # fmt: skip


def test_the_world_is_told_from_the_prompt_alone() -> None:
    assert is_science(prompt())
    assert not is_science(
        [("human", "You are in the middle of a room.\nYour task is to: put a mug")]
    )
    assert not is_science([])


def test_the_scene_follows_what_is_moved() -> None:
    now = scene(
        ("pick up tin cup in freezer", "You move the tin cup to the inventory."),
        ("move tin cup in inventory to stove", "You move the tin cup to the stove."),
        ("activate stove", "The stove is now activated."),
        ("open cupboard", "The cupboard is now open."),
    )
    stove = now.find("stove")
    assert stove is not None and stove.note == "activated"
    assert [node.name for node in every(stove.inside)] == ["tin cup", "ice cream"]
    assert now.opened and not now.arrived


def test_a_number_stands_for_its_line() -> None:
    menu = (
        "Ambiguous request: Please enter the number\n"
        "0:\tpick up tin cup (in kitchen)\n1:\tpick up tin cup (in freezer, in kitchen)\n"
    )
    now = scene(
        ("pick up tin cup", menu),
        ("1", "You move the tin cup to the inventory."),
    )
    assert [node.name for node in every(now.carried)] == ["tin cup", "ice cream"]


def test_contents_are_poured_and_mixed() -> None:
    now = scene(
        ("pour tin cup containing ice cream into bowl",
         "You pour the contents of the tin cup into the bowl."),
        ("mix bowl", "Ice cream and fruit mix to produce sundae."),
    )  # fmt: skip
    bowl = now.find("bowl")
    assert bowl is not None and [node.name for node in bowl.inside] == ["sundae"]
    assert now.made == ["sundae"]


def test_refusals_are_counted_by_room() -> None:
    refused = "No known action matches that input."
    now = scene(
        ("activate sink", refused),
        ("teleport to bathroom", "You teleport to the bathroom."),
        ("activate sink", "The sink appears broken, and can't be activated or deactivated."),
    )
    assert now.refused == {("kitchen", "activate sink"): 1, ("bathroom", "activate sink"): 1}
    assert now.arrived


def test_what_is_long_ago_is_forgotten_but_not_where_one_is() -> None:
    turns = [
        ("look around", KITCHEN),
        ("pick up lighter", "You move the lighter to the inventory."),
        ("focus on orange", "You focus on the orange."),
        *[("wait1", "You decide to wait for 1 iterations.")] * 3,
    ]
    now = picture(turns, 3)
    assert now.room == "kitchen"
    assert [node.name for node in now.carried] == ["lighter"]
    assert not now.rooms and not now.focused


def test_articles_make_no_difference() -> None:
    assert without_articles("the inclined plane with a Bronze surface") == (
        "inclined plane with bronze surface"
    )


@pytest.mark.parametrize("split", ["train_mini", "dev_mini"])
def test_tasks_are_read_as_the_goal_parser_reads_them(split: str) -> None:
    for listed in list_tasks(split):
        sentence = listed["goal"]
        goal, details = parse_goal(sentence), read_details(sentence)
        task = read_science_task(sentence.removeprefix("Your task is to "))
        assert task.verb
        if task.verb not in ("lifespan", "grow"):
            assert task.target.lower() == goal["object"]
        assert [name for name, _ in task.boxes] == [name for name, _ in details["boxes"]]
        assert task.room == details["room"]


@given(st.text(), st.integers(0, 5))
@example("((((((((((containing a, b (containing c", 1)
@example("On the x is: " * 50, 3)
def test_no_listing_raises(text: str, span: int) -> None:
    assert isinstance(read_listing(text), list)
    read_science_task(text)
    turns = [("look around", text), (text, text), ("move a to b", f"You move the {text} to the b.")]
    assert isinstance(picture(turns, span), Scene)
