from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.envs.alfworld.adapter import ENVIRONMENT
from rpms.envs.alfworld.goals import GOAL_TYPES
from rpms.graph import build_graph, stream_episode
from rpms.nodes import prompt_build
from rpms.nodes.blocks import knowledge_blocks, load_system
from rpms.nodes.prompt_build import NEW_TASK, REPLY_KEPT, reply_of
from rpms.nodes.prompt_examples import load_example
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.turn import Message, Turn
from tests.gold import household_gold
from tools import record_examples

GOLDEN = Path(__file__).parent / "golden"
LAYOUTS = ["paper", "cache_friendly"]
CEILING = 1200
Play = Callable[..., list[EpisodeState]]
MakeRuntime = Callable[..., Runtime[RunContext]]


def as_text(prompt: list[Message]) -> str:
    return "".join(f"----- {m['role']}\n{m['content']}\n" for m in prompt)


def build(state: EpisodeState, condition: str, layout: str, **settings: Any) -> list[Message]:
    context = RunContext.for_condition(condition, layout=layout, **settings)
    return prompt_build(state, Runtime(context=context))["prompt"]


@pytest.mark.parametrize("step", [1, 4, 7])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("condition", ["A", "B", "C", "D"])
def test_golden(condition: str, layout: str, step: int, play_script: Play) -> None:
    """Set RPMS_UPDATE_GOLDEN=1 to write the files anew, then read the difference."""
    text = as_text(play_script(condition, layout=layout)[step - 1]["prompt"])
    file = GOLDEN / f"{condition}-{layout}-step{step}.txt"
    if os.environ.get("RPMS_UPDATE_GOLDEN") == "1":
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def without_blocks(prompt: list[Message], blocks: list[str]) -> list[Message]:
    left = [Message(role=m["role"], content=m["content"]) for m in prompt]
    for block in blocks:
        holders = [m for m in left if f"{block}\n\n" in m["content"]]
        assert len(holders) == 1
        holders[0]["content"] = holders[0]["content"].replace(f"{block}\n\n", "", 1)
    return left


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("condition", ["B", "C", "D"])
def test_the_baseline_is_the_prompt_minus_the_blocks(
    condition: str, layout: str, play_script: Play
) -> None:
    baseline = [state["prompt"] for state in play_script("A", layout=layout)]
    states = play_script(condition, layout=layout)
    assert len(states) == len(baseline) == 7
    context = RunContext.for_condition(condition, layout=layout)
    for state, plain in zip(states, baseline, strict=True):
        blocks = [b for b in knowledge_blocks(state, context, ENVIRONMENT) if b]
        assert len(blocks) >= 2
        assert without_blocks(state["prompt"], blocks) == plain
        assert "".join(blocks) not in as_text(plain)


def test_the_baseline_has_no_trace_of_knowledge(play_script: Play) -> None:
    for state in play_script("A"):
        text = as_text(state["prompt"])
        assert not re.search(r"\[[A-Z][\w -]+\]|^\s+\[?[A-Z]+-[A-Z]*-?\d+", text, re.M)
        assert state["knowledge_tokens"] == 0


@pytest.mark.parametrize("step", [1, 4, 7])
def test_paper_layout_follows_the_equation(step: int, play_script: Play) -> None:
    """SysInst, ICL, R_active, goal, belief, memory, history, observation."""
    state = play_script("D")[step - 1]
    text = as_text(state["prompt"])
    example = load_example(ENVIRONMENT.prompts, state["goal"]["type"])
    marks = [
        load_system(ENVIRONMENT.prompts),
        example[0]["content"],
        example[-1]["content"],
        NEW_TASK,
        "[RULES - CRITICAL, Always Follow]",
        "=== Universal Principles ===",
        "=== Domain Knowledge ===",
        "=== Environment-Specific ===",
        "[Task-Specific Rules]",
        "[Task Goal]",
        "[Current State]",
        "[Past Experience - Learned from History]",
        state["first_observation"],
        *[reply_of(turn) for turn in state["history"][-1:]],
        *[turn["observation"] for turn in state["history"][-1:]],
    ]
    positions = [text.index(mark) for mark in marks[:-2]] if state["history"] else []
    positions += [text.rindex(mark) for mark in marks[len(positions) :]]
    assert positions == sorted(positions)
    assert text.endswith(f"{state['observation']}\n")


@pytest.mark.parametrize("step", [1, 7])
def test_cache_friendly_keeps_the_changing_blocks_last(step: int, play_script: Play) -> None:
    state = play_script("D", layout="cache_friendly")[step - 1]
    last = state["prompt"][-1]["content"]
    for block in ("[Task-Specific Rules]", "[Task Goal]", "[Current State]", "[Past Experience"):
        assert block in last
        assert as_text(state["prompt"]).count(block) == 1
    assert last.endswith(f"\n\n{state['observation']}")
    rules = next(m["content"] for m in state["prompt"] if "=== Universal" in m["content"])
    assert rules.index(NEW_TASK) < rules.index("[RULES")


@pytest.mark.parametrize("condition", ["A", "B", "C", "D"])
def test_in_cache_friendly_all_but_the_newest_message_is_kept(
    condition: str, play_script: Play
) -> None:
    states = play_script(condition, layout="cache_friendly")
    for before, after in pairwise(states[1:]):
        assert after["prompt"][: len(before["prompt"]) - 1] == before["prompt"][:-1]
        kept = after["prompt"][len(before["prompt"]) - 1]["content"]
        assert before["prompt"][-1]["content"].endswith(kept)
    first, second = (state["prompt"] for state in states[:2])
    assert second[: len(first) - 1] == first[:-1]
    kept = shared_start(first[-1]["content"], second[len(first) - 1]["content"])
    assert kept == second[len(first) - 1]["content"].removesuffix(states[0]["observation"]) or (
        condition == "A" and kept == first[-1]["content"]
    )


