"""The paper's three conditions for ScienceWorld, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from rpms.envs.scienceworld.adapter import ENVIRONMENT, compat, needed_instrument, requirements
from rpms.vocabulary.belief import Belief, empty_belief

MEASURE = ["use thermometer in inventory on water"]


def standing(room: str | None = "kitchen", carried: tuple[str, ...] = (), step: int = 0) -> Belief:
    belief = empty_belief()
    belief.update(location=room, holding=list(carried), progress=step)
    return belief


def entry(state: str, actions: list[str] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "success", "state_signature": state}
    if actions is not None:
        found["actions"] = actions
    return found


def test_an_instrument_that_is_used_has_to_be_carried() -> None:
    memory = entry("room=kitchen|inventory=thermometer|progress=0", MEASURE)
    assert compat(memory, standing()) == "needs the thermometer, which is not carried"
    assert compat(memory, standing(carried=("orange", "thermometer"))) == ""


def test_an_instrument_that_the_advice_fetches_itself_need_not_be() -> None:
    fetched = ["pick up thermometer", *MEASURE]
    assert compat(entry("room=kitchen|inventory=empty|progress=0", fetched), standing()) == ""
    assert needed_instrument(fetched) == ""
    assert needed_instrument(["use shovel on ground"]) == "shovel"


def test_the_room_has_to_be_the_same() -> None:
    memory = entry("room=kitchen|inventory=empty|progress=0")
    assert compat(memory, standing("kitchen")) == ""
    assert compat(memory, standing("hallway")) == "recorded in the kitchen, in the hallway now"
    assert compat(entry("room=unknown|inventory=empty|progress=0"), standing("hallway")) == ""


@pytest.mark.parametrize(("recorded", "now", "fits"), [
    (0, 0, True), (0, 4, True), (3, 2, True), (3, 1, False), (5, 0, False),
])  # fmt: skip
def test_progress_may_lie_at_most_one_step_ahead(recorded: int, now: int, fits: bool) -> None:
    memory = entry(f"room=kitchen|inventory=empty|progress={recorded}")
    assert (compat(memory, standing(step=now)) == "") is fits


def test_the_papers_critical_failure_is_kept_in_its_room() -> None:
    memory = {"type": "critical_failure", "failed_action": "focus on stove",
              "state_signature": "room=kitchen|inventory=empty|progress=0"}  # fmt: skip
    assert compat(memory, standing("kitchen", ("orange",))) == ""
    assert compat(memory, standing("workshop")) != ""


def test_schemas_fit_any_state() -> None:
    assert compat({"type": "schema", "action_template": "mix {place}"}, standing("outside")) == ""


def test_what_a_snippet_writes_down_is_what_compat_asks_for() -> None:
    belief = standing("foundry", ("thermometer",), 4)
    assert requirements(belief, MEASURE) == {
        "instrument": "thermometer", "room": "foundry", "progress": 4,
    }  # fmt: skip
    assert requirements(belief, ["activate stove"])["instrument"] is None


def test_compat_compares_the_room() -> None:
    compat_key = ENVIRONMENT.keys.compat
    assert compat_key("room=kitchen|inventory=empty|progress=0") == "kitchen"
    assert compat_key("room=kitchen|inventory=pot|progress=2") == "kitchen"
    assert compat_key("room=outside|inventory=empty|progress=0") == "outside"


def test_a_goal_is_filed_under_its_verb_in_place_of_a_destination() -> None:
    assert ENVIRONMENT.keys.goal("F3:melt:water") == ("F3", "water", "melt")
