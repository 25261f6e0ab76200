"""What becomes of a proposed action under each mode of the guard."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.graph.run import run_episode
from rpms.guard.procedure import applicable_actions
from rpms.nodes.guard_check import guard_check
from rpms.nodes.prompt_build import SHORTLIST, prompt_build
from rpms.nodes.rule_assembly import rule_assembly
from rpms.nodes.state import EpisodeState, apply_update, decision_point
from rpms.prompts.reply import read_action
from rpms.vocabulary.belief import Belief, empty_belief, fingerprint
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.turn import Choice, Decision, Message, Turn
from tests.scripted_episode import under

Play = Callable[..., list[EpisodeState]]
ENV = get_environment("alfworld")
GOLDEN = Path(__file__).parent / "golden" / "veto.txt"
PLACES = ["cabinet 1", "countertop 1", "fridge 1", "microwave 1", "sofa 1"]


def state(reply: str, in_vain: list[str] | None = None, **fields: Any) -> EpisodeState:
    goal = ENV.parse_goal("put a hot apple in fridge")
    belief = Belief(**{**empty_belief(), "places": PLACES, **fields})  # type: ignore[typeddict-item]
    now = EpisodeState(
        env="alfworld", goal=goal, belief=belief, sub_goal=ENV.sub_goal(goal, belief, []),
        reply=reply, ineffective=in_vain or [], action="", played_in={}, steps=3,
        decisions=[], retries=0,
        prompt=[Message(role="user", content="...")],
    )  # fmt: skip
    now["shortlist"] = shortlist(now)
    return said(now, reply)


def shortlist(now: EpisodeState) -> list[Choice]:
    return applicable_actions(decision_point(now))[:SHORTLIST]


def said(now: EpisodeState, reply: str) -> EpisodeState:
    """The state after this reply."""
    action = read_action(reply, "alfworld", load_manual("alfworld")).action
    return EpisodeState(**{**now, "reply": reply, "action": action})


def judged(mode: str, now: EpisodeState, **settings: Any) -> EpisodeState:
    return guard_check(under(now, RunContext(guard=mode, **settings)))  # type: ignore[arg-type]


def verified(now: EpisodeState, *replies: str, **settings: Any) -> list[Decision]:
    """What becomes of each reply of one step, in turn."""
    now = EpisodeState(**now)
    for reply in replies:
        update = judged("verify", said(now, reply), **settings)
        apply_update(now, update)
    return now["decisions"]


@pytest.mark.parametrize("mode", ["verify", "offer", "procedure"])
def test_a_good_action_passes(mode: str) -> None:
    update = judged(mode, state("Thought: cold.\nAction: go to fridge 1"))
    assert update["action"] == "go to fridge 1"
    (decision,) = update["decisions"]
    assert (decision["verdict"], decision["rule"], decision["step"]) == ("accepted", "", 4)
    assert "prompt" not in update


def test_verify_sends_a_vetoed_action_back_with_the_rule_and_what_would_mend_it() -> None:
    now = state("Action: take apple 1 from fridge 1", location="sofa 1", searched=["sofa 1"])
    update = judged("verify", now)
    assert update["action"] == "" and update["retries"] == 1
    assert update["decisions"][-1]["verdict"] == "retried"
    assert update["decisions"][-1]["repair"] == "first: go to fridge 1"
    *before, answer, question = update["prompt"]
    assert before == now["prompt"]
    assert answer == {"role": "assistant", "content": now["reply"]}
    text = "".join(f"--- {m['role']}\n{m['content']}\n" for m in (answer, question))
    if os.environ.get("RPMS_UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
    assert "\n" not in question["content"]


TAKE, OPEN, HEAT = (f"Action: {action}" for action in (
    "take apple 1 from fridge 1", "open microwave 1", "heat statue 1 with microwave 1",
))  # fmt: skip


@pytest.mark.parametrize(
    ("max_retries", "verdicts"),
    [
        (0, ["overridden"]),
        (1, ["retried", "fallback"]),
        (2, ["retried", "retried", "fallback"]),
    ],
)
def test_how_often_it_is_asked_again_is_a_setting(max_retries: int, verdicts: list[str]) -> None:
    replies = [TAKE, OPEN, HEAT][: max_retries + 1]
    decisions = verified(
        state("", location="sofa 1", searched=["sofa 1"]), *replies, max_retries=max_retries
    )
    assert [decision["verdict"] for decision in decisions] == verdicts
    assert [bool(decision["played"]) for decision in decisions] == [False] * max_retries + [True]


def test_the_guard_never_replaces_an_action_without_asking_again() -> None:
    now = state("", location="sofa 1", searched=["sofa 1"])
    (decision,) = verified(now, TAKE, max_retries=0)
    assert (decision["verdict"], decision["played"]) == ("overridden", TAKE[8:])
    assert decision["reason"]
    # A reply without an action leaves nothing of the model's own to play.
    (silent,) = verified(now, "Hm.", max_retries=0)
    assert (silent["verdict"], silent["played"]) == ("fallback", "go to fridge 1")


def test_the_same_vetoed_action_twice_falls_back_at_once() -> None:
    decisions = verified(
        state("", location="sofa 1", searched=["sofa 1"]), TAKE, TAKE, max_retries=9
    )
    assert [decision["verdict"] for decision in decisions] == ["retried", "fallback"]
    assert decisions[-1]["played"] == "go to fridge 1"


def test_what_was_vetoed_in_an_earlier_step_is_asked_about_again() -> None:
    """Else a model that repeats itself would idle to the last step without being asked."""
    now = state("", ["look"], location="sofa 1", searched=["sofa 1"])
    earlier = verified(now, TAKE)[0]
    now["decisions"] = [Decision(**{**earlier, "step": 3})]  # type: ignore[typeddict-item]
    assert [decision["verdict"] for decision in verified(now, TAKE, TAKE)[1:]] == [
        "retried", "fallback"
    ]  # fmt: skip


def test_a_place_that_rejects_is_at_this_spot_only_if_the_room_has_it() -> None:
    """A rejected walk to a place that does not exist shows nothing about the spot."""
    here: dict[str, Any] = {"location": "sofa 1", "searched": ["sofa 1"]}
    for rejected, first in [("cabinet 1", "look"), ("cabinet 9", "go to fridge 1")]:
        assert shortlist(state("", [f"go to {rejected}"], **here))[0]["action"] == first


def test_judging_knows_what_the_world_refused_since_something_changed() -> None:
    now = state("", ["open fridge 1", "look"])
    now["history"] = [
        Turn(step=step, thought="", action=action, observation="", failed=failed, reply="")
        for step, (action, failed) in enumerate(
            [("take apple 1 from fridge 1", True), ("open fridge 1", True), ("look", False)]
        )
    ]
    assert decision_point(now).rejected == {"open fridge 1"}


def test_what_was_sent_back_is_said_in_the_prompts_that_follow_until_something_changes() -> None:
    """A model that is not told would propose it for ever."""
    now = state("", location="sofa 1", searched=["sofa 1"], holding=["mug 1"])

    def situation_after(*replies: str, in_vain: bool = True) -> list[str]:
        decisions = verified(now, *replies)
        assert decisions[-1]["verdict"] == "fallback"
        after = EpisodeState(**{**now, "decisions": decisions, "history": []})
        after["ineffective"] = [decisions[-1]["played"]] if in_vain else []
        return [line["text"] for line in rule_assembly(after)["rules"]["situation"]]

    *others, said = situation_after(TAKE, TAKE)
    assert said == (
        f"'{TAKE[8:]}' was not carried out: it needs your hand to be empty, and you hold mug 1; "
        "it needs you to be at fridge 1, and you are at sofa 1."
    )
    assert situation_after(TAKE, TAKE, in_vain=False) == others
    assert situation_after("Hm.", "Hm.") == others


def test_what_is_played_then_comes_from_the_models_own_proposals() -> None:
    """A circle can be walked again; else a step towards a proposal; else a search."""
    here: dict[str, Any] = {"location": "sofa 1", "searched": ["sofa 1"]}
    now = state("", **here)
    now["played_in"] = {fingerprint(now["belief"]): ["go to cabinet 1"] * 2}
    circle = verified(now, "Action: go to cabinet 1", TAKE, HEAT)
    assert circle[-1]["played"] == "go to cabinet 1"
    towards = verified(state("", **here), TAKE, HEAT, HEAT)
    assert [decision["verdict"] for decision in towards][-1] == "fallback"
    assert towards[-1]["played"] == "go to fridge 1"
    for reply in (HEAT, "Hm."):
        assert verified(state("", **here), reply, reply)[-1]["played"] == "go to fridge 1"
    tried = state("", ["go to cabinet 1"], **here)  # a walk in vain: it is at this spot
    assert verified(tried, *["Action: go to cabinet 1"] * 2)[-1]["played"] == "examine cabinet 1"


def test_a_stuck_model_searches_on_and_idles_where_all_is_searched() -> None:
    """Idling shows a greedy model the same situation again, to the last step."""
    here: dict[str, Any] = {"location": "sofa 1", "searched": ["sofa 1"]}
    stuck = ["Action: go to sofa 1"] * 2
    assert verified(state("", **here), *stuck)[-1]["played"] == "go to fridge 1"
    at_fridge = state(
        "", location="fridge 1", searched=["sofa 1"], containers={"fridge 1": "closed"}
    )
    assert verified(at_fridge, *["Action: go to fridge 1"] * 2)[-1]["played"] == "open fridge 1"
    all_searched = state("", location="sofa 1")
    all_searched["belief"]["searched"] = [*all_searched["belief"]["places"]]
    assert verified(all_searched, *stuck)[-1]["played"] == "look"


def test_nothing_is_let_go_of_unasked() -> None:
    now = state("", location="countertop 1", searched=["countertop 1"], holding=["mug 1"],
                last_seen={"apple 1": "countertop 1"})  # fmt: skip
    first, second = verified(now, *["Action: take apple 1 from countertop 1"] * 2)
    assert first["repair"] == "first: put mug 1 in/on countertop 1"
    assert (second["verdict"], second["played"]) == ("fallback", "look")


def test_offer_only_notes_what_speaks_against_an_action() -> None:
    update = judged("offer", state("Action: open fridge 1", location="sofa 1"))
    assert update["action"] == "open fridge 1"
    assert update["decisions"][-1]["verdict"] == "overridden"
    assert update["decisions"][-1]["rule"] == "O-ACT-002"


def test_policy_plays_the_nearest_of_the_shortlist() -> None:
    offered = shortlist(state(""))
    assert 1 < len(offered) <= SHORTLIST
    assert all(choice["reason"] and choice["rule"] for choice in offered)
    actions = [choice["action"] for choice in offered]
    update = judged(
        "procedure", state("Action: go to the fridge", location="sofa 1", searched=["sofa 1"])
    )
    assert update["action"] == "go to fridge 1"
    assert update["decisions"][-1]["verdict"] == "replaced"
    free = judged("procedure", state("Action: go to sofa 1", searched=["sofa 1"]))
    assert free["action"] in actions
    assert free["decisions"][-1]["reason"].endswith("serve the current sub-goal")
    for reply in ("", "I would rather not say.", "Action:"):  # nothing could be read
        update = judged("procedure", state(reply))
        assert update["action"] in actions and update["decisions"][-1]["proposal"] == ""


def test_where_the_procedure_has_nothing_only_the_impossible_is_replaced() -> None:
    now = state("Action: examine sofa 1", location="sofa 1")
    now["shortlist"] = []
    assert judged("procedure", now)["action"] == "examine sofa 1"
    now = said(now, "Action: open fridge 1")
    assert judged("procedure", now)["action"] == "look"


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
        assert prompt_build(now)["shortlist"] == []


def test_what_had_no_effect_is_remembered_until_the_belief_changes(play_script: Play) -> None:
    # The third turn is refused, the fourth reply holds no action, the fifth moves.
    refused = "take apple 1 from countertop 1"
    ineffective = [now["ineffective"] for now in play_script("B")]
    assert ineffective == [[], [], [], [refused], [refused, ""], [], []]


def test_a_circle_is_noticed_however_long_it_is(play_script: Play) -> None:
    to_fridge = ("Action: go to fridge 1", "The fridge 1 is closed.")
    to_table = ("Action: go to countertop 1", "On the countertop 1, you see nothing.")
    walk = play_script(
        "D", script=[to_table, to_fridge, to_table, to_fridge, to_table], guard="offer"
    )
    # Twice at the fridge with the table searched, and then at the table with the fridge seen.
    assert walk[5]["belief"] == walk[3]["belief"] != walk[1]["belief"]
    circled = [list(decision_point(now).repeated_here) for now in walk]
    assert circled == [[], [], [], [], ["go to countertop 1"], ["go to fridge 1"]]
    assert [now["ineffective"] for now in walk] == [[]] * 6


@pytest.mark.engine
def test_whatever_is_chosen_from_the_shortlist_wins() -> None:
    """A generated game of every type, in the real engine, and hardly a refused action."""
    contexts = [RunContext.for_condition("E", model=model) for model in ("random", "last")]
    ends = [run_episode(task, context=contexts[task % 2]) for task in range(6)]
    assert len({end["goal"]["type"] for end in ends}) == 6
    assert [end["success"] for end in ends] == [True] * 6
    refused = sum(end["invalid_actions"] for end in ends)
    assert refused / sum(end["steps"] for end in ends) < 0.05


@pytest.mark.engine
def test_verifying_alone_wins_nothing() -> None:
    """Who proposes nothing sensible gets nowhere: the guard searches for it, and does no more."""
    end = run_episode(0, context=RunContext.for_condition("D+verify", model="random", max_steps=6))
    assert not end["success"]
    assert {turn["action"].split()[0] for turn in end["history"]} <= {"look", "go", "open"}
    played = [each for each in end["decisions"] if each["verdict"] == "fallback"]
    assert len(played) >= 3 and len({each["played"] for each in played}) > 1
