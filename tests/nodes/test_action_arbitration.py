"""What becomes of a proposed action under each mode of the guard."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.graph.run import run_episode
from rpms.nodes.action_arbitration import SHORTLIST, action_arbitration, shortlist, situation
from rpms.nodes.context import RunContext
from rpms.nodes.prompt_build import prompt_build
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.turn import Message

Play = Callable[..., list[EpisodeState]]
ENV = get_environment("alfworld")
PLACES = ["cabinet 1", "countertop 1", "fridge 1", "microwave 1", "sofa 1"]


def state(reply: str, in_vain: list[str] | None = None, **fields: Any) -> EpisodeState:
    goal = ENV.parse_goal("put a hot apple in fridge")
    belief = Belief(**{**empty_belief(), "places": PLACES, **fields})  # type: ignore[typeddict-item]
    found = EpisodeState(
        env="alfworld", goal=goal, belief=belief, sub_goal=ENV.sub_goal(goal, belief, []),
        reply=reply, ineffective=in_vain or [], action="", played_in={}, steps=3,
        decisions=[], asked_again=False,
        prompt=[Message(role="user", content="...")],
    )  # fmt: skip
    found["shortlist"] = shortlist(found, RunContext())
    return found


def judged(mode: str, now: EpisodeState) -> EpisodeState:
    runtime: Any = SimpleNamespace(context=RunContext(guard=mode))  # type: ignore[arg-type]
    return action_arbitration(now, runtime)


@pytest.mark.parametrize("mode", ["reask", "shortlist", "constrain"])
def test_a_good_action_passes(mode: str) -> None:
    update = judged(mode, state("Thought: cold.\nAction: go to fridge 1"))
    assert update["action"] == "go to fridge 1"
    (decision,) = update["decisions"]
    assert (decision["verdict"], decision["rule"], decision["step"]) == ("accepted", "", 4)
    assert "prompt" not in update


def test_reask_sends_a_vetoed_action_back_once_with_the_rule() -> None:
    now = state("Action: take apple 1 from fridge 1", location="sofa 1")
    update = judged("reask", now)
    assert update["action"] == "" and update["asked_again"]
    assert update["decisions"][-1]["verdict"] == "asked_again"
    *_, said, question = update["prompt"]
    assert said == {"role": "assistant", "content": now["reply"]}
    assert question["content"].startswith("Not played [O-ACT-004]: 'take apple 1 from fridge 1'")
    assert "be at fridge 1" in question["content"]
    again = EpisodeState(**{**now, **update})
    insisted = judged("reask", again)
    assert insisted["action"] == "take apple 1 from fridge 1"
    assert insisted["decisions"][-1]["verdict"] == "insisted"


def test_shortlist_only_notes_what_speaks_against_an_action() -> None:
    update = judged("shortlist", state("Action: open fridge 1", location="sofa 1"))
    assert update["action"] == "open fridge 1"
    assert update["decisions"][-1]["rule"] == "O-ACT-002"


def test_constrain_plays_the_nearest_of_the_shortlist() -> None:
    update = judged(
        "constrain", state("Action: go to the fridge", location="sofa 1", searched=["sofa 1"])
    )
    assert update["action"] == "go to fridge 1"
    assert update["decisions"][-1]["verdict"] == "replaced"
    free = judged("constrain", state("Action: go to sofa 1", searched=["sofa 1"]))
    assert free["action"] in [choice["action"] for choice in shortlist(state(""), RunContext())]
    assert free["decisions"][-1]["reason"].endswith("serve the current sub-goal")


@pytest.mark.parametrize("reply", ["", "I would rather not say.", "Action:"])
def test_constrain_plays_something_even_if_nothing_could_be_read(reply: str) -> None:
    update = judged("constrain", state(reply))
    assert update["action"] in [choice["action"] for choice in shortlist(state(""), RunContext())]
    assert update["decisions"][-1]["proposal"] == ""


def test_where_the_procedure_has_nothing_only_the_impossible_is_replaced() -> None:
    now = state("Action: examine sofa 1", location="sofa 1")
    now["shortlist"] = []
    assert judged("constrain", now)["action"] == "examine sofa 1"
    now["reply"] = "Action: open fridge 1"
    assert judged("constrain", now)["action"] == "look"


def test_the_shortlist_is_short_and_every_entry_has_a_reason() -> None:
    offered = shortlist(state(""), RunContext())
    assert 1 < len(offered) <= SHORTLIST
    assert all(choice["reason"] and choice["rule"] for choice in offered)


@pytest.mark.parametrize("layout", ["paper", "cache_friendly"])
def test_the_prompt_carries_the_shortlist_next_to_the_observation(
    layout: str, play_script: Play
) -> None:
    plain = play_script("D", layout=layout)[4]
    guarded = play_script("D", layout=layout, guard="offer")[4]
    last = guarded["prompt"][-1]["content"]
    lines = [f"  {n}. {c['action']} ({c['reason']})" for n, c in enumerate(guarded["shortlist"], 1)]
    block = "\n".join(["[Actions That Serve the Current Sub-Goal]", *lines])
    assert guarded["shortlist"] and f"{block}\n\n{guarded['observation']}" in last
    guarded["prompt"][-1]["content"] = last.replace(f"{block}\n\n", "")
    assert guarded["prompt"] == plain["prompt"]


def test_with_the_guard_off_nothing_is_decided(play_script: Play) -> None:
    for now in play_script("D"):
        assert (now["decisions"], now["shortlist"], now["action"]) == ([], [], "")
        again = prompt_build(now, SimpleNamespace(context=RunContext()))  # type: ignore[arg-type]
        assert "shortlist" in again and again["shortlist"] == []


def test_what_was_played_in_vain_is_remembered_until_the_belief_changes(play_script: Play) -> None:
    vain = [now["ineffective"] for now in play_script("B")]
    # The third turn is refused, the fourth reply holds no action, the fifth moves.
    assert vain == [[], [], [], ["take apple 1 from countertop 1"],
                    ["take apple 1 from countertop 1", ""], [], []]  # fmt: skip


def test_a_circle_is_noticed_however_long_it_is(play_script: Play) -> None:
    to_fridge = ("Action: go to fridge 1", "The fridge 1 is closed.")
    to_table = ("Action: go to countertop 1", "On the countertop 1, you see nothing.")
    walk = play_script(
        "D", script=[to_table, to_fridge, to_table, to_fridge, to_table], guard="offer"
    )
    # Twice at the fridge with the table searched, and then at the table with the fridge seen.
    assert walk[5]["belief"] == walk[3]["belief"] != walk[1]["belief"]
    circled = [list(situation(now, RunContext()).circled) for now in walk]
    assert circled == [[], [], [], [], ["go to countertop 1"], ["go to fridge 1"]]
    assert [now["ineffective"] for now in walk] == [[]] * 6


@pytest.mark.engine
@pytest.mark.parametrize("model", ["first", "random", "last"])
def test_whatever_is_chosen_from_the_shortlist_wins(model: str) -> None:
    """Two generated games of every type, in the real engine, and hardly a refused action."""
    context = RunContext.for_condition("E", model=model)
    ends = [run_episode(task, context=context) for task in range(12)]
    assert len({end["goal"]["type"] for end in ends}) == 6
    assert [end["success"] for end in ends] == [True] * 12
    refused = sum(end["invalid_actions"] for end in ends)
    assert refused / sum(end["steps"] for end in ends) < 0.05
