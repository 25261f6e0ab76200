from __future__ import annotations

from typing import Any

import pytest

from rpms.envs.scienceworld.belief import (
    describe_belief,
    first_belief,
    from_inventory,
    played,
    print_state,
    read_menu,
    refused,
    update_belief,
)
from rpms.envs.scienceworld.goals import parse_goal
from rpms.vocabulary.belief import Event, empty_belief
from tests.envs.playing import believing, changed
from tests.envs.scienceworld.rooms import ASKED, BOIL, HALLWAY, KITCHEN, OUTSIDE


def focused(*things: str) -> list[Event]:
    return [Event(kind="focus", thing=thing) for thing in things]


def test_the_opening_tells_the_room_its_things_and_its_doors() -> None:
    belief = first_belief(f"{HALLWAY}\n\n{BOIL}")
    assert belief["location"] == "hallway"
    assert belief["visible"] == ["air", "picture"]
    assert belief["last_seen"] == {"air": "hallway", "picture": "hallway"}
    assert belief["containers"] == {"door to art studio": "closed", "door to kitchen": "open"}
    assert belief["places"] == ["hallway", "art studio", "kitchen"]
    assert belief["searched"] == ["hallway"]
    assert belief["progress"] == 0


def test_every_episode_starts_with_an_orange_in_the_inventory() -> None:
    assert first_belief(HALLWAY)["holding"] == ["orange"]
    assert first_belief("")["location"] is None


