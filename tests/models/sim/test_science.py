from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

import rpms.models.sim
from rpms.graph import run_episode
from rpms.models import SimPlanner
from rpms.models.sim.science import PROCEDURES, decide_science
from rpms.models.sim.science_mind import Mind
from rpms.models.sim.science_reading import ScienceView, read_science
from rpms.models.sim.science_search import right_box
from rpms.nodes.context import RunContext
from rpms.rules import load_manual

KITCHEN = """This room is called the kitchen. In it, you see:
	the agent
	a cupboard. The cupboard door is closed.
	a freezer. The freezer door is open. In the freezer is: a tin cup (containing ice cream).
	a red box (containing nothing)
	a sink, which is turned off. In the sink is: nothing.
	a stove, which is turned off. On the stove is: nothing.
	a thermometer, currently reading a temperature of 10 degrees celsius
You also see:
	A door to the hallway (that is open)"""
OUTSIDE = """This outside location is called the outside. Here you see:
	the agent
	a baby elephant
	a baby wolf
	a adult ant
You also see:
	A door to the kitchen (that is open)"""
MELT = "melt ice cream. First, focus on the substance. Then, take actions."
MEASURE = (
    "measure the temperature of tin, which is located around the kitchen. First, focus on the "
    "thermometer. Next, focus on the tin. If the tin temperature is above 50.0 degrees celsius, "
    "place it in the red box. If the tin temperature is below 50.0 degrees celsius, place it in "
    "the blue box. The boxes are located around the kitchen."
)
REFUSED = "No known action matches that input."
MANUAL = load_manual("scienceworld")
RULES = {
    **{rule.id: rule.text for tier in (MANUAL.universal, MANUAL.domain, MANUAL.environment)
       for rule in tier.rules},
    **{rule.id: rule.text for rule in MANUAL.actions},
}  # fmt: skip
TURN = tuple[str, str]


def view(task: str = MELT, *turns: TURN, look: str = KITCHEN, **changes: object) -> ScienceView:
    blank = ScienceView(task, [("look around", look), *turns], {}, "", {}, [], {}, [])
    return blank._replace(**changes)  # type: ignore[arg-type]


def ruled(task: str, *turns: TURN, look: str = KITCHEN, **changes: object) -> ScienceView:
    """With the whole manual at hand."""
    return view(task, *turns, look=look, rules=RULES, **changes)


def test_by_the_rules_it_focuses_on_the_substance_and_heats_it() -> None:
    focus = ("focus on ice cream in tin cup", "You focus on the ice cream.")
    take = ("pick up tin cup in freezer", "You move the tin cup to the inventory.")
    put = ("move tin cup in inventory to stove", "You move the tin cup to the stove.")
    on = ("activate stove", "The stove is now activated.")
    played: list[TURN] = []
    for turn in (focus, take, put, on):
        assert decide_science(ruled(MELT, *played))[1] == turn[0]
        played.append(turn)
    assert decide_science(ruled(MELT, *played))[1] == "wait"


def test_a_broken_stove_sends_it_to_the_furnace() -> None:
    turns = [
        ("focus on ice cream in tin cup", "You focus on the ice cream."),
        ("pick up tin cup in freezer", "You move the tin cup to the inventory."),
        ("move tin cup in inventory to stove", "You move the tin cup to the stove."),
        ("activate stove", "The stove appears broken, and can't be activated or deactivated."),
    ]
    assert decide_science(ruled(MELT, *turns))[1] == "pick up tin cup in stove"
    turns.append(("pick up tin cup in stove", "You move the tin cup to the inventory."))
    assert decide_science(ruled(MELT, *turns))[1] == "teleport to foundry"


def test_the_instrument_comes_first_and_the_reading_decides_on_the_box() -> None:
    look = KITCHEN.replace("a sink,", "a substance called tin\n\ta sink,")
    turns = [
        ("pick up thermometer", "You move the thermometer to the inventory."),
        ("focus on thermometer in inventory", "You focus on the thermometer."),
        ("focus on tin", "You focus on the tin."),
        ("use thermometer in inventory on tin", "the thermometer measures a temperature of 73 d"),
        ("pick up tin", "You move the tin to the inventory."),
    ]
    for number, turn in enumerate(turns):
        assert decide_science(ruled(MEASURE, *turns[:number], look=look))[1] == turn[0]
    assert (
        decide_science(ruled(MEASURE, *turns, look=look))[1] == "move tin in inventory to red box"
    )


def test_it_picks_animals_by_the_rule() -> None:
    task = "find the animal with the longest life span, then the shortest life span. First, focus."
    assert decide_science(ruled(task, look=OUTSIDE))[1] == "focus on baby elephant"
    turn = ("focus on baby elephant", "You focus on the baby elephant.")
    assert decide_science(ruled(task, turn, look=OUTSIDE))[1] == "focus on adult ant"


