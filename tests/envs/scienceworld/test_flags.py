from __future__ import annotations

import pytest

from rpms.envs.scienceworld.things import FOCUS, RECIPE, add_event, events, same_thing, split_phase
from rpms.vocabulary.belief import empty_belief


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tin", ("tin", "")),
        ("liquid tin", ("tin", "liquid")),
        ("gaseous tin", ("tin", "gas")),
        ("solid unknown substance Y", ("unknown substance Y", "solid")),
        ("ice", ("water", "solid")),
        ("water", ("water", "liquid")),
        ("steam", ("water", "gas")),
        ("ice cream", ("ice cream", "")),
    ],
)
def test_the_phase_is_split_off_the_name(name: str, expected: tuple[str, str]) -> None:
    assert split_phase(name) == expected


@pytest.mark.parametrize(
    ("name", "target", "same"),
    [
        ("liquid tin", "tin", True),
        ("steam", "water", True),
        ("salt water", "water", True),
        ("liquid unknown substance C", "solid unknown substance c", True),
        ("tin cup", "tin", False),
        ("peach tree", "plant", False),
    ],
)
def test_what_can_be_the_target(name: str, target: str, same: bool) -> None:
    assert same_thing(name, target) is same


def test_events_are_kept_in_order_by_kind() -> None:
    belief = empty_belief()
    for kind, thing in ((FOCUS, "thermometer"), (RECIPE, "water"), (FOCUS, "tin; lead, iron")):
        add_event(belief, kind, thing)
    assert events(belief, FOCUS) == ["thermometer", "tin; lead, iron"]
    assert events(belief, RECIPE) == ["water"]
