from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from rpms.envs import get_environment
from rpms.envs.alfworld.adapter import ENVIRONMENT
from rpms.envs.alfworld.goals import GOAL_TYPES
from rpms.envs.base import Task
from rpms.graph import build_graph, stream_episode
from rpms.memory_store import parse_entry, write_snapshot
from rpms.nodes import prompt_build
from rpms.nodes.prompt_build import REPLY_CHARACTERS, reply_of
from rpms.nodes.state import EpisodeState, knowledge_of
from rpms.prompts.blocks import knowledge_blocks
from rpms.prompts.examples import load_example
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Message, Turn
from tests.gold import household_gold
from tests.paper_entries import PAPER
from tests.scripted_episode import under
from tools import record_examples

GOLDEN = Path(__file__).parent / "golden"
LAYOUTS = ["paper", "cache_friendly"]
TOKEN_BUDGET = 1200
Play = Callable[..., list[EpisodeState]]
WORLDS = {"alfworld": ENVIRONMENT, "scienceworld": get_environment("scienceworld")}

GOAL = (
    "Your task is to boil water. For compounds without a boiling point, combusting the substance "
    "is also acceptable. First, focus on the substance. Then, take actions that will cause it to "
    "change its state of matter."
)
BOIL = Task(env="scienceworld", split="scripted", index=0, id="boil/0", goal=GOAL, source="boil/0")
OPENING = f"""This room is called the kitchen. In it, you see:\x20
\tthe agent
\ta substance called air
\ta counter. On the counter is: a bowl (containing a red apple, a banana, an orange), a drawer.
\ta cupboard. The cupboard door is closed.\x20
\ta metal pot (containing nothing)
\ta sink, which is turned off. In the sink is: nothing.
\ta stove, which is turned off. On the stove is: nothing.
You also see:
\tA door to the hallway (that is open)
\tA door to the outside (that is open)

{GOAL}"""
SCRIPT = [
    ("Action: move metal pot to sink", "You move the metal pot to the sink."),
    ("Action: activate sink", "The sink is now activated."),
    ("Action: look at metal pot", "a metal pot (containing a substance called water)"),
    ("Action: pick up kettle", "No known action matches that input."),
]
# The two memories of the paper's listing.
MEMORIES = [
    {
        "id": "success_000012", "type": "success", "goal_signature": "F3:boil:water",
        "state_signature": "room=kitchen|inventory=empty|progress=0",
        "sub_goal_type": "transform_object",
        "actions": ["focus on substance in metal pot", "move metal pot to stove",
                    "activate stove"],
    },
    PAPER[3],
    {
        "id": "success_000013", "type": "success", "goal_signature": "F3:boil:water",
        "state_signature": "room=workshop|inventory=empty|progress=0",
        "sub_goal_type": "transform_object", "actions": ["activate stove"],
    },
]  # fmt: skip