def test_it_answers_a_menu_with_a_number() -> None:
    lines = [("0", "pick up tin cup (in freezer)"), ("1", "pick up ice cream (in tin cup)")]
    assert decide_science(view(menu=lines))[1] == "1"
    hand = [("0", "move a (in sink) to b"), ("3", "move a (in inventory, in agent) to b")]
    assert decide_science(view(menu=hand))[1] == "3"


def test_under_the_rule_nothing_is_tried_a_third_time_in_vain() -> None:
    for task in (MELT, MEASURE, "find a(n) plant. First, focus on the thing."):
        turns: list[TURN] = []
        for _ in range(25):
            action = decide_science(ruled(task, *turns))[1]
            assert sum(action == tried for tried, _ in turns) < 2 or action.startswith("wait")
            turns.append((action, REFUSED))


def test_it_does_not_do_what_was_a_grave_mistake() -> None:
    action = decide_science(ruled(MELT))[1]
    assert decide_science(ruled(MELT, avoid={action: True}))[1] != action
    assert decide_science(ruled(MELT, avoid={action: False}))[1] == action


def test_without_rules_it_follows_past_successes_that_fit() -> None:
    snippets = [["focus on gold", "wait"], ["pick up thermometer", "focus on thermometer"]]
    assert decide_science(view(snippets=snippets))[1] == "pick up thermometer"


def test_an_objective_alone_tells_what_but_not_how() -> None:
    assert decide_science(view(objective="focus on ice cream"))[1] == "focus on ice cream"


def test_the_state_block_tells_what_it_carries() -> None:
    held = Mind(view(state={"Carrying": "orange, tin cup (not sure: 'inventory' lists it)"}))
    assert [node.name for node in held.scene.carried] == ["orange"]
    assert not Mind(view(state={"Carrying": "nothing"})).scene.carried
    assert not Mind(view()).scene.carried


def test_without_the_box_rule_it_does_not_compare() -> None:
    boxes = {right_box(Mind(view(MEASURE, whim=whim)), 73) for whim in range(8)}
    assert boxes == {"red box", "blue box"}
    assert right_box(Mind(ruled(MEASURE)), 73) == "red box"


def test_it_keys_on_rules_that_exist() -> None:
    """A renamed rule would silently turn the planner back into a beginner."""
    used = {rule for rule, _ in PROCEDURES.values()}
    for file in Path(rpms.models.sim.__file__).parent.glob("science*.py"):
        used |= set(re.findall(r'"([A-Z]\d?(?:-[A-Z]+)+-\d+)"', file.read_text(encoding="utf-8")))
    assert len(used) > 15
    assert used <= set(RULES)


def test_whims_differ_and_repeat() -> None:
    replies = [decide_science(view("boil tin.", look=KITCHEN, whim=whim)) for whim in range(12)]
    assert len({action for _, action in replies}) > 1
    assert replies == [decide_science(view("boil tin.", look=KITCHEN, whim=n)) for n in range(12)]


PIECES = st.sampled_from(
    [KITCHEN, OUTSIDE, "Your task is to melt ice cream.", f"Your task is to {MEASURE}", REFUSED,
     "A new task begins.", "[Current State]\n  Room: ", "[Current Objective] focus on ",
     "  F3-PROC-001: x\n  U-STATE-001: y", "Ambiguous request: \n0:\ta\n", "You move the ",
     "Your task is to grow a apple plant from seed.", "Action: ", " to the ", "  OK: F1: a -> b",
     "Your task is to determine which of the two inclined planes (a, b) has the most friction.",
     "\n", "(containing ", "is: ", "Your task is to find a(n) plant. First,"]
)  # fmt: skip
TEXT = st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=6).map("".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["system", "human", "ai"]), TEXT), max_size=7))
@example([("human", "")])
@example([("ai", "Action: 0"), ("human", "Ambiguous request: \n")])
def test_no_prompt_raises(messages: list[TURN]) -> None:
    kinds: dict[str, type[BaseMessage]] = {
        "system": SystemMessage, "human": HumanMessage, "ai": AIMessage,
    }  # fmt: skip
    thought, action = decide_science(read_science(messages))
    assert thought and action.strip()
    reply = SimPlanner().invoke(
        [kinds[role](text) for role, text in messages] or [HumanMessage("")]
    )
    assert re.search(r"\nAction: .", reply.text)


SAMPLE = (1, 4, 9, 13, 16, 21)
"""Tasks of all four families that take few steps with the rules."""


@pytest.mark.engine
def test_rules_help_it() -> None:
    totals = {"A": 0.0, "B": 0.0}
    for condition in totals:
        context = RunContext.for_condition(condition, max_steps=40)
        for task in SAMPLE:
            result = run_episode(task, env="scienceworld", split="dev_mini", context=context)
            totals[condition] += max(0.0, result["score"])
    assert totals["B"] > totals["A"] + 100


@pytest.mark.engine
def test_episodes_repeat_and_the_layout_changes_nothing() -> None:
    def play(layout: str) -> object:
        context = RunContext.for_condition("B", layout=layout)
        return run_episode(14, env="scienceworld", split="dev_mini", context=context)["history"]

    assert play("paper") == play("paper") == play("cache_friendly")
