"""What Tier 3 of ScienceWorld says about single actions, on beliefs made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rpms.envs.manuals import load_manual
from rpms.rules import (
    already_done,
    check_action,
    explain_rejection,
    needed_actions,
    simulate,
)
from tests.envs.playing import believing

MANUAL = load_manual("scienceworld")

KITCHEN: dict[str, Any] = {
    "location": "kitchen",
    "holding": ["thermometer"],
    "visible": ["stove", "sink", "cupboard", "fridge", "glass cup", "soap", "red apple"],
    "containers": {"cupboard": "closed", "fridge": "open", "door to hallway": "open",
                   "door to outside": "closed"},
    "last_seen": {"cupboard": "kitchen", "metal pot": "cupboard", "milk": "fridge",
                  "fridge": "kitchen", "axe": "outside"},
    "searched": ["kitchen", "fridge"],
    "flags": {"stove": "turned off", "sink": "activated"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("action", "verdict", "predicates"),
    [
        ("go to hallway", "kept", []),
        ("go to bedroom", "broken", ["adjacent(place)"]),
        # Next door, but the door was seen closed.
        ("go to outside", "broken", ["adjacent(place)"]),
        ("go to door to hallway", "open", ["adjacent(place)"]),
        ("teleport to foundry", "kept", []),
        ("teleport to mars", "broken", ["room(place)"]),
        ("pick up soap", "kept", []),
        ("pick up apple", "kept", []),
        ("pick up stove", "broken", ["not fixed(object)"]),
        ("pick up dragon", "broken", ["visible(object)"]),
        ("pick up axe", "broken", ["visible(object)"]),
        # Seen in there, and it is closed now; in an open one it can be taken.
        ("pick up metal pot", "broken", ["visible(object)"]),
        ("pick up milk", "kept", []),
        # May be a loose name for something in view.
        ("pick up substance in glass cup", "open", ["visible(object)"]),
        ("focus on apple", "kept", []),
        ("move soap to glass cup", "kept", []),
        ("move soap to cupboard", "broken", ["unclosed(place)"]),
        ("move sink to stove", "broken", ["not fixed(object)"]),
        ("pour glass cup into sink", "kept", []),
        ("pour cupboard into sink", "broken", ["unclosed(object)"]),
        ("open cupboard", "kept", []),
        # It stays open: the simulator says so, and does not reject it.
        ("open fridge", "kept", []),
        ("open stove", "broken", ["openable(thing)"]),
        ("open door to outside", "open", ["visible(thing)"]),
        ("close fridge", "kept", []),
        ("activate stove", "kept", []),
        ("activate sink", "kept", []),
        ("activate glass cup", "broken", ["switchable(device)"]),
        ("deactivate sink", "kept", []),
        ("use thermometer in inventory on soap", "kept", []),
        ("mix glass cup", "open", ["combined(place)"]),
        ("look in cupboard", "broken", ["unclosed(thing)"]),
        ("flush sink", "broken", ["kind(thing, toilet)"]),
        ("jump", "open", []),
    ],
)
def test_diagnosis(action: str, verdict: str, predicates: list[str]) -> None:
    diagnosis = check_action(MANUAL, action, believing(**KITCHEN))
    named = [str(need.condition) for need in (*diagnosis.unmet, *diagnosis.unsure)]
    assert (diagnosis.verdict, named) == (verdict, predicates)


def test_a_view_that_is_not_known_denies_nothing() -> None:
    belief = believing(location="kitchen")
    for action in ("pick up dragon", "open cupboard", "activate stove", "focus on water"):
        assert check_action(MANUAL, action, belief).verdict == "open"


def test_what_an_open_container_holds_is_unknown_until_it_was_looked_into() -> None:
    fields = KITCHEN | {"last_seen": {}, "containers": {"cupboard": "open"}}
    unseen = check_action(MANUAL, "pick up metal pot", believing(**fields))
    assert unseen.verdict == "open"
    seen = believing(**fields | {"searched": ["cupboard"]})
    assert check_action(MANUAL, "pick up metal pot", seen).verdict == "broken"


def test_a_recipe_s_ingredients_are_known_to_be_together() -> None:
    together = KITCHEN | {"last_seen": {"sugar": "glass cup", "water": "glass cup"}}
    assert check_action(MANUAL, "mix glass cup", believing(**together)).verdict == "kept"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("pick up stove", "it needs stove to be something that can be moved"),
        (
            "go to bedroom",
            "it needs bedroom to be next door and not shut, and no way leads from "
            "kitchen to bedroom",
        ),
        # All seemed well: the manual knows what the belief cannot.
        ("activate stove", "stove is not in view under this name"),
        ("jump", "it is not one of the available actions"),
    ],
)
def test_why_an_action_was_rejected(action: str, reason: str) -> None:
    assert explain_rejection(MANUAL, action, believing(**KITCHEN)) == reason


def test_advice_is_played_through_in_imagination() -> None:
    plan = ["open cupboard", "pick up metal pot", "move metal pot to sink", "deactivate sink",
            "activate sink", "focus on water", "teleport to foundry", "go to outside"]  # fmt: skip
    belief, verdicts = believing(**KITCHEN), []
    for action in plan:
        verdicts.append(check_action(MANUAL, action, belief).verdict)
        belief = simulate(MANUAL, action, belief)
    # From the first step on nobody knows what has come into view, least of all water.
    assert verdicts == ["kept", "kept", *["open"] * 4, "kept", "broken"]
    assert belief["location"] == "outside" and belief["holding"] == ["thermometer"]
    assert belief["last_seen"]["metal pot"] == "sink" and belief["visible"] == []
    assert belief["flags"] == {"stove": "turned off", "sink": "activated", "water": "focused"}


def test_a_step_whose_effect_holds_already_can_be_left_out() -> None:
    belief = believing(**KITCHEN)
    assert already_done(MANUAL, "open fridge", belief)
    assert already_done(MANUAL, "activate sink", belief)
    assert already_done(MANUAL, "teleport to kitchen", belief)
    assert not already_done(MANUAL, "mix glass cup", belief)
    assert not already_done(MANUAL, "activate stove", belief)


@pytest.mark.parametrize(
    ("actions", "needed"),
    [
        (["go to hallway", "look around", "go to kitchen", "look around", "open cupboard",
          "pick up metal pot"],
         ["go to kitchen", "open cupboard", "pick up metal pot"]),
        # The instrument fetched in another room is needed as much as the way to the target.
        (["teleport to kitchen", "pick up thermometer", "examine stove", "teleport to bathroom",
          "look around", "use thermometer in inventory on soap"],
         ["teleport to kitchen", "pick up thermometer", "teleport to bathroom",
          "use thermometer in inventory on soap"]),
        (["move metal pot to sink", "activate sink", "wait1", "focus on water"],
         ["move metal pot to sink", "activate sink", "focus on water"]),
        (["pour jug into glass cup", "mix glass cup", "look at glass cup", "focus on tea"],
         ["pour jug into glass cup", "mix glass cup", "focus on tea"]),
    ],
)  # fmt: skip
def test_which_steps_were_needed(actions: list[str], needed: list[str]) -> None:
    assert needed_actions(MANUAL, actions) == needed
