"""The manual's wording of actions, and the keys that memories are filed under."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.manuals import load_manual
from rpms.envs.scienceworld.adapter import ENVIRONMENT, read_action
from rpms.rules.verdicts import match_action

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


def test_compat_compares_the_room() -> None:
    compat_key = ENVIRONMENT.keys.compat
    assert compat_key("room=kitchen|inventory=empty|progress=0") == "kitchen"
    assert compat_key("room=kitchen|inventory=pot|progress=2") == "kitchen"
    assert compat_key("room=outside|inventory=empty|progress=0") == "outside"


def test_a_goal_is_filed_under_its_verb_in_place_of_a_destination() -> None:
    assert ENVIRONMENT.keys.goal("F3:melt:water") == ("F3", "water", "melt")