def shared_start(one: str, other: str) -> str:
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return one[:length] if length is not None else min(one, other, key=len)


def repeated(prompts: list[str]) -> float:
    """Share of characters that repeat the previous step's prefix, from the second step on."""
    same = sum(len(shared_start(*pair)) for pair in pairwise(prompts))
    return same / sum(len(text) for text in prompts[1:])


WANDERING = ["Action: look", "Action: inventory", "hm", "Action: go to desk 1", "Action: dance"]


@pytest.mark.engine
@pytest.mark.parametrize("wandering", [False, True], ids=["a solution", "50 steps of wandering"])
def test_cache_friendly_repeats_more_of_the_last_prompt(wandering: bool) -> None:
    """The same turns under both layouts, so that nothing but the layout differs."""
    shares: dict[tuple[str, str], list[float]] = {}
    for task in ("5", "7", "10"):
        words = GenericFakeChatModel(messages=cycle(AIMessage(said) for said in WANDERING))
        graph = build_graph(
            nodes={"prompt_build": keeping_states(states := [])},
            model=words if wandering else household_gold(int(task)),
        )
        list(stream_episode(task, context=RunContext.for_condition("B"), graph=graph))
        assert len(states) == 50 if wandering else 3 < len(states) < 30
        for condition in "AB":
            for layout in LAYOUTS:
                prompts = [as_text(build(state, condition, layout)) for state in states]
                shares.setdefault((condition, layout), []).append(repeated(prompts))
    for (condition, layout), found in shares.items():
        print(f"repeated prefix, {condition} {layout}: {sum(found) / len(found):.1%}")
    for paper, friendly in zip(shares["B", "paper"], shares["B", "cache_friendly"], strict=True):
        # A short solution leaves less to repeat than a long walk.
        assert friendly > paper + (0.05 if wandering else 0.01)
        assert friendly > 0.9
    assert shares["A", "paper"] == shares["A", "cache_friendly"]


def keeping_states(states: list[EpisodeState]) -> Callable[..., EpisodeState]:
    def stage(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        states.append(state)
        return prompt_build(state, runtime)

    return stage


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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("condition", ["A", "B", "C", "D"])
def test_roles_alternate_strictly(condition: str, layout: str, play_script: Play) -> None:
    for state in play_script(condition, layout=layout):
        roles = [message["role"] for message in state["prompt"]]
        assert roles[0] == "system"
        assert roles[1::2] == ["user"] * len(roles[1::2])
        assert roles[2::2] == ["assistant"] * len(roles[2::2])
        assert roles[-1] == "user"
        assert all(message["content"].strip() for message in state["prompt"])


def turn(**changes: Any) -> Turn:
    base = Turn(step=1, thought="", action="look", observation="", failed=False, reply="")
    return Turn(**{**base, **changes})


def test_past_turns_are_shown_in_the_reply_format() -> None:
    assert reply_of(turn()) == "Action: look"
    assert reply_of(turn(thought="Hm.")) == "Thought: Hm.\nAction: look"
    assert reply_of(turn(action="", reply="no idea")) == "no idea"
    assert reply_of(turn(action="", reply="x" * 5000)) == "x" * REPLY_KEPT
    assert reply_of(turn(action="", reply="")) == "(no reply)"


def test_a_goal_type_without_an_example_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=r"cannot read the example for 'juggle' .*juggle\.json"):
        load_example(tmp_path, "juggle")


@pytest.mark.engine
def test_recording_the_examples_again_gives_the_committed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = ENVIRONMENT.prompts / "examples"
    monkeypatch.setattr(ENVIRONMENT, "prompts", tmp_path)
    record_examples.main(["alfworld"])
    again = sorted((tmp_path / "examples").iterdir())
    assert {file.name.partition(".")[0] for file in again} == set(GOAL_TYPES)
    assert len(again) == 2 * len(GOAL_TYPES)
    assert sorted(file.name for file in committed.iterdir()) == [file.name for file in again]
    for file in again:
        assert file.read_bytes() == (committed / file.name).read_bytes()


@pytest.mark.engine
def test_knowledge_stays_below_the_ceiling() -> None:
    spent: list[int] = []
    for task in range(12):
        for event in stream_episode(task, context=RunContext.for_condition("B")):
            if "turn" in event:
                spent.append(event["knowledge_tokens"])
    mean = sum(spent) / len(spent)
    print(f"knowledge tokens over {len(spent)} steps: {min(spent)}..{max(spent)}, mean {mean:.0f}")
    assert len(spent) > 60
    assert max(spent) <= CEILING
    assert get_environment("alfworld").max_steps == 50


@pytest.mark.parametrize("condition", ["B", "C", "D"])
def test_knowledge_tokens_measure_the_injected_text(condition: str, play_script: Play) -> None:
    context = RunContext.for_condition(condition)
    for state in play_script(condition):
        blocks = [b for b in knowledge_blocks(state, context, ENVIRONMENT) if b]
        estimate = sum(len(block) for block in blocks) / 4
        assert estimate <= state["knowledge_tokens"] <= estimate + 5 * len(blocks)