@pytest.fixture(scope="session")
def science_memory(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("boil") / "science.jsonl"
    write_snapshot(file, "scienceworld", [parse_entry(memory) for memory in MEMORIES])
    return str(file)


@pytest.fixture
def play(play_script: Play, science_memory: str) -> Play:
    """The script of either world."""

    def episode(env: str, condition: str, layout: str = "paper") -> list[EpisodeState]:
        if env == "alfworld":
            return play_script(condition, layout=layout)
        return play_script(
            condition, SCRIPT, BOIL, OPENING, memory_file=science_memory, layout=layout
        )

    return episode


def as_text(prompt: list[Message]) -> str:
    return "".join(f"----- {m['role']}\n{m['content']}\n" for m in prompt)


def build(state: EpisodeState, condition: str, layout: str, **settings: Any) -> list[Message]:
    context = RunContext.for_condition(condition, layout=layout, **settings)
    return prompt_build(under(state, context))["prompt"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("condition", ["A", "B", "C", "D"])
@pytest.mark.parametrize(("env", "steps"), [("alfworld", [1, 4, 7]), ("scienceworld", [1, 5])])
def test_golden(env: str, steps: list[int], condition: str, layout: str, play: Play) -> None:
    """Set RPMS_UPDATE_GOLDEN=1 to write the files anew, then read the difference."""
    states = play(env, condition, layout)
    for step in steps:
        text = as_text(states[step - 1]["prompt"])
        name = f"{condition}-{layout}-step{step}.txt"
        if env != "alfworld":  # the system text and the example are data files of their own
            name, text = f"{env}-{name}", text[text.rindex("=== The example is complete") :]
        if os.environ.get("RPMS_UPDATE_GOLDEN") == "1":
            (GOLDEN / name).write_text(text, encoding="utf-8")
        assert text == (GOLDEN / name).read_text(encoding="utf-8")


def without_blocks(prompt: list[Message], blocks: list[str]) -> list[Message]:
    rest = [Message(role=m["role"], content=m["content"]) for m in prompt]
    for block in blocks:
        holders = [m for m in rest if f"{block}\n\n" in m["content"]]
        assert len(holders) == 1
        holders[0]["content"] = holders[0]["content"].replace(f"{block}\n\n", "", 1)
    return rest


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("condition", ["S", "B", "C", "D"])
@pytest.mark.parametrize("env", WORLDS)
def test_the_baseline_is_the_prompt_minus_the_blocks(
    env: str, condition: str, layout: str, play: Play
) -> None:
    context = RunContext.for_condition(condition, layout=layout)
    states = play(env, condition, layout)
    for state, plain in zip(states, play(env, "A", layout), strict=True):
        blocks = [b for b in knowledge_blocks(knowledge_of(under(state, context))) if b]
        assert len(blocks) >= 2
        assert without_blocks(state["prompt"], blocks) == plain["prompt"]
        assert "".join(blocks) not in as_text(plain["prompt"])
        estimate = sum(len(block) for block in blocks) / 4
        assert estimate <= state["knowledge_tokens"] <= estimate + 5 * len(blocks)
        assert state["knowledge_tokens"] <= TOKEN_BUDGET


@pytest.mark.parametrize("env", WORLDS)
def test_the_state_alone_is_what_memory_and_rules_bring_along(env: str, play: Play) -> None:
    """Goal and state of C and D, word for word, and nothing else of theirs."""
    for state in play(env, "D"):
        alone, memory, full = (
            knowledge_blocks(knowledge_of(under(state, RunContext.for_condition(c)))) for c in "SCD"
        )
        assert alone.goal and alone.state and alone == memory._replace(memory="")
        # Which step of ScienceWorld's procedures comes next belongs to the rules.
        goal = alone.goal if env == "scienceworld" else full.goal
        rules = {"rules": "", "situation": "", "last_action": ""}
        assert alone == full._replace(**rules, memory="", goal=goal)
    assert [s["condition"] for s in play(env, "S")] == ["S"] * len(play(env, "A"))


@pytest.mark.parametrize("condition", ["A", "S", "B", "C", "D"])
def test_in_cache_friendly_all_but_the_newest_message_is_kept(
    condition: str, play_script: Play
) -> None:
    states = play_script(condition, layout="cache_friendly")
    for before, after in pairwise(states[1:]):
        assert after["prompt"][: len(before["prompt"]) - 1] == before["prompt"][:-1]
        shared = after["prompt"][len(before["prompt"]) - 1]["content"]
        assert before["prompt"][-1]["content"].endswith(shared)
    first, second = (state["prompt"] for state in states[:2])
    assert second[: len(first) - 1] == first[:-1]
    shared = shared_start(first[-1]["content"], second[len(first) - 1]["content"])
    assert shared == second[len(first) - 1]["content"].removesuffix(states[0]["observation"]) or (
        condition == "A" and shared == first[-1]["content"]
    )


def shared_start(text: str, other: str) -> str:
    pairs = enumerate(zip(text, other, strict=False))
    return text[: next((i for i, (a, b) in pairs if a != b), min(len(text), len(other)))]


def repeated(prompts: list[str]) -> float:
    """Share of characters that repeat the previous step's prefix, from the second step on."""
    same = sum(len(shared_start(*pair)) for pair in pairwise(prompts))
    return same / sum(len(text) for text in prompts[1:])


WALKS = [f"Action: go to {place}" for place in ("bed 1", "desk 1", "dresser 1", "shelf 1")]
WANDERING = [WALKS[0], "Action: look", WALKS[1], "hm", WALKS[2], "Action: dance", WALKS[3]]


@pytest.mark.engine
@pytest.mark.parametrize("wandering", [False, True], ids=["a solution", "30 steps of wandering"])
def test_cache_friendly_repeats_more_of_the_last_prompt(wandering: bool) -> None:
    """The same turns under both layouts, so that nothing but the layout differs."""
    states: list[EpisodeState] = []

    def keep(state: EpisodeState) -> EpisodeState:
        states.append(state)
        return prompt_build(state)

    words = GenericFakeChatModel(messages=cycle(AIMessage(reply) for reply in WANDERING))
    model = words if wandering else household_gold(5)
    graph = build_graph(nodes={"prompt_build": keep}, model=model)
    context = RunContext.for_condition("B", max_steps=30)
    list(stream_episode("5", context=context, graph=graph))
    assert len(states) == 30 if wandering else 3 < len(states) < 30
    shares = {
        (condition, layout): repeated(
            [as_text(build(state, condition, layout)) for state in states]
        )
        for condition in "AB"
        for layout in LAYOUTS
    }
    # A short solution leaves less to repeat than a long walk.
    gain = shares["B", "cache_friendly"] - shares["B", "paper"]
    assert gain > (0.05 if wandering else 0.01)
    assert shares["B", "cache_friendly"] > 0.9
    assert shares["A", "paper"] == shares["A", "cache_friendly"]


@pytest.mark.parametrize("goal_type", GOAL_TYPES)
def test_one_example_of_the_own_type_in_every_condition(goal_type: str, play_script: Play) -> None:
    state = play_script("D")[0]
    state["goal"] = {**state["goal"], "type": goal_type}
    file = ENVIRONMENT.prompts / "examples" / f"{goal_type}.json"
    recorded = json.loads(file.read_text(encoding="utf-8"))
    assert recorded["goal_type"] == goal_type
    example = recorded["messages"]
    sentence = example[0]["content"].rpartition("Your task is to: ")[2]
    assert ENVIRONMENT.parse_goal(sentence)["type"] == goal_type
    for layout in LAYOUTS:
        for condition in "ABCD":
            prompt = build(state, condition, layout)
            assert prompt[1 : len(example)] == example[:-1]
            assert prompt[len(example)]["content"].startswith(f"{example[-1]['content']}\n\n")
            assert as_text(prompt).count("Your task is to:") == 2


def turn(**changes: Any) -> Turn:
    base = Turn(step=1, thought="", action="look", observation="", failed=False, reply="")
    return Turn(**{**base, **changes})


def test_past_turns_are_shown_in_the_reply_format() -> None:
    assert reply_of(turn()) == "Action: look"
    assert reply_of(turn(thought="Hm.")) == "Thought: Hm.\nAction: look"
    assert reply_of(turn(action="", reply="no idea")) == "no idea"
    assert reply_of(turn(action="", reply="x" * 5000)) == "x" * REPLY_CHARACTERS
    assert reply_of(turn(action="", reply="")) == "(no reply)"


def test_a_goal_type_without_an_example_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=r"cannot read the example for 'juggle' .*juggle\.json"):
        load_example(tmp_path, "juggle")


@pytest.mark.engine
def test_recording_the_examples_again_gives_the_committed_files() -> None:
    committed = ENVIRONMENT.prompts / "examples"
    assert {file.stem for file in committed.iterdir()} == {
        f"{kind}{second}" for kind in GOAL_TYPES for second in ("", ".2")
    }
    for name, example in islice(record_examples.household_examples(), 4):
        text = json.dumps(example, indent=1) + "\n"
        assert text == (committed / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.engine
def test_knowledge_stays_below_the_ceiling(real_run: Path) -> None:
    logs = [
        json.loads(gzip.decompress(file.read_bytes()))
        for file in (real_run / "steps").rglob("*.json.gz")
    ]
    spent = [step["knowledge_tokens"] for log in logs for step in log["steps"]]
    assert len(spent) > 40 and 0 < max(spent) <= TOKEN_BUDGET