@pytest.mark.parametrize(
    ("before", "action", "observation", "expected"),
    [
        # Rooms.
        ({"location": "hallway", "visible": ["picture"], "places": ["hallway"],
          "containers": {"door to kitchen": "open", "cupboard": "open"}},
         "go to kitchen", "You move to the kitchen.",
         {"location": "kitchen", "visible": [], "places": ["hallway", "kitchen"],
          "containers": {"cupboard": "open"}}),
        ({"location": "hallway", "places": ["hallway", "kitchen"]}, "go through door to kitchen",
         "You move through the door to the kitchen.", {"location": "kitchen"}),
        ({"places": ["outside"]}, "teleport to outside", "You teleport to the outside.",
         {"location": "outside"}),
        ({"location": "kitchen", "places": ["kitchen"], "visible": ["stove"]},
         "teleport to kitchen", "You teleport to the kitchen.", {}),
        ({"location": "hallway"}, "go to kitchen", "The door is not open.", {}),
        ({"location": "hallway"}, "go to hallway",
         "It's not clear how to get there from here.", {}),
        ({}, "look around", OUTSIDE,
         {"location": "outside", "places": ["outside", "kitchen"], "visible": ["axe", "fire pit"],
          "last_seen": {"axe": "outside", "fire pit": "outside"}, "searched": ["fire pit",
          "outside"], "spots": {"outside": ["axe", "fire pit"]},
          "containers": {"door to kitchen": "open"}}),
        # Another room, seen through an open door, is not where the agent is.
        ({"location": "hallway", "places": ["hallway", "kitchen"], "visible": ["picture"]},
         "look at kitchen", "This room is called the kitchen. In it, you see: \n\ta stove, which "
         "is turned off. On the stove is: nothing.\nYou also see:\n\tA door to the hallway (that "
         "is open)",
         {"last_seen": {"stove": "kitchen"}, "spots": {"kitchen": ["stove"]},
          "searched": ["stove", "kitchen"], "flags": {"stove": "deactivated"}}),
        # Doors and containers.
        ({"location": "hallway"}, "open door to kitchen", "The door is now open.",
         {"containers": {"door to kitchen": "open"}}),
        ({"location": "hallway", "containers": {"door to kitchen": "open", "door to bedroom":
          "open"}}, "close bedroom door", "The door is now closed.",
         {"containers": {"door to kitchen": "open", "door to bedroom": "closed"}}),
        ({"location": "hallway", "containers": {"door to kitchen": "open", "door to bedroom":
          "open"}}, "close door", "The door is now closed.", {}),
        ({"location": "bedroom", "visible": ["bed"], "containers": {"door to hallway": "open"}},
         "close door", "The door is now closed.", {"containers": {"door to hallway": "closed"}}),
        ({}, "open cupboard", "The cupboard is now open.", {"containers": {"cupboard": "open"}}),
        ({}, "open freezer", "The ultra low temperature freezer is now open.",
         {"containers": {"ultra low temperature freezer": "open"}}),
        ({"containers": {"cupboard": "closed"}}, "look in cupboard",
         "The cupboard isn't open, so you can't see inside.", {}),
        ({"location": "kitchen", "visible": ["cupboard"], "containers": {"cupboard": "open"},
          "last_seen": {"cupboard": "kitchen"}}, "look in cupboard",
         "Inside the cupboard is: \n\ta metal pot (containing nothing)",
         {"last_seen": {"cupboard": "kitchen", "metal pot": "cupboard"},
          "visible": ["cupboard", "metal pot"], "spots": {"kitchen": ["metal pot"]},
          "searched": ["cupboard", "metal pot"]}),
        # The inventory.
        ({"location": "kitchen", "visible": ["thermometer", "stove"], "holding": ["orange"],
          "last_seen": {"thermometer": "kitchen"}}, "pick up thermometer",
         "You move the thermometer to the inventory.",
         {"holding": ["orange", "thermometer"], "visible": ["stove"], "last_seen": {}}),
        ({"holding": [], "visible": ["red apple"], "last_seen": {"red apple": "bowl"}},
         "pick up apple", "You move the apple to the inventory.",
         {"holding": ["apple"], "visible": [], "last_seen": {}}),
        ({"holding": ["metal pot"], "visible": ["stove"]}, "pick up metal pot",
         "You move the metal pot to the inventory.", {}),
        ({"location": "kitchen", "places": ["kitchen"], "holding": ["orange", "metal pot"],
          "visible": ["stove"]}, "put down metal pot", "You move the metal pot to the kitchen.",
         {"holding": ["orange"], "visible": ["stove", "metal pot"],
          "last_seen": {"metal pot": "kitchen"}, "spots": {"kitchen": ["metal pot"]}}),
        ({"location": "kitchen", "holding": ["metal pot"], "visible": ["stove"]},
         "put metal pot on stove", "You move the metal pot to the stove.",
         {"holding": [], "visible": ["stove", "metal pot"], "last_seen": {"metal pot": "stove"},
          "spots": {"kitchen": ["metal pot"]}}),
        ({"holding": ["orange"], "visible": ["counter"]}, "eat orange",
         "The orange was delicious.", {"holding": []}),
        ({"holding": ["orange"], "visible": ["orange juice"],
          "last_seen": {"orange juice": "fridge"}}, "eat orange juice",
         "The orange juice was delicious.", {"visible": [], "last_seen": {}}),
        ({"holding": ["apple", "thermometer"]}, "inventory",
         "In your inventory, you see:\n\ta red apple\n\ta metal pot (containing a substance called "
         "water)",
         {"holding": ["apple", "metal pot"], "last_seen": {"water": "metal pot"},
          "searched": ["metal pot"], "flags": {"water": "liquid"}}),
        ({"holding": ["orange"]}, "inventory", "In your inventory, you see:\n\tnothing",
         {"holding": []}),
        ({"holding": ["orange"]}, "look in inventory", "Inside the inventory is: \n\tan axe",
         {"holding": ["axe"]}),
        ({"holding": ["orange"]}, "pick up stove", "The stove is not moveable.", {}),
        ({"holding": []}, "pick up air", "You can't pick up a gas directly.", {}),
        # What cannot be known is not guessed in silence, and a listing settles it.
        ({"location": "hallway", "holding": ["wood cup"], "visible": ["wood cup"]},
         "put down cup containing red paint", "You move the wood cup to the hallway.",
         {"holding": [], "visible": ["wood cup", "wood cup"], "spots": {"hallway": ["wood cup"]},
          "last_seen": {"wood cup": "hallway"}, "flags": {"inventory": "unsure"}}),
        ({"holding": [], "last_seen": {"pillow": "couch"}}, "pour couch into inventory",
         "You pour the contents of the couch into the inventory.",
         {"holding": ["pillow"], "last_seen": {"pillow": "inventory"},
          "flags": {"inventory": "unsure"}}),
        ({"holding": [], "visible": ["bee 2"], "last_seen": {"bee 2": "greenhouse"}},
         "pick up bee 2", "You move the bee 2 to the inventory.",
         {"holding": ["bee 2"], "visible": [], "last_seen": {}, "flags": {"inventory": "unsure"}}),
        ({"holding": ["bee 2"], "flags": {"inventory": "unsure"}}, "inventory",
         "In your inventory, you see:\n\tnothing", {"holding": [], "flags": {}}),
        # Devices, readings, focus, mixtures.
        ({}, "activate stove", "The stove is now activated.", {"flags": {"stove": "activated"}}),
        ({"flags": {"sink": "activated"}}, "deactivate sink", "The sink is now deactivated.",
         {"flags": {"sink": "deactivated"}}),
        ({}, "activate stove", "The stove appears broken, and can't be activated or deactivated.",
         {"flags": {"stove": "broken"}}),
        ({}, "activate table", "The table is not something that can be activated.", {}),
        ({"holding": ["thermometer"], "visible": ["orange"]},
         "use thermometer in inventory on orange",
         "the thermometer measures a temperature of 12 degrees celsius",
         {"flags": {"orange": "12 degrees celsius"}}),
        ({"visible": ["metal pot", "water"], "last_seen": {"water": "metal pot"},
          "flags": {"water": "liquid, 20 degrees celsius"}},
         "use thermometer on substance in metal pot",
         "the thermometer measures a temperature of -3 degrees celsius",
         {"flags": {"water": "liquid, -3 degrees celsius"}}),
        ({}, "focus on water", "You focus on the water.", {"events": focused("water")}),
        # A tree is answered as a plant; what was chosen is still that tree.
        ({"visible": ["apple tree"]}, "focus on apple tree", "You focus on the plant.",
         {"events": focused("apple tree")}),
        ({"events": focused("thermometer")}, "focus on tin", "You focus on the tin.",
         {"events": focused("thermometer", "tin")}),
        ({"last_seen": {"sugar": "metal pot", "water": "metal pot"}, "holding": ["metal pot"],
          "visible": ["sugar", "water"]}, "mix metal pot",
         "Sugar and water mix to produce sugar water.",
         {"last_seen": {"sugar water": "metal pot"}, "visible": ["sugar water"],
          "flags": {"sugar water": "made"}}),
        ({}, "read recipe", "The recipe reads:\nTo make sugar water, you need to mix sugar, water.",
         {"events": [{"kind": "recipe", "thing": thing} for thing in ("sugar", "water")]}),
        ({}, "use lighter on wood", "The wood catches fire.", {"flags": {"wood": "on fire"}}),
        ({}, "wait", "You decide to wait for 10 iterations.", {}),
    ],
)  # fmt: skip
def test_what_each_sentence_changes(
    before: dict[str, Any], action: str, observation: str, expected: dict[str, Any]
) -> None:
    assert changed("scienceworld", before, action, observation) == expected


