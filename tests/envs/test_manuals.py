"""Every stage asks the manual of its run: each test would fail with the one that is shipped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.guard.procedure import applicable_actions
from rpms.models.chat import allowed_syntaxes
from rpms.nodes.arbitration import arbitration
from rpms.nodes.guard_check import guard_check
from rpms.nodes.rule_assembly import rule_assembly
from rpms.nodes.scf import scf
from rpms.nodes.state import EpisodeState, decision_point
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall, new_advice, new_recall
from tests.envs.playing import believing, turn
from tests.scripted_episode import SCRIPT, under

Play = Callable[..., list[EpisodeState]]
ENV = get_environment("alfworld")
GOAL = ENV.parse_goal("put a hot apple in countertop")
PLACES = ["fridge 1", "microwave 1", "countertop 1", "sofa 1"]
# Walking is done with the hands empty here, looking is forbidden, and one can sing.
OWN = {
    "universal": "rules: [{id: U-FAIL-001, text: Never again.}]",
    "domain": """
categories: {orchard: [apple, statue]}
applicable:
  find_object: [{action: sing, because: it helps}]
""",
    "environment": """
actions:
  - id: O-ACT-001
    name: go_to
    syntax: go to {place}
    preconditions: [hand_empty]
    effects: [at(place)]
  - {id: M-SING-001, name: sing, syntax: yodel, preconditions: [], effects: []}
forbidden:
  - {id: M-SING-001, for: [pick_heat_then_place_in_recep], action: look, where: {}}
