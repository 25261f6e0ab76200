"""Prompts with the last turns only: what goes, what the state says instead, who can play by it."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil
from typing import Any, cast

import pytest
from langchain_core.language_models import GenericFakeChatModel

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.evals.running.expert import llm_call
from rpms.graph import build_graph, run_episode
from rpms.nodes import make_prompt_build, memory_selection
from rpms.nodes.state import EpisodeState, knowledge_of
from rpms.prompts.blocks import RECAP, Knowledge, knowledge_blocks
from rpms.prompts.context_budget import MARGIN, estimate, left_out
from rpms.prompts.examples import LEFT_OUT, NEW_TASK, excerpt, list_once, load_examples
from rpms.rules import ActiveRules, match_action
from rpms.vocabulary.context import ALL_TURNS, RunContext
from rpms.vocabulary.turn import Message
from tests.envs.playing import believing, turn
from tests.scripted_episode import under

Play = Callable[..., list[EpisodeState]]
NO_RULES = ActiveRules(universal=[], domain=[], environment=[], situation=[])


def build(
    state: EpisodeState, condition: str, context_tokens: int = 0, **settings: Any
) -> list[Message]:
    context = RunContext.for_condition(condition, **settings)
    model = GenericFakeChatModel(messages=iter(()))
    model.profile = {"max_input_tokens": context_tokens}
    before = {**under(state, context), "prompt": [], "usage": None}
    return cast(Any, make_prompt_build(model)(cast(EpisodeState, before))["prompt"])


def limit_for(prompt: list[Message]) -> int:
    """The least context length that has space for a prompt beside the reply."""
    reply = get_environment("alfworld").max_tokens
    return reply + ceil((sum(map(estimate, prompt)) + 12) / (1 - MARGIN))


@pytest.mark.parametrize("layout", ["paper", "cache_friendly"])
@pytest.mark.parametrize("condition", "SD")
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
    shorter = build(state, condition, layout=layout, history=3)
    limit = limit_for(shorter)
    tight = build(state, condition, layout=layout, history=5, context_tokens=limit)
    assert tight[head:] == shorter[head:]
    assert tight[head - 1]["content"].count(left_out(turns - 3)) == 1


@pytest.mark.parametrize("condition", ["A", "A+verify", "S", "B", "C", "D"])
def test_whoever_has_fewer_turns_has_a_state_block_for_the_others(
    condition: str, play_script: Play
) -> None:
    """The baseline has no such block, so that it keeps all its turns: no amnesia."""
    state = play_script(condition[0])[-1]  # the script has no answer for a guard
    whole, turns = build(state, condition), len(state["history"])
    for history in (3, 0):
        cut = build(state, condition, history=history)
        recapped = any("[Current State]" in message["content"] for message in cut)
        hidden = RunContext.for_condition(condition, history=history).hidden_turns(turns)
        assert recapped == (hidden > 0) == (condition[0] != "A")
        unchanged = cut == whole  # whole prompts in a failed comparison would be compared for hours
        assert unchanged == (condition[0] == "A")
    limit = limit_for([*whole[:-2], whole[-1]])
    tight = build(state, condition, history=0, context_tokens=limit)
    assert len(tight) < len(whole), "the model's context is a limit for all"


def test_the_state_says_what_was_rejected_and_what_is_here(play_script: Play) -> None:
    """Before a turn is hidden it says no more than ever, and memory does not depend on it."""
    states, context = play_script("D"), RunContext.for_condition("D", history=2)
    lines = [
        knowledge_blocks(knowledge_of(under(state, context))).state.splitlines() for state in states
    ]
    for state, shown in zip(states[:3], lines, strict=False):
        assert "\n".join(shown) in "\n".join(m["content"] for m in state["prompt"])
    assert "  Rejected here (Nothing happens): take apple 1 from countertop 1" in lines[3]
    assert "  Here: lettuce 1, mug 1" in lines[4]
    assert not [line for line in lines[5] if "Rejected" in line] and "  Here: knife 1" in lines[6]
    for state in states:
        outcomes = [
            [recall["dropped_by"] for recall in memory_selection(under(state, run))["recalls"]]
            for run in (context, context.with_(history=ALL_TURNS))
        ]
        assert outcomes[0] == outcomes[1]


SEEDS = """This room is called the greenhouse. In it, you see:
\tthe agent
\ta substance called air
\ta flower pot 1 (containing a pea plant in the adult stage with a short height, soil)
\ta flower pot 2 (containing a pea plant in the seedling stage with a tall height, soil)
\ta jug (containing nothing)
You also see:
\tA door to the hallway (that is open)"""


def test_scienceworld_says_the_most_relevant_first_and_stops_in_time() -> None:
    world = get_environment("scienceworld")
    belief = believing(
        location="kitchen", places=["kitchen", "hallway"], searched=["kitchen"], holding=["jug"],
        containers={"door to hallway": "open", "fridge": "closed", "closet": "closed"},
        visible=["air", "stove", "pot"],
        last_seen={"milk": "jug", "pot": "stove", "stove": "kitchen", "bee": "hallway",
                   "closet": "hallway", "coat": "bed"},
        flags={"milk": "liquid, 20 degrees celsius", "task": "Your task is to boil milk.",
               "jug": "5 degrees celsius"}, progress=2,
        events=[{"kind": "recipe", "thing": "salt"}, {"kind": "focus", "thing": "milk"}],
    )  # fmt: skip
    assert [*world.recap(belief).items()] == [
        ("Recipe", ["salt"]), ("Exits", ["hallway"]),
        ("Not looked around", ["hallway"]),
        ("Seen here", ["jug (5 degrees celsius when last measured)",
                  "milk in jug (liquid, 20 degrees celsius when last measured)", "pot in stove"]),
        ("Seen in an unknown place", ["coat in bed"]),
        ("Seen in hallway", ["bee", "closet (closed)"]),
    ]  # fmt: skip
    belief["last_seen"] |= {f"thing {number}": "hallway" for number in range(300)}
    goal = world.parse_goal("Your task is to boil water.")
    unclear = "It's not clear how to read that."
    played = [turn(1, "read pot", unclear, failed=True), turn(2, "wait", "You wait."),
              *(turn(n, "dig", "No known action matches that input.", failed=True) for n in (3, 4)),
              turn(5, "read stove", unclear, failed=True)]  # fmt: skip
    context = RunContext.for_condition("S", history=0)
    sub_goal = world.sub_goal(goal, belief, played)
    text = knowledge_blocks(
        Knowledge(world, context, goal, sub_goal, belief, NO_RULES, [], played, ["?"] * 5)
    ).state
    assert (
        "  Rejected here (It's not clear how to read that): read stove, read pot\n"
        "  Rejected here (No known action matches that input): dig\n  Recipe: salt"
    ) in text
    assert RECAP - 10 < len(text) / 4 <= RECAP and not text.endswith(":")


def test_the_baseline_of_scienceworld_reads_its_whole_example_and_every_listing() -> None:
    world = get_environment("scienceworld")
    goal = world.parse_goal("Your task is to boil water.")
    belief, played = (
        believing(location="greenhouse"),
        [turn(number, "look around", SEEDS) for number in range(1, 6)],
    )
    state = EpisodeState(
        env="scienceworld", split="train", belief=belief, goal=goal, history=played,
        first_observation=f"Your task is to boil water.\n\n{SEEDS}", ineffective=["?"] * 5,
        recalls=[], rules=NO_RULES, sub_goal=world.sub_goal(goal, belief, played), commands=[],
    )  # fmt: skip
    whole = build(state, "A")
    unchanged = build(state, "A", history=3) == whole
    assert unchanged and str(whole).count("flower pot 2") == 6
    assert LEFT_OUT.strip() in str(build(state, "S", history=3)) and LEFT_OUT not in str(whole)


def test_things_of_one_name_are_told_apart_until_one_of_them_is_moved() -> None:
    world = get_environment("scienceworld")
    belief = world.first_belief(SEEDS)
    plants = ["pea plant in flower pot 2 (seedling stage, tall height)",
              "pea plant in flower pot 1 (adult stage, short height)"]  # fmt: skip
    soil = ["soil in flower pot 2", "soil in flower pot 1"]
    assert sorted(world.recap(belief)["Seen here"]) == sorted([*plants, *soil, "jug"])
    grown = "a flower pot 1 (containing a pea plant in the reproducing stage, soil)"
    belief = world.update_belief(belief, "look at flower pot 1", grown)
    assert "pea plant in flower pot 1 (reproducing stage)" in world.recap(belief)["Seen here"]
    assert plants[0] in world.recap(belief)["Seen here"]
    moved = "You move the pea plant to the inventory."
    here = world.recap(world.update_belief(belief, "pick up pea plant in flower pot 1", moved))
    assert not [text for text in here["Seen here"] if "plant in flower pot 1" in text]
    assert soil[1] in here["Seen here"]
    away = world.update_belief(belief, "go to hallway", "You move to the hallway.")
    assert not away["alike"] and world.recap(away)["Seen here"] == []


def test_examples_list_what_they_use_and_a_room_is_listed_once() -> None:
    world, manual = get_environment("scienceworld"), load_manual("scienceworld")
    for kind in world.goal_types():
        example = load_examples(world.prompts, kind, 1)
        short = excerpt(example, manual)
        # Doors that are opened one after another, and waiting on and on, are shown once.
        assert len(example) - len(short) == {"F3": 6, "F4": 4}.get(kind, 0)
        rest = iter(example)
        for message in short:
            heading = message["content"].partition("\n")[0]
            whole = next(w for w in rest if w["content"].startswith(heading))
            lines = [line for line in message["content"].split("\n") if line != LEFT_OUT]
            assert message["role"] == whole["role"] and {*lines} <= {*whole["content"].split("\n")}
            assert [line for line in lines if "\t" not in line] == [
                line for line in whole["content"].split("\n") if "\t" not in line
            ]
        used = {
            "F1": "\ta red box",
            "F2": "\tunknown substance B",
            "F3": "metal pot (",
            "F4": "0:\t",
        }
        assert used[kind] in "\n".join(message["content"] for message in short)
        assert sum(map(estimate, short)) < 0.7 * sum(map(estimate, example))
    looks = [turn(1, "look around", SEEDS), turn(2, "wait", "You wait."),
             turn(3, "look around", f"{SEEDS}\n")]  # fmt: skip
    heading = SEEDS.partition("\n")[0]
    shown = [turn["observation"] for turn in list_once(looks, recapped=False)]
    assert shown == [f"{heading}\n{LEFT_OUT}", "You wait.", f"{SEEDS}\n"]
    told = list_once([looks[2], *looks[:2]], recapped=True)
    assert [turn["observation"].strip() for turn in told] == [*[shown[0]] * 2, "You wait."]
    assert looks[0]["observation"] == SEEDS


@pytest.mark.engine
@pytest.mark.parametrize(
    ("env", "split", "task"),
    [
        ("alfworld", "generated_seen", "4"),
        ("scienceworld", "train_mini", "identify-life-stages-2/0"),
        ("scienceworld", "train_mini", "grow-plant/0"),
        ("scienceworld", "train_mini", "measure-melting-point-known-substance/0"),
    ],
)
def test_what_the_expert_plays_can_be_read_in_the_prompt(env: str, split: str, task: str) -> None:
    manual, read = load_manual(env), 0

    def play(state: EpisodeState) -> EpisodeState:
        nonlocal read
        update = llm_call(state)
        _, names = match_action(manual, update["reply"].rpartition("Action: ")[2]) or ("", {})
        words = [word for name in names.values() for word in re.split(" in (?:the )?", name)]
        for history in (3, 0):
            text = str(build(state, "S", history=history)).rpartition(NEW_TASK)[2]
            # A mistake made on purpose may be about anything that was ever seen.
            assert "decisions" in update or [word for word in words if word not in text] == []
        read += len(names)
        return update

    graph = build_graph(nodes={"llm_call": play})
    context = RunContext.for_condition("S", history=3, temperature=0.3 if env == "alfworld" else 0)
    assert run_episode(task, env=env, split=split, context=context, graph=graph)["success"]
    assert read > 4


@pytest.mark.engine
@pytest.mark.parametrize("history", [3, 0])
def test_the_planner_reads_such_prompts_too(history: int) -> None:
    for task in (3, 4):
        context = RunContext.for_condition("D", history=history)
        assert run_episode(task, split="generated_unseen", context=context)["success"]
