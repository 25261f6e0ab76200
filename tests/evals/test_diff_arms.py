"""Arms at the same states of an erring player: every mechanism changes some prompts."""

from __future__ import annotations

import json
from operator import add
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage

import rpms.nodes
from rpms.evals.running.arms import Arm
from rpms.evals.running.diff_arms import diff_arms
from rpms.graph.build import RpmsGraph, build_graph
from rpms.nodes.goal_retrieval import make_goal_retrieval
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.command_line import in_process

D = RunContext()
PAIRS: dict[str, RunContext] = {
    "none": D.with_(arbitration="none"),
    "soft": D.with_(arbitration="soft"),
    "hard": D.with_(arbitration="hard"),
    "no filter": D.with_(scf="off"),
    "extras": D.with_(arbitration_extras=True),
    "recorded": D.with_(memory_form="recorded"),
}


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_no_mechanism_is_without_effect_in_both_worlds() -> None:
    arms: dict[str, Arm] = {"D": D, **PAIRS}
    homes = diff_arms(arms, "alfworld", limit=12)
    rooms = diff_arms(arms, "scienceworld", limit=4, max_steps=15)
    for home, room in zip(homes, rooms, strict=True):
        assert home.states > 100 and room.states > 30
        assert home.differing + room.differing > 0, home.second


def test_an_arm_does_not_differ_from_itself_and_each_difference_has_an_example() -> None:
    arms: dict[str, Arm] = {"D": D, "again": D, "C": RunContext.for_condition("C")}
    same, other = diff_arms(arms, "alfworld", limit=2)
    assert (same.differing, same.example) == (0, [])
    assert other.differing == other.states > 5
    assert any(line.startswith("-[RULES") for line in other.example) and other.where


def test_the_command_prints_shares_and_refuses_one_arm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rpms = in_process(monkeypatch, capsys)
    found = rpms("diff-arms", "D", "none:arbitration=none", "--limit", "1", "--json")
    (pair,) = json.loads(found.out)
    assert (pair["first"], pair["second"]) == ("D", "none") and pair["states"] > 2
    assert pair["share"] == pair["differing"] / pair["states"]
    refused = rpms("diff-arms", "D")
    assert refused.code == 2 and "two or more arms" in refused.err


def everything_alike() -> RpmsGraph:
    return build_graph({"goal_retrieval": make_goal_retrieval(lambda goal, other: 1.0)}, context=D)


def noted() -> RpmsGraph:
    """D with a node before the prompt and one after the step, whose key the first one prints."""

    class Counting(EpisodeState):
        acted: Annotated[list[str], add]

    def act(state: Counting) -> dict[str, list[str]]:
        return {"acted": [state["history"][-1]["action"]]}

    def mark(state: Counting) -> dict[str, Any]:
        marked = HumanMessage(f"{len(state['acted'])} actions so far")
        return {"prompt": [*state["prompt"], marked] if state["acted"] else state["prompt"]}

    return build_graph(
        after={"env_step": act, "prompt_build": mark}, state_schema=Counting, context=D
    )


def stubborn() -> RpmsGraph:
    return build_graph(before={"env_step": lambda state: {"action": "look"}}, context=D)


def unchanged() -> RpmsGraph:
    return build_graph({"scf": rpms.nodes.scf}, context=D.with_(guard="procedure"))


def test_a_graph_builds_its_prompts_with_its_own_nodes() -> None:
    arms: dict[str, Arm] = {"D": D, "alike": everything_alike, "noted": noted, "same": unchanged,
                            "procedure": D.with_(guard="procedure")}  # fmt: skip
    alike, with_key, same, procedure = diff_arms(arms, "alfworld", limit=2)
    assert alike.differing and alike.states > 5
    assert with_key.differing == with_key.states - 2  # not at the first step of a task
    assert "+1 actions so far" in with_key.example
    assert same.differing == procedure.differing > 0
    (reverse,) = diff_arms({"noted": noted, "D": D}, "alfworld", limit=2)
    assert reverse.differing == with_key.differing


def test_a_graph_that_shares_no_states_is_refused() -> None:
    with pytest.raises(RpmsError, match="'stubborn' does not execute the actions of arm 'D'"):
        diff_arms({"D": D, "stubborn": stubborn}, "alfworld", limit=1)
    broken = build_graph({"scf": lambda state: {"recalls": state["nothing"]}}, context=D)
    with pytest.raises(RpmsError, match="'broken': KeyError"):
        diff_arms({"D": D, "broken": broken}, "alfworld", limit=1)