@pytest.mark.parametrize(
    ("observation", "no"),
    [
        ("No known action matches that input.", True),
        ("Unknown action.  Type 'help' for a list of actions, and 'objects' for a list", True),
        ("It's not clear how to get there from here.", True),
        ("The door is not open.", True),
        ("The stove is not moveable.", True),
        ("The stove appears broken, and can't be activated or deactivated.", True),
        ("The table is not something that can be activated.", True),
        ("The glass jar can't be poured out, because it's not open.", True),
        ("That can't be moved there, because the oven isn't open.", True),
        ("I'm not sure how to use the stove.", True),
        ("Mixing the contents of the bowl does not appear to produce anything new.", True),
        (ASKED, False),
        ("The orange is not openable.", True),
        ("The orange is not closeable.", True),
        ("Its not clear how to go to orange.", True),
        ("The door is already open.", False),
        ("You move the orange to the inventory.", False),
        ("The orange was delicious.", False),
        (KITCHEN, False),
    ],
)
def test_which_answers_are_refusals(observation: str, no: bool) -> None:
    assert refused(observation) is no


def test_the_printed_state() -> None:
    assert print_state(empty_belief()) == "room=unknown|inventory=empty|progress=0"
    belief = believing(location="kitchen", holding=["thermometer", "orange"], progress=2)
    assert print_state(belief) == "room=kitchen|inventory=orange,thermometer|progress=2"
    belief["holding"] = []
    assert print_state(belief) == "room=kitchen|inventory=empty|progress=2"


GOAL = parse_goal(BOIL)


def test_the_described_state_of_a_beginner() -> None:
    assert describe_belief(empty_belief(), GOAL) == [
        "Room: unknown  Carrying: nothing  Progress: step 0"
    ]


def test_the_described_state_names_what_helps_and_nothing_else() -> None:
    belief = believing(
        location="kitchen",
        holding=["orange", "thermometer"],
        visible=["stove", "metal pot", "water", "freezer"],
        containers={"freezer": "closed", "closet": "closed", "door to hallway": "closed"},
        last_seen={"water": "metal pot", "metal pot": "stove", "stove": "kitchen", "axe": "bed"},
        places=["hallway", "kitchen", "outside"],
        searched=["hallway", "stove", "kitchen"],
        spots={"kitchen": ["stove", "metal pot", "water"]},
        flags={
            "task": BOIL, "water": "liquid, 80 degrees celsius",
            "stove": "activated", "oven": "deactivated", "water was": "ice", "inventory": "unsure",
        },
        events=focused("water"),
        progress=5,
    )  # fmt: skip
    assert describe_belief(belief, GOAL) == [
        "Room: kitchen  Carrying: orange, thermometer (not sure: 'inventory' lists it)  "
        "Progress: step 5",
        "Focused on: water",
        "Closed: freezer, door to hallway",
        "States: water liquid 80 degrees celsius, stove activated",
        "Seen: water in metal pot (kitchen)",
        "Looked around: hallway, kitchen",
    ]


def test_an_open_menu_is_described() -> None:
    menu = f"{ASKED}\n0:\tpick up tin cup (in kitchen)\n"
    asked = update_belief(first_belief(HALLWAY), "pick up cup", menu)
    assert "Asked back: answer with a number of the list" in describe_belief(asked, GOAL)


MENU = """Ambiguous request: Please enter the number for the action you intended (or blank):
0:\tfocus on orange (in inventory, in agent, in kitchen)
1:\tfocus on orange (in bowl, in counter, in kitchen)
"""


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
    belief = believing(holding=held, visible=visible)
    assert from_inventory(belief, command, thing) is carried