""",
    "mine": "tier: mine\nrules: [{id: L-001, text: Sing.}]",
}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    for name, text in OWN.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def belief(**fields: Any) -> Belief:
    return believing(places=PLACES, **fields)


def state(now: Belief, **more: Any) -> EpisodeState:
    usual = EpisodeState(
        env="alfworld", goal=GOAL, belief=now, sub_goal=ENV.sub_goal(GOAL, now, []), history=[],
        reply="", action="", ineffective=[], played_in={}, steps=0, decisions=[], prompt=[],
        retries=0, shortlist=[],
    )  # fmt: skip
    return EpisodeState(**{**usual, **more})


def ruled(now: EpisodeState, folder: Path | str, **settings: Any) -> EpisodeState:
    return under(now, RunContext(rules_dir=str(folder), **settings))


def snippet(*actions: str) -> Recall:
    entry = {"type": "success", "state_signature": "holding=apple 1"}
    return new_recall(entry, 1.0, 1, new_advice(list(actions)))


HOLDING = belief(location="fridge 1", holding=["apple 1"])


def test_rule_assembly(own: Path) -> None:
    rules = rule_assembly(ruled(state(HOLDING), own))["rules"]
    assert list(rules) == ["universal", "domain", "environment", "mine", "situation"]
    assert {"id": "U-FAIL-001", "text": "Never again."} in rules["universal"]
    assert rules["mine"] == [{"id": "L-001", "text": "Sing."}]
    plain = rule_assembly(ruled(state(HOLDING), ""))["rules"]
    assert list(plain) == ["universal", "domain", "environment", "situation"]
    rest = rule_assembly(ruled(state(HOLDING), own, without_rules="universal,L-001"))["rules"]
    assert rest["universal"] == rest["mine"] == []


def test_the_diagnosis_of_a_refusal(own: Path) -> None:
    now = state(HOLDING, history=[turn(1, "go to sofa 1", "Nothing happens.", failed=True)])
    lines = [rule_assembly(ruled(now, folder))["rules"]["situation"][-1] for folder in (own, "")]
    assert [(line["id"], line["last_action"]) for line in lines] == [("OS-004", True)] * 2
    assert all(line["text"].startswith("'go to sofa 1' ") for line in lines)
    # With their own manual the hand is in the way; by ours the agent is there already.
    assert ["apple 1" in line["text"] for line in lines] == [True, False]
    silent = rule_assembly(ruled(now, "", without_rules="environment"))["rules"]["situation"]
    assert silent == []


@pytest.mark.parametrize(
    ("actions", "outcome"),
    [
        (["take apple 1 from fridge 1"], "was rejected"),
        (["take apple 1 from fridge 1"] * 2, "was rejected twice"),
        (["take apple 1 from fridge 1"] * 3, "was rejected 3 times"),
        # Others in between count for themselves, and what went before a change not at all.
        (["take apple 1 from fridge 1", "dance", "take apple 1 from fridge 1"],
         "was rejected twice"),
        (["take apple 1 from fridge 1", "+go to fridge 1", "take apple 1 from fridge 1"],
         "was rejected"),
    ],
)  # fmt: skip
def test_a_rejection_says_how_often(actions: list[str], outcome: str) -> None:
    turns = [
        turn(number, action.removeprefix("+"), "Nothing.", failed=not action.startswith("+"))
        for number, action in enumerate(actions, start=1)
    ]
    changed = [number for number, action in enumerate(actions, start=1) if action.startswith("+")]
    vain = [each["action"] for each in turns[max(changed, default=0) :]]
    rules = rule_assembly(ruled(state(HOLDING, history=turns, ineffective=vain), ""))["rules"]
    (line,) = [line for line in rules["situation"] if line.get("last_action")]
    reason = "it needs your hand to be empty, and you hold apple 1"
    assert line["text"].startswith(f"'take apple 1 from fridge 1' {outcome}: {reason}")


def test_which_actions_are_printed_is_a_setting() -> None:
    printed = {}
    for scope in ("goal", "all"):
        rules = rule_assembly(ruled(state(HOLDING), "", rules_scope=scope))["rules"]
        printed[scope] = {line["text"].split()[0] for line in rules["environment"]}
    assert printed["all"] - printed["goal"] == {"close", "cool", "clean", "use", "inventory"}
    assert (
        rule_assembly(ruled(state(HOLDING), ""))["rules"]
        == (rule_assembly(ruled(state(HOLDING), "", rules_scope="goal"))["rules"])
    )


@pytest.mark.parametrize("mine", [True, False])
def test_every_stage_that_judges(mine: bool, own: Path) -> None:
    folder = own if mine else ""
    now = state(HOLDING, recalls=[snippet("go to sofa 1"), snippet("look")])
    filtered, _ = scf(ruled(now, folder, scf="preconditions"))["recalls"]
    assert filtered["dropped_by"] == ("scf" if mine else "")
    walk, look = arbitration(ruled(now, folder))["recalls"]
    assert (walk["dropped_by"], walk["rule"]) == (
        ("arbitration", "O-ACT-001") if mine else ("", "")
    )
    assert (look["dropped_by"], look["rule"]) == (
        ("arbitration", "M-SING-001") if mine else ("", "")
    )
    now = state(belief(), reply="Action: look", action="look")
    choices = applicable_actions(decision_point(ruled(now, folder)))
    offered = [choice["action"] for choice in choices]
    assert ("yodel" in offered) == mine and offered
    (decision,) = guard_check(ruled(now, folder, guard="verify"))["decisions"]
    assert decision["verdict"] == ("retried" if mine else "accepted")
    assert decision["rule"] == ("M-SING-001" if mine else "")


def test_without_a_tier_the_arbiter_has_nothing_to_say() -> None:
    bad = snippet("put apple 1 in/on microwave 1", "take apple 1 from sofa 1")
    lesson = new_recall({"type": "failure"}, 1.0, 1, new_advice(["heat apple 1 with microwave 1"]))
    at_tool = belief(location="microwave 1", holding=["apple 1"],
                     containers={"microwave 1": "open"})  # fmt: skip
    outcomes = {}
    for without in ("", "D-HEAT-001", "domain", "environment", "domain,environment"):
        now = state(at_tool, recalls=[bad, lesson])
        judged = arbitration(ruled(now, "", without_rules=without))["recalls"]
        outcomes[without] = [(each["rule"], each["reason"] or each["warning"]) for each in judged]
    placed = "'put apple 1 in/on microwave 1' is forbidden for this goal"
    taken = ("'take apple 1 from sofa 1' cannot work: it needs you to be at sofa 1, and you are at "
             "microwave 1")  # fmt: skip
    demanded = "the sub-goal heat_object needs 'heat apple 1 with microwave 1'"
    possible = "by the rules 'heat apple 1 with microwave 1' can work now"
    nothing = ("", "")
    # Tier 2 demands, Tier 3 knows what can work; a rule that is left out is not cited.
    assert outcomes == {
        "": [("D-HEAT-001", placed), ("O-ACT-006", demanded)],
        "D-HEAT-001": [("O-ACT-004", taken), ("O-ACT-006", demanded)],
        "domain": [("O-ACT-004", taken), ("O-ACT-006", possible)],
        "environment": [nothing, ("", demanded)],
        "domain,environment": [nothing, nothing],
    }


def test_after_an_action_left_out_nothing_is_imagined() -> None:
    advice = snippet("go to sofa 1", "take mug 1 from sofa 1")
    now = state(HOLDING, recalls=[advice])
    for without, dropped in (("", "arbitration"), ("O-ACT-001", "")):
        (recall,) = arbitration(ruled(now, "", without_rules=without))["recalls"]
        assert recall["dropped_by"] == dropped


def test_the_grammar_of_replies(own: Path) -> None:
    held = [allowed_syntaxes("alfworld", RunContext(rules_dir=folder, constrain="grammar"))
            for folder in (str(own), "")]  # fmt: skip
    assert set(held[0]) - set(held[1]) == {"yodel"}
    off = RunContext(without_rules="environment", constrain="grammar")
    assert allowed_syntaxes("alfworld", off) == held[1]


@pytest.mark.parametrize(("condition", "mine"), [("B", True), ("B", False), ("A", True)])
def test_the_reading_of_replies(condition: str, mine: bool, own: Path, play_script: Play) -> None:
    """A bare line is an action only if it begins like one; no rules are asked where none are on."""
    script = [("Well, then.\nyodel", "Nothing happens."), ("Action: look", "Nothing happens.")]
    *_, last = play_script(condition, script, rules_dir=str(own) if mine else "")
    assert last["history"][0]["action"] == ("yodel" if mine and condition == "B" else "")


def test_an_edited_file_is_read_again(own: Path) -> None:
    first = load_manual("alfworld", str(own))
    assert load_manual("alfworld", str(own)) is first
    file = own / "mine.yaml"
    file.write_text(OWN["mine"].replace("Sing.", "Shout loudly."))
    os.utime(file, ns=(1, 1))
    assert load_manual("alfworld", str(own)).extra["mine"][0].text == "Shout loudly."
    assert load_manual("alfworld") is load_manual("alfworld", "", "")


@pytest.mark.parametrize("without", ["universal", "domain", "environment"])
def test_an_episode_runs_without_any_one_tier(without: str, play_script: Play) -> None:
    script = [step for step in SCRIPT if step[1]]  # the guard plays something for the others too
    titles = {"universal": "Universal Principles", "domain": "Domain Knowledge",
              "environment": "Environment-Specific"}  # fmt: skip
    for condition, guard in (("D", "off"), ("E", "procedure")):
        states = play_script(
            condition, script, without_rules=without, scf="preconditions", guard=guard
        )
        assert len(states) == len(script) + 1
        for now in states:
            assert now["rules"][without] == []
            text = "\n".join(message["content"] for message in now["prompt"])
            assert [title in text for title in titles.values()] == [n != without for n in titles]


def test_without_all_tiers_there_is_no_block_of_rules(play_script: Play) -> None:
    (first, *_) = play_script("B", without_rules="universal,domain,environment")
    assert "[RULES" not in "\n".join(message["content"] for message in first["prompt"])
