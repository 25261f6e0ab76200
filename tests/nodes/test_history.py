"""Prompts with the last turns only: what goes, what the state says instead, who can play by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from langgraph.runtime import Runtime

from rpms.envs import get_environment
from rpms.evals.expert import llm_call
from rpms.graph import build_graph, run_episode
from rpms.nodes import prompt_build
from rpms.nodes.blocks import RECAP, knowledge_blocks
from rpms.nodes.context_budget import left_out
from rpms.nodes.manual import load_manual
from rpms.nodes.prompt_examples import NEW_TASK
from rpms.nodes.state import EpisodeState
from rpms.rules import match_action
from rpms.vocabulary.context import ALL_TURNS, RunContext
from rpms.vocabulary.turn import Message
from tests.envs.playing import believing, turn

Play = Callable[..., list[EpisodeState]]


def build(state: EpisodeState, condition: str, **settings: Any) -> list[Message]:
    context = RunContext.for_condition(condition, **settings)
    return cast(Any, prompt_build(state, Runtime(context=context))["prompt"])


@pytest.mark.parametrize("layout", ["paper", "cache_friendly"])
@pytest.mark.parametrize("condition", "AD")
def test_only_the_last_turns_are_shown(condition: str, layout: str, play_script: Play) -> None:
    state = play_script(condition, layout=layout)[-1]
    whole, turns = build(state, condition, layout=layout), len(state["history"])
    assert build(state, condition, layout=layout, history=turns) == whole
    head = len(whole) - 2 * turns
    for history in (3, 1, 0):
        cut = build(state, condition, layout=layout, history=history)
        opening, mark, newest = cut[head - 1]["content"].partition(left_out(turns - history))
        assert mark and len(cut) == head + 2 * history and cut[: head - 1] == whole[: head - 1]
        assert state["first_observation"] in opening
        assert cut[-1]["content"].endswith(state["history"][-1]["observation"])
        assert bool(newest) == (history == 0)
        if condition == "A":
            assert cut[head:] == whole[len(whole) - 2 * history :]
    tight = build(state, condition, layout=layout, history=5, context_tokens=300)
    assert tight[head:] == build(state, condition, layout=layout, history=3)[head:]
    assert tight[head - 1]["content"].count(left_out(turns - 3)) == 1


def test_the_state_says_what_was_refused_and_what_is_here(play_script: Play) -> None:
    """Before a turn is hidden it says no more than ever, and no memory gives way to it."""
    states, context = play_script("D"), RunContext.for_condition("D", history=2)
    lines = [
        knowledge_blocks(state, context, get_environment("alfworld")).state.splitlines()
        for state in states
    ]
    for state, shown in zip(states[:3], lines, strict=False):
        assert "\n".join(shown) in "\n".join(m["content"] for m in state["prompt"])
    assert "  Refused here: take apple 1 from countertop 1" in lines[3]
    assert "  Here: lettuce 1, mug 1" in lines[4]
    assert not [line for line in lines[5] if "Refused" in line] and "  Here: knife 1" in lines[6]
    for state in states:
        for limit in ({"ceiling": size} for size in range(700, 1200, 100)):
            fates = [
                [
                    recall["dropped_by"]
                    for recall in prompt_build(state, Runtime(context=run))["recalls"]
                ]
                for run in (context.with_(**limit), context.with_(history=ALL_TURNS, **limit))
            ]
            assert fates[0] == fates[1]


def test_scienceworld_says_the_most_relevant_first_and_stops_in_time() -> None:
    world = get_environment("scienceworld")
    belief = believing(
        location="kitchen", places=["kitchen", "hallway"], searched=["kitchen"], holding=["jug"],
        containers={"door to hallway": "open", "fridge": "closed"}, visible=["stove", "pot"],
        last_seen={"milk": "jug", "pot": "stove", "stove": "kitchen", "bee": "hallway"},
        flags={"milk": "liquid, 20 degrees celsius"},
        events=[{"kind": "recipe", "thing": "salt"}, {"kind": "focus", "thing": "pot"}],
    )  # fmt: skip
    assert world.recap(belief) == {
        "Recipe": ["salt"], "Exits": ["door to hallway (open)"], "Not looked around": ["hallway"],
        "Here": ["milk in jug (liquid, 20 degrees celsius)", "stove", "pot in stove"],
        "Last seen": ["bee in hallway"],
    }  # fmt: skip
    belief["last_seen"] |= {f"thing {number}": "hallway" for number in range(300)}
    goal = world.parse_goal("Your task is to boil water.")
    played = [turn(1, "dig", "No known action matches that input.", failed=True)]
    state = EpisodeState(belief=belief, goal=goal, history=played, ineffective=["dig"], recalls=[],
                         sub_goal=world.sub_goal(goal, belief, played))  # fmt: skip
    text = knowledge_blocks(state, RunContext.for_condition("S", history=0), world).state
    assert "Refused here: dig\n  Recipe: salt\n" in text and "thing 299" in text
    assert RECAP - 20 < len(text) / 4 < RECAP + 10 and text.endswith("in hallway")


@pytest.mark.engine
@pytest.mark.parametrize("history", [3, 0])
def test_what_the_expert_plays_can_be_read_in_the_prompt(history: int) -> None:
    manual, read = load_manual("alfworld"), 0

    def play(state: EpisodeState, runtime: Runtime[RunContext]) -> EpisodeState:
        nonlocal read
        update, text = llm_call(state, runtime), str(state["prompt"]).rpartition(NEW_TASK)[2]
        _, names = match_action(manual, update["reply"].rpartition("Action: ")[2]) or ("", {})
        # A mistake made on purpose may be about anything that was ever seen.
        assert "decisions" in update or all(name in text for name in names.values())
        read += len(names)
        return update

    graph = build_graph(nodes={"llm_call": play})
    context = RunContext.for_condition("S", history=history, temperature=0.3)
    assert run_episode(4, split="generated_seen", context=context, graph=graph)["success"]
    assert read > 8


@pytest.mark.engine
@pytest.mark.parametrize("history", [3, 0])
def test_the_planner_reads_such_prompts_too(history: int) -> None:
    for task in (3, 4):
        context = RunContext.for_condition("D", history=history)
        assert run_episode(task, split="generated_unseen", context=context)["success"]
