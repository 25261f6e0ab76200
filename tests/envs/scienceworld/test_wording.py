from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.scienceworld.adapter import read_action
from rpms.rules import load_manual
from rpms.rules.semantics import match_action

MANUAL = load_manual("scienceworld")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("look", "look around"),
        ("Look around the room.", "look around"),
        ("look inside the fridge", "look in fridge"),
        ("inspect table", "examine table"),
        ("go to door to kitchen", "go to kitchen"),
        ("Go through the door to the art studio", "go to art studio"),
        ("walk to the living room", "go to living room"),
        ("go hallway", "go to hallway"),
        ("enter the greenhouse", "go to greenhouse"),
        ("teleport kitchen", "teleport to kitchen"),
        ("teleport to the art studio", "teleport to art studio"),
        ("take the thermometer", "pick up thermometer"),
        ("pick the metal pot up", "pick up metal pot"),
        ("grab orange in bowl", "pick up orange in bowl"),
        ("drop orange", "put down orange"),
        ("put the orange down", "put down orange"),
        ("put metal pot on stove", "move metal pot to stove"),
        ("place orange in bowl into red box", "move orange in bowl to red box"),
        ("move orange in bowl to table", "move orange in bowl to table"),
        ("move pot into the freezer", "move pot to freezer"),
        ("pour metal pot in glass cup", "pour metal pot into glass cup"),
        ("pour the contents of the jug into the flower pot 2", "pour jug into flower pot 2"),
        ("dunk cup in water", "dunk cup into water"),
        ("turn on the stove", "activate stove"),
        ("turn the stove off", "deactivate stove"),
        ("focus the water", "focus on water"),
        ("mix contents of metal pot", "mix metal pot"),
        ("check inventory", "inventory"),
        ("wait 1", "wait1"),
        ("wait 10 ticks", "wait"),
        ("0", "0"),
        ("focus on unknown substance B", "focus on unknown substance B"),
        ("use thermometer in inventory on substance in metal pot",
         "use thermometer in inventory on substance in metal pot"),
        ("reset task", "reset task"),
    ],
)  # fmt: skip
def test_loose_wordings_become_the_manuals(said: str, meant: str) -> None:
    assert read_action(said) == meant


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
