"""The paper's three conditions for ScienceWorld, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld.adapter import (
    ENVIRONMENT,
    compat,
    needed_instrument,
    read_action,
    requirements,
)
from rpms.rules.semantics import match_action
from rpms.vocabulary.belief import Belief, empty_belief

MANUAL = load_manual("scienceworld")


@given(st.data())
def test_the_manuals_own_wording_stays_as_it_is(data: st.DataObject) -> None:
    rule = data.draw(st.sampled_from(MANUAL.actions))
    names = st.sampled_from(["stove", "metal pot", "orange in bowl", "living room", "cup 2"])
    action = rule.syntax.format(**{name: data.draw(names) for name in rule.parameters})
    assert read_action(action) == action
    matched = match_action(MANUAL, action)
    assert matched is not None and matched[0].name == rule.name


@given(st.text())
def test_any_text_is_read_and_reading_twice_changes_nothing(text: str) -> None:
    once = read_action(text)
    assert read_action(once) == once or not once


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
    schema = {"type": "schema", "action_template": "mix {place}"}
    assert compat(schema, standing("outside")) == ""  # recorded in no particular state


@pytest.mark.parametrize(("recorded", "now", "fits"), [
    (0, 0, True), (0, 4, True), (3, 2, True), (3, 1, False), (5, 0, False),
])  # fmt: skip
def test_progress_may_lie_at_most_one_step_ahead(recorded: int, now: int, fits: bool) -> None:
    memory = entry(f"room=kitchen|inventory=empty|progress={recorded}")
    assert (compat(memory, standing(step=now)) == "") is fits


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
