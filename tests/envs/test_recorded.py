"""What is read from texts of both worlds: goals, actions, beliefs and sub-goals, case by case.

Each line of ``recorded.jsonl`` is one case: what a world or a person said, and what it means. The
beliefs of whole games are held against the truth elsewhere; here each sentence speaks for itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld.belief import from_inventory
from rpms.envs.scienceworld.goals import focus_order, read_task
from rpms.envs.scienceworld.parse_view import Thing, read_lines, read_thing, room_of, walk
from rpms.rules.verdicts import match_action
from rpms.vocabulary.belief import Belief
from tests.envs.playing import believing, changed, turn
from tests.envs.scienceworld.rooms import HALLWAY, KITCHEN
from tests.refusal import refused

Case = dict[str, Any]
CASES: list[Case] = [
    json.loads(line)
    for line in Path(__file__).with_name("recorded.jsonl").read_text(encoding="utf-8").splitlines()
]
REFUSED = " (refused)"


def cases(*asks: str) -> pytest.MarkDecorator:
    """The cases of some kinds, of both worlds."""
    chosen = [case for case in CASES if case["asks"] in asks]
    assert chosen, asks
    return pytest.mark.parametrize("case", chosen)


@cases("goal")
def test_every_wording_of_a_task_is_read(case: Case) -> None:
    goal = get_environment(case["world"]).parse_goal(case["sentence"])
    assert goal == {key: value for key, value in case.items() if key not in ("world", "asks")}


@cases("details")
def test_what_a_description_says_beyond_the_goal(case: Case) -> None:
    task = json.loads(json.dumps(read_task(case["sentence"])._asdict()))
    task["focus"] = [f.words.format(**f._asdict()) for f in focus_order(case["sentence"])]
    assert case["details"] == {name: task[name] for name in case["details"]}


@cases("same goal", "no goal")
def test_small_differences_do_not_matter_and_foreign_sentences_are_one_line(case: Case) -> None:
    parse = get_environment(case["world"]).parse_goal
    for other in case.get("others", ()):
        assert parse(other)["signature"] == parse(case["sentence"])["signature"]
        assert parse(other)["sentence"] == other.strip()
    for sentence in case.get("sentences", ()):
        with refused(f"'{sentence}'"):
            parse(sentence)


@cases("wording")
def test_loose_wordings_become_the_manuals(case: Case) -> None:
    read = get_environment(case["world"]).read_action
    assert {text: read(text) for text in case["texts"]} == dict.fromkeys(
        case["texts"], case["action"]
    )


NAME = st.sampled_from(["mug 1", "desk 12", "stove", "metal pot", "orange in bowl", "living room"])
WORDS = st.sampled_from([
    "go", "to", "put", "in/on", "in", "on", "/", "the", "a", "an", "take", "from", "pick", "up",
    "use", "with", "look", "at", "around", "heat", "move", "mug", "1", "2", ".", "!", "examine",
])  # fmt: skip


@pytest.mark.parametrize("world", ["alfworld", "scienceworld"])
@given(text=st.lists(WORDS | NAME, max_size=9).map(" ".join) | st.text(max_size=40))
@example(text="take the a mug 1 from desk 1")
@example(text="look .")
def test_any_text_is_read_and_reading_twice_changes_nothing(world: str, text: str) -> None:
    read = get_environment(world).read_action
    assert read(read(text)) == read(text) or not read(text)


@pytest.mark.parametrize("world", ["alfworld", "scienceworld"])
@given(data=st.data())
def test_every_action_of_the_manual_is_already_canonical(world: str, data: st.DataObject) -> None:
    manual = load_manual(world)
    rule = data.draw(st.sampled_from(manual.actions))
    numbered = st.sampled_from(["mug 1", "desk 12", "sinkbasin 40"])
    names = numbered if world == "alfworld" else NAME
    action = rule.syntax.format(**{name: data.draw(names) for name in rule.parameters})
    assert get_environment(world).read_action(action) == action
    matched = match_action(manual, action)
    assert matched is not None and matched[0].name == rule.name


def test_memories_of_scienceworld_are_filed_by_the_room_and_the_verb() -> None:
    keys = get_environment("scienceworld").keys
    for room in ("kitchen", "outside"):
        assert keys.compat(f"room={room}|inventory=pot|progress=2") == room
        assert keys.compat(f"room={room}|inventory=empty|progress=0") == room
    assert keys.goal("F3:melt:water") == ("F3", "water", "melt")


@cases("change")
def test_what_each_sentence_changes(case: Case) -> None:
    after = changed(case["world"], case["before"], case["action"], case["observation"])
    assert after == case["changed"]


@cases("refusal")
def test_which_answers_are_refusals(case: Case) -> None:
    assert get_environment(case["world"]).failed(case["observation"]) is case["refused"]


@cases("printed")
def test_the_printed_state(case: Case) -> None:
    world = get_environment(case["world"])
    assert world.print_state(believing(**case["belief"])) == case["printed"]


@cases("described")
def test_the_described_state_names_what_helps_and_nothing_else(case: Case) -> None:
    world = get_environment(case["world"])
    lines = world.describe_belief(believing(**case["belief"]), world.parse_goal(case["goal"]))
    assert lines == case["lines"]


@cases("sub-goal")
def test_the_sub_goal(case: Case) -> None:
    world = get_environment(case["world"])
    done = [
        turn(1, action.removesuffix(REFUSED), "", failed=action.endswith(REFUSED))
        for action in case["done"]
    ]
    goal = world.parse_goal(case["goal"])
    pointer = world.sub_goal(goal, believing(**case["belief"]), done)
    assert {field: pointer[field] for field in case["sub_goal"]} == case["sub_goal"]  # type: ignore[literal-required]


def after(first: str, case: Case) -> list[Belief]:
    """The belief at the start and after each turn."""
    world = get_environment(case["world"])
    beliefs = [world.first_belief(first)]
    for each in case["turns"]:
        beliefs.append(world.update_belief(beliefs[-1], each["action"], each["observation"]))
    return beliefs


@cases("way")
def test_the_way_through_a_task(case: Case) -> None:
    """(Sub-goal, pointer) at the start and after each turn."""
    world = get_environment(case["world"])
    goal = world.parse_goal(case["goal"])
    opening = "This room is called the kitchen. In it, you see: \n\tthe agent"
    pointed = [
        f"{world.sub_goal(goal, belief, [])['name']} {belief['progress']}"
        for belief in after(f"{opening}\n\n{case['goal']}", case)
    ]
    assert pointed == case["pointed"]


@cases("story")
def test_what_a_story_leaves_in_the_belief(case: Case) -> None:
    belief = after(case.get("first", HALLWAY), case)[-1]
    assert {field: belief[field] for field in case["belief"]} == case["belief"]  # type: ignore[literal-required]


@cases("fits")
def test_whether_a_memory_fits_and_what_speaks_against_it(case: Case) -> None:
    reason = get_environment(case["world"]).compat(case["entry"], believing(**case["belief"]))
    assert bool(reason) == bool(case["against"]) and case["against"] in reason


@cases("required")
def test_what_a_snippet_writes_down_of_its_state(case: Case) -> None:
    world = get_environment(case["world"])
    assert world.requirements(believing(**case["belief"]), case["actions"]) == case["required"]


@cases("source")
def test_whether_the_moved_thing_was_carried(case: Case) -> None:
    belief = believing(holding=case["holding"], visible=case["visible"])
    assert from_inventory(belief, case["command"], case["thing"]) is case["carried"]


def brief(thing: Thing | None) -> str:
    """``bowl{red apple; banana}``, ``oven[deactivated]<closed>``."""
    if thing is None:
        return ""
    states = f"[{', '.join(thing.states)}]" if thing.states else ""
    door = f"<{thing.door}>" if thing.door else ""
    inside = "" if thing.contents is None else f"{{{'; '.join(map(brief, thing.contents))}}}"
    return f"{thing.name}{states}{door}{inside}"


@cases("line")
def test_what_a_line_says_of_a_thing(case: Case) -> None:
    assert brief(read_thing(case["line"])) == case["read"]


def test_a_list_below_a_thing_ends_with_a_blank_line_or_with_nothing() -> None:
    block = (
        "\ta cupboard. The cupboard door is open. In the cupboard is: \n\ta drawer\n"
        "\ta tin cup (containing red paint)\n\n\ta drawer. In the drawer is: \n\tnothing\n"
        "\tan orange\n\ta table. On the table is: \n\ta switch, which is off"
    )
    things = read_lines(block)
    assert [brief(thing) for thing in things] == [
        "cupboard<open>{drawer; tin cup{red paint}}", "drawer{}", "orange",
        "table{switch[deactivated]}",
    ]  # fmt: skip
    inside = [(thing.name, place) for thing, place in walk(things[:1], "bedroom")]
    assert inside == [
        ("cupboard", "bedroom"), ("drawer", "cupboard"), ("tin cup", "cupboard"),
        ("red paint", "tin cup"),
    ]  # fmt: skip


@given(st.text(alphabet="ab ,.():\n\tOniscgthe", max_size=80))
def test_any_listing_is_survived(text: str) -> None:
    assert isinstance(read_lines(text), list)


def test_things_are_found_again_by_room() -> None:
    """Both rooms have a counter; the bowl was seen in the kitchen."""
    bathroom = (
        "This room is called the bathroom. In it, you see: \n\tthe agent\n"
        "\ta counter. On the counter is: nothing."
    )
    story = [
        ("teleport to kitchen", "You teleport to the kitchen."),
        ("look around", KITCHEN),
        ("pick up thermometer", "You move the thermometer to the inventory."),
        ("move apple to bowl", "You move the apple to the bowl."),
        ("teleport to bathroom", "You teleport to the bathroom."),
        ("look around", bathroom),
        ("inventory", "In your inventory, you see:\n\ta jug (containing soil)"),
    ]
    turns = [{"action": action, "observation": observation} for action, observation in story]
    belief = after(HALLWAY, {"world": "scienceworld", "turns": turns})[-1]
    rooms = {name: room_of(belief, name) for name in ("apple", "bowl", "picture", "soil", "moon")}
    assert rooms == {
        "apple": "kitchen", "bowl": "kitchen", "picture": "hallway", "soil": "bathroom",
        "moon": None,
    }  # fmt: skip
