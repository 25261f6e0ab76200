"""What the manual's tables say of devices and substances, tried in the simulator itself."""

from __future__ import annotations

import pytest

from rpms.envs.scienceworld.simulator import Simulator
from rpms.envs.scienceworld.tasks import simplifications
from rpms.envs.scienceworld.things import (
    kinds,
    note,
    note_reading,
    print_states,
    same_thing,
    split_phase,
    states_of,
    temperature_of,
)
from tests.envs.playing import believing


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


@pytest.mark.parametrize(("first", "then", "others", "kept"), [
    ("tin", "tin", (), True),
    ("tin", "liquid tin", (), False),
    ("liquid tin", "tin", (), False),
    ("liquid tin", "gaseous tin", (), False),
    ("ice", "water", (), False),
    ("solid unknown substance Y", "liquid unknown substance Y", (), False),
    # Two portions in one view: neither has changed.
    ("water", "ice", ("water", "ice"), True),
    ("metal fork", "metal fork", (), True),
])  # fmt: skip
def test_a_reading_belongs_to_the_phase_it_was_taken_in(
    first: str, then: str, others: tuple[str, ...], kept: bool
) -> None:
    belief = believing(last_seen={first: "metal pot"})
    note(belief, first, [])
    note_reading(belief, first, "10 degrees celsius")
    assert temperature_of(belief, first) == 10
    note(belief, then, [], others)
    assert temperature_of(belief, then) == (10 if kept else None)


def test_a_reading_says_nothing_of_the_phase() -> None:
    """The thermometer's answer names no thing, and the command may use its plain name."""
    belief = believing(flags={"tin": "liquid"})
    note_reading(belief, "tin", "300 degrees celsius")
    assert states_of(belief, "tin") == ["liquid", "300 degrees celsius"]
    assert print_states(states_of(belief, "tin")) == (
        "liquid, 300 degrees celsius when last measured"
    )


def test_what_is_broken_stays_so() -> None:
    """A look says "turned off" of a broken stove, and so does the attempt to switch it off."""
    belief = believing()
    note(belief, "stove", ["broken"])
    note(belief, "stove", ["deactivated"])
    assert set(states_of(belief, "stove")) == {"broken", "deactivated"}


FILLED = [
    "teleport to kitchen", "open cupboard", "pick up metal pot", "move metal pot to sink",
    "activate sink", "deactivate sink", "pick up metal pot",
]  # fmt: skip


# Where each device is in every house, and what the water in it becomes. A hot plate is in none.
DEVICES = [
    ("stove", "kitchen", "heater", "steam"),
    ("fire pit", "outside", "hearth", "water"),
    ("freezer", "kitchen", "cooler", "ice"),
    ("fridge", "kitchen", "chiller", "water"),
]


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
@pytest.mark.parametrize(("device", "room", "kind", "becomes"), DEVICES)
def test_devices_do_what_their_kind_says(
    device: str, room: str, kind: str, becomes: str, simulator: Simulator
) -> None:
    """Variation 0 of boil, of the train split: water of ten degrees, and a minute in the device."""
    assert any(device.endswith(name) for name in kinds(kind))
    simulator.load("boil", 0, simplifications())
    moving = [f"open {device}", f"move metal pot to {device}", f"activate {device}"]
    for command in [*FILLED, f"teleport to {room}", *moving, *["wait"] * 6]:
        simulator.step(command)
    inside = simulator.step(f"look at {device}").observation
    assert f"called {becomes}" in inside, inside


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_a_vessel_stays_in_hand_when_its_contents_are_mixed(simulator: Simulator) -> None:
    """The paper warns that the hand becomes empty; the simulator leaves the jug in it."""
    simulator.load("chemistry-mix-paint-secondary-color", 0, simplifications())
    for command in ("teleport to art studio", "pick up jug", "pour cup containing red paint in jug",
                    "pour cup containing blue paint in jug"):  # fmt: skip
        simulator.step(command)
    assert "mix to produce violet paint" in simulator.step("mix jug").observation
    assert "a jug (containing violet paint)" in simulator.step("inventory").observation
