"""The stand-in: it reads messages and nothing else, and each thing printed changes its choice."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    convert_to_messages,
)  # fmt: skip

from rpms.graph import build_graph, run_episode
from rpms.models import SimPlanner, sim
from rpms.nodes import prompt_build
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import BUILT_IN, RunContext

ROOT = Path(__file__).parents[2]
SOURCE = Path(sim.__file__).read_text(encoding="utf-8")

# A world that nobody has told it about.
SYSTEM = """You are a clerk. The available actions are:
1. visit {desk}
2. grab {paper} off {desk}
3. file {paper} into {desk}
4. unlock {desk}
5. stamp {paper} with {desk}
6. wait

If an action is not possible, the answer is "No way."
"""
EXAMPLE = [
    ("human", "You see a blue desk 1, a red desk 1, and a tray 1.\n\n"
              "Your task is to: file letter into tray."),
    ("ai", "Action: visit blue desk 1"),
    ("human", "On the blue desk 1, you see a pencil 1."),
    ("ai", "Action: visit red desk 1"),
    ("human", "On the red desk 1, you see a letter 2."),
    ("ai", "Action: grab letter 2 off red desk 1"),
    ("human", "You grab the letter 2."),
    ("ai", "Action: visit tray 1"),
    ("human", "On the tray 1, you see nothing."),
    ("ai", "Action: file letter 2 into tray 1"),
]  # fmt: skip
MARK = "=== The example is complete. A new task begins. ==="
OPENING = (
    "You see a blue desk 2, a blue desk 1, a green desk 1, a shelf 1, and a basket 1.\n\n"
    "Your task is to: file invoice into basket."
)
STATE = "[Current State]\n  Location: green desk 1\n  Holding: nothing"


def talk(*turns: tuple[str, str], blocks: str = "", seed: int = 0) -> str:
    """The action it chooses in the office, after these turns and with these blocks."""
    first = "\n\n".join(filter(None, ["You file it.", MARK, blocks, OPENING]))
    said = [*EXAMPLE, ("human", first)]
    for action, seen in turns:
        said += [("ai", f"Thought: so.\nAction: {action}"), ("human", seen)]
    kinds: dict[str, type[BaseMessage]] = {"human": HumanMessage, "ai": AIMessage}
    messages = [SystemMessage(SYSTEM), *(kinds[role](text) for role, text in said)]
    return chosen(SimPlanner(whim=seed).invoke(messages).text)


def chosen(reply: str) -> str:
    thought, action = reply.split("\n")
    assert thought.startswith("Thought: ") and len(thought) > 12
    return action.removeprefix("Action: ")


def often(*turns: tuple[str, str], blocks: str = "") -> str:
    """What most beginners do: one in three is careless at any moment."""
    found = [talk(*turns, blocks=blocks, seed=seed) for seed in range(25)]
    return max(set(found), key=found.count)


def test_without_knowledge_it_imitates_the_example() -> None:
    assert often() == "visit blue desk 1"
    found = ("visit green desk 1", "On the green desk 1, you see a invoice 3, and a pencil 2.")
    assert often(found) == "grab invoice 3 off green desk 1"
    taken = ("grab invoice 3 off green desk 1", "You grab the invoice 3.")
    assert often(found, taken) == "visit basket 1"
    there = ("visit basket 1", "On the basket 1, you see nothing.")
    assert often(found, taken, there) == "file invoice 3 into basket 1"


def test_it_looks_elsewhere_where_nothing_is_found_and_forgets_after_a_while() -> None:
    seen = [(f"visit {p}", f"On the {p}, you see nothing.") for p in ("blue desk 1", "shelf 1")]
    assert talk(*seen) in {f"visit {p}" for p in ("blue desk 2", "green desk 1", "basket 1")}
    lately = [("wait", "Time passes.")] * 6
    again = {talk(*seen, *lately, seed=seed) for seed in range(30)}
    assert "visit blue desk 1" in again


def test_a_refused_action_is_sometimes_tried_again() -> None:
    shut = ("visit shelf 1", "The shelf 1 is closed.")
    assert not talk(shut).startswith("open")  # this world prints no such action
    refused = ("unlock shelf 1", "No way.")
    again = sum(talk(refused, seed=seed) == "unlock shelf 1" for seed in range(60))
    assert 5 < again < 40


def test_a_sub_goal_is_followed() -> None:
    goal = "[Task Goal]\n  Current sub-goal: stamp_paper - invoice 1 with shelf 1"
    seen = ("visit shelf 1", "On the shelf 1, you see a invoice 1.")
    assert len({talk(seen, seed=seed) for seed in range(20)}) > 1  # another seed, another beginner
    assert often(seen, blocks=goal) == "stamp invoice 1 with shelf 1" != often(seen)
    assert often(blocks="[Current Objective] visit shelf 1") == "visit shelf 1"


def test_printed_needs_are_checked_against_the_printed_state() -> None:
    goal = "[Current Objective] stamp invoice 1 with shelf 1"
    state = STATE + "\n  Seen: invoice 1 at shelf 1"
    needs = (
        "[RULES]\n  R-1: stamp <paper> with <desk> | needs you to be at <desk>; you to hold <paper>"
    )
    blind, told = (f"{state}\n\n{goal}", f"{state}\n\n{goal}\n\n{needs}")
    turn = ("visit green desk 1", "On the green desk 1, you see nothing.")
    assert often(turn, blocks=blind) == "stamp invoice 1 with shelf 1"
    assert often(turn, blocks=told) == "visit shelf 1"
    # What memory learned counts as well, unless a warning says that it is in doubt.
    for learned in (
        "Learned: stamp invoice 1 with shelf 1 needs you to be at shelf 1",
        "Learned: stamp invoice 1 with shelf 1 needs you to be at shelf 1; afterwards you hold "
        "invoice 1 still (worked in 3 of 3 tries)",
        "AVOID: stamp invoice 1 with shelf 1\n    Rule: needs you to be at shelf 1",
    ):
        assert often(turn, blocks=f"{blind}\n\n[Past Experience]\n  {learned}") == "visit shelf 1"
        doubtful = f"{blind}\n\n[Past Experience]\n  {learned}\n    WARNING [R-1]: check first"
        assert often(turn, blocks=doubtful) == "stamp invoice 1 with shelf 1"


def test_a_diagnosis_is_heeded() -> None:
    refused = ("stamp invoice 1 with shelf 1", "No way.")
    reason = "it needs you to be at shelf 1, and you are at green desk 1"
    for times in ("", " twice", " 3 times"):
        said = f"[Last Action]\n  'stamp invoice 1 with shelf 1' was rejected{times}: {reason}."
        assert often(refused, blocks=said) == "visit shelf 1"
    for repair in ("", " First: visit shelf 1."):
        asked = ("stamp invoice 1 with shelf 1",
                 f"'stamp invoice 1 with shelf 1' was not carried out [R-1]: {reason}.{repair} "
                 "Choose another action, in the same form.")  # fmt: skip
        assert often(asked) == "visit shelf 1"


@pytest.mark.parametrize(
    "said",
    [
        "OK: get",
        "From here, a similar task went on with",
        "From here, a similar task was solved by",
    ],
)
def test_a_past_success_is_followed_and_goes_on(said: str) -> None:
    memory = f"[Past Experience]\n  {said}: visit shelf 1 -> grab stapler 4 off shelf 1\n"
    assert often(blocks=memory) == "visit shelf 1"
    seen = ("visit shelf 1", "On the shelf 1, you see a invoice 7.")
    assert often(seen, blocks=memory) == "grab invoice 7 off shelf 1"
    assert (
        often(blocks=f"{memory}    WARNING [R-1]: check first that it is open") == "visit shelf 1"
    )
    other = f"  {said}: visit basket 1 -> wait"
    warned = f"{memory}    WARNING [R-1]: check first that it is open\n{other}"
    assert often(blocks=warned) == "visit basket 1"


@pytest.mark.parametrize(
    ("block", "action"),
    [
        *((f"[Current Objective] find invoice\n\n[RULES]\n  {line}", "visit shelf 1")
          for line in ("R-2: invoice is usually at: shelf -> basket",
                       "FOUND: invoice in other tasks: shelf (3 of 9 searched held one)",
                       "In other tasks, invoice was found in: "
                       "shelf (3 of 9 searched held one; here: shelf 1)")),
        ("[Actions That Serve the Current Sub-Goal]\n  1. unlock shelf 1 (it may be there)",
         "unlock shelf 1"),
    ],
)  # fmt: skip
def test_likely_places_and_what_is_offered_come_first(block: str, action: str) -> None:
    assert often(blocks=block) == action


def test_what_failed_before_is_avoided_and_a_menu_is_answered_with_a_number() -> None:
    for lesson in (
        "AVOID: visit blue desk 1\n    Rule: no",
        "In a similar task 'visit blue desk 1' was rejected; the reason is not known",
        "Danger: in a task with the goal x:y, 'visit blue desk 1' was wrong: it ended the task",
    ):
        avoided = often(blocks=f"[Past Experience]\n  {lesson}")
        assert avoided not in ("visit blue desk 1", ""), lesson
    menu = "Which one?\n0:\tgrab pencil off shelf 1\n1:\tgrab invoice off shelf 1"
    assert talk(("grab invoice off shelf 1", menu)) == "1"


TEXT = st.text(max_size=80) | st.sampled_from(
    [SYSTEM, OPENING, MARK, STATE, "[Current State]", "{a} {", "<b> | needs you to be at <b>",
     "Learned: (", "Action:", "'", "In a task 'x' was wrong", "it needs",
     "  OK: x: visit \\1 -> (", "  SCHEMA: visit {desk} | needs x", "No way.", "[", "0:\t", "1. ("]
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["system", "human", "ai"]), st.lists(TEXT)), max_size=8))
def test_no_text_upsets_it(said: list[tuple[str, list[str]]]) -> None:
    kinds = {"system": SystemMessage, "human": HumanMessage, "ai": AIMessage}
    messages = [kinds[role]("\n\n".join(parts)) for role, parts in said] or [HumanMessage("")]
    reply = SimPlanner().invoke(messages).text
    assert reply.startswith("Thought: ") and "\nAction: " in reply
    assert reply == SimPlanner().invoke(messages).text


# What it must not know


def rule_ids() -> Iterator[str]:
    for file in (ROOT / "rpms").rglob("rules/*.yaml"):
        yield from re.findall(r"\bid: ([A-Z][\w-]+)", file.read_text(encoding="utf-8"))


def world_words() -> set[str]:
    """Kinds of things and places, and the types of tasks, of both worlds."""
    household = json.dumps(yaml.safe_load((ROOT / "rpms/envs/alfworld/homes.yaml").read_text()))
    found = set(re.findall(r"[a-z]{4,}", household))
    for file in (ROOT / "rpms/envs").glob("*/prompts/examples/*.json"):
        said = json.loads(file.read_text(encoding="utf-8"))
        text = "\n".join(message["content"] for message in said["messages"])
        found |= set(re.findall(r"\ba ([a-z]+) \d", text))
        found |= set(re.findall(r"door to the ([a-z]+)", text))
        found |= set(re.findall(r"^\ta ([a-z]+)", text, re.M))
    return found


def test_its_source_names_no_rule() -> None:
    ids = set(rule_ids())
    assert len(ids) > 60
    assert not [name for name in ids if name in SOURCE]
    assert not re.search(r"\b[UDEFS]\d?-[A-Z]+-\d", SOURCE)


def test_its_source_names_no_thing_or_place_of_a_world() -> None:
    words = world_words()
    assert {"microwave", "countertop", "kitchen", "foundry", "mug", "stove"} & words >= {
        "microwave", "countertop", "kitchen"}  # fmt: skip
    english = {"look", "older", "then"}  # words of the data files that are no things
    used = set(re.findall(r"[a-z]+", SOURCE.lower()))
    code = {node.id for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Name)}
    assert sorted((words & used) - english - code) == []
    assert not used & {"alfworld", "scienceworld", "household", "science"}


def test_it_knows_nothing_of_the_rest_of_the_program() -> None:
    """It may only read the prompt; importing the world or the manual would be cheating."""
    imported = set()
    for node in ast.walk(ast.parse(SOURCE.replace("from __future__ import annotations", ""))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module or "")
    inside = {name for name in imported if name.split(".")[0] == "rpms"}
    assert inside == {"rpms.models.controls", "rpms.models.replies"}  # how a stand-in answers
    assert not imported & {"os", "pathlib", "random", "time", "datetime", "secrets"}


# In real episodes

Pair = tuple[list[dict[str, str]], str]


@pytest.fixture(scope="module")
def recorded() -> list[Pair]:
    """The prompts of a real episode with the replies they got."""
    prompts: list[Any] = []

    def keep(state: EpisodeState) -> EpisodeState:
        update = prompt_build(state)
        prompts.append(update["prompt"])
        return update

    graph = build_graph(nodes={"prompt_build": keep})
    result = run_episode(8, context=RunContext(max_steps=15), graph=graph)
    replies = [f"Thought: {t['thought']}\nAction: {t['action']}" for t in result["history"]]
    return list(zip(prompts, replies, strict=True))


@pytest.mark.engine
def test_another_process_replies_the_same_in_another_order(
    recorded: list[Pair], tmp_path: Path
) -> None:
    """Neither an episode before, nor this process's memory, nor its hash seed plays a part."""
    for messages, reply in reversed(recorded):
        assert SimPlanner().invoke(convert_to_messages(messages)).text == reply
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps([messages for messages, _ in recorded]))
    program = (
        "import json, sys\n"
        "from langchain_core.messages import convert_to_messages\n"
        "from rpms.models.sim import SimPlanner\n"
        "for messages in json.load(open(sys.argv[1])):\n"
        "    print(json.dumps(SimPlanner().invoke(convert_to_messages(messages)).text))\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        capture_output=True, text=True, cwd=ROOT, check=True,
        env={"PYTHONHASHSEED": "123", "PYTHONPATH": str(ROOT)},
    ).stdout  # fmt: skip
    assert [json.loads(line) for line in out.splitlines()] == [reply for _, reply in recorded]


@pytest.mark.engine
def test_the_layout_changes_nothing_for_it() -> None:
    results = [
        run_episode(5, context=RunContext(layout=layout, max_steps=12))
        for layout in ("paper", "cache_friendly")
    ]
    assert results[0]["history"] == results[1]["history"]


async def test_it_is_a_chat_model_like_any_other() -> None:
    messages = [HumanMessage("x" * 400)]
    reply = SimPlanner().invoke(messages)
    assert reply.text.startswith("Thought: ") and reply.text.endswith("\nAction: look")
    assert (await SimPlanner().ainvoke(messages)).text == reply.text
    assert reply.usage_metadata is not None
    assert 90 < reply.usage_metadata["input_tokens"] < 130
    assert reply.usage_metadata["output_tokens"] > 0
    assert (
        reply.response_metadata["model_name"] == "sim" and "not a language model" in BUILT_IN["sim"]
    )
