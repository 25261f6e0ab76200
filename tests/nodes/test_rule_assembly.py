from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from rpms.nodes import rule_assembly
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext

Play = Callable[..., list[EpisodeState]]

RUNTIME: Any = SimpleNamespace(context=RunContext())


def situations(state: EpisodeState) -> dict[str, str]:
    rules = rule_assembly(state, RUNTIME)["rules"]
    return {line["id"]: line["text"] for line in rules["situation"]}


def ids(state: EpisodeState, tier: str) -> list[str]:
    return [line["id"] for line in rule_assembly(state, RUNTIME)["rules"][tier]]


def test_three_tiers_for_the_goal_type(play_script: Play) -> None:
    state = play_script("B")[0]
    for tier, letter in (("universal", "U"), ("domain", "D"), ("environment", "E")):
        # Ours, or the paper's of this tier and of no other.
        assert {name[:2] for name in ids(state, tier)} <= {f"{letter}-", "O-"}
    assert {"U-STATE-001", "U-FAIL-001"} <= set(ids(state, "universal"))
    assert "D-HEAT-001" in ids(state, "domain")
    assert "O-COOL-001" not in ids(state, "domain")
    other = EpisodeState(**{**state, "goal": {**state["goal"], "type": "look_at_obj_in_light"}})
    assert "D-HEAT-001" not in ids(other, "domain")
    assert "D-EXAM-001" in ids(other, "domain")


def test_the_situation_follows_the_hand(play_script: Play) -> None:
    states = play_script("B")
    assert "S-002" in situations(states[0])
    held = situations(states[-1])
    assert "S-002" not in held
    assert "apple 1" in held["OS-001"]


def test_a_refused_action_is_diagnosed_and_nothing_else(play_script: Play) -> None:
    states = play_script("B")
    refusals = [
        [text for text in situations(state).values() if "was refused" in text] for state in states
    ]
    # Standing at the fridge, the script tries to take an apple from the countertop.
    (line,) = refusals.pop(3)
    assert "take apple 1 from countertop 1" in line and "be at countertop 1" in line
    assert refusals == [[]] * 6
    assert set(rule_assembly(states[0], RUNTIME)) == {"rules"}
