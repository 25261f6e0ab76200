from __future__ import annotations

import pytest

from rpms.envs.scienceworld.belief import from_inventory, played, read_menu
from rpms.vocabulary.belief import Belief, empty_belief

MENU = """Ambiguous request: Please enter the number for the action you intended (or blank):
0:\tfocus on orange (in inventory, in agent, in kitchen)
1:\tfocus on orange (in bowl, in counter, in kitchen)
"""


def carrying(*held: str, visible: tuple[str, ...] = ()) -> Belief:
    belief = empty_belief()
    belief["holding"] = list(held)
    belief["visible"] = list(visible)
    return belief


def test_a_menu_is_kept_line_by_line() -> None:
    assert read_menu(MENU) == {
        "0": "focus on orange (in inventory, in agent, in kitchen)",
        "1": "focus on orange (in bowl, in counter, in kitchen)",
    }
    assert read_menu("You move the orange to the inventory.") == {}


@pytest.mark.parametrize(
    ("action", "command"),
    [
        ("1", "focus on orange (in bowl, in counter, in kitchen)"),
        (" 01 ", "focus on orange (in bowl, in counter, in kitchen)"),
        ("7", "7"),
        ("Pick  up Orange", "pick up orange"),
    ],
)
def test_a_number_stands_for_its_line(action: str, command: str) -> None:
    assert played(action, read_menu(MENU)) == command


@pytest.mark.parametrize(
    ("command", "thing", "held", "visible", "carried"),
    [
        # The command says where the thing was.
        ("move orange in inventory to bowl", "orange", ["orange"], ["orange"], True),
        ("pick up orange in bowl", "orange", ["orange"], ["orange"], False),
        ("move orange seed in seed jar to flower pot 1", "orange seed", ["seed jar"], [], False),
        ("eat orange in inventory", "orange", ["orange"], [], True),
        # The menu line says it.
        ("put down orange (in inventory, in agent, in hallway)", "orange", ["orange"], [], True),
        ("move seed (in seed jar, in inventory, in agent, in greenhouse) to flower pot 2 (in "
         "greenhouse)", "seed", ["seed jar", "seed"], [], False),
        ("move book (Moby Dick) (in inventory, in agent, in hallway) to hallway",
         "book (Moby Dick)", ["book (Moby Dick)"], [], True),
        # Nothing of that name is carried.
        ("pick up thermometer", "thermometer", ["orange"], ["thermometer"], False),
        ("pick up orange box", "orange box", ["orange"], ["orange box"], False),
        # A plain name that fits two things would have been asked back.
        ("pick up metal pot", "metal pot", ["metal pot"], ["metal pot"], True),
        ("put cup in sink", "wood cup", ["wood cup"], ["sink"], True),
        ("put down cup", "wood cup", ["wood cup"], [], True),
        # Nothing else of that name in view.
        ("move steel table to kitchen", "table", ["table"], ["stove"], True),
        # A stage is no place.
        ("put down peach tree in the adult stage", "peach tree", ["peach tree"], ["sink"], True),
        # Two of a kind, told apart by words the belief cannot check.
        ("move cup containing red paint to table", "wood cup", ["wood cup"], ["wood cup"], None),
        ("put down steel table", "table", ["table"], [], None),
    ],
)  # fmt: skip
def test_whether_the_moved_thing_was_carried(
    command: str, thing: str, held: list[str], visible: list[str], carried: bool | None
) -> None:
    belief = carrying(*held, visible=tuple(visible))
    assert from_inventory(belief, command, thing) is carried
