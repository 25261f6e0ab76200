"""What several observations in a row tell: views, phases, menus, closed doors."""

from __future__ import annotations

from rpms.envs.scienceworld.belief import first_belief, update_belief
from rpms.envs.scienceworld.parse_view import room_of
from rpms.vocabulary.belief import Belief, empty_belief
from tests.envs.scienceworld.rooms import HALLWAY, KITCHEN

ASKED = (
    "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):"
)


def after(*turns: tuple[str, str]) -> Belief:
    belief = first_belief(HALLWAY)
    for action, observation in turns:
        belief = update_belief(belief, action, observation)
    return belief


def test_a_look_around_reads_contents_doors_and_states() -> None:
    belief = after(("go to kitchen", "You move to the kitchen."), ("look around", KITCHEN))
    assert belief["last_seen"] == {
        "air": "kitchen", "picture": "hallway", "counter": "kitchen", "bowl": "counter",
        "red apple": "bowl", "orange": "bowl", "drawer": "counter", "cupboard": "kitchen",
        "sink": "kitchen", "stove": "kitchen", "thermometer": "kitchen",
    }  # fmt: skip
    assert belief["containers"] == {
        "cupboard": "closed", "door to bathroom": "open", "door to hallway": "open",
    }  # fmt: skip
    assert belief["flags"] == {
        "sink": "deactivated", "stove": "deactivated", "thermometer": "10 degrees celsius",
    }  # fmt: skip
    assert belief["searched"] == ["hallway", "counter", "bowl", "sink", "stove", "kitchen"]


def test_a_substance_keeps_one_name_through_its_phases() -> None:
    belief = empty_belief()
    belief["location"] = "foundry"
    belief["visible"] = ["metal pot", "tin"]
    belief["last_seen"] = {"tin": "metal pot"}
    belief = update_belief(belief, "examine tin", "a substance called liquid tin")
    assert belief["flags"] == {"tin": "liquid", "tin was": "tin"}
    assert belief["last_seen"] == {"liquid tin": "metal pot"}
    belief = update_belief(belief, "examine liquid tin", "a substance called gaseous tin")
    assert belief["flags"]["tin"] == "gas"


def test_ice_beside_water_is_not_what_the_water_was() -> None:
    look = (
        "This room is called the kitchen. In it, you see: \n\tthe agent\n\ta freezer. The freezer "
        "door is open. In the freezer is: a substance called ice.\n\ta sink, which is turned on. "
        "In the sink is: a substance called water."
    )
    belief = after(("teleport to kitchen", "You teleport to the kitchen."), ("look around", look))
    belief = update_belief(belief, "look around", look)
    assert "water was" not in belief["flags"]


def test_a_menu_waits_for_its_number_and_tells_which_thing_was_meant() -> None:
    menu = (
        f"{ASKED}\n0:\tput down orange (in bowl, in counter, in kitchen)\n"
        "1:\tput down orange (in inventory, in agent, in kitchen)\n"
    )
    asked = after(
        ("teleport to kitchen", "You teleport to the kitchen."),
        ("look around", KITCHEN),
        ("put down orange", menu),
    )
    assert asked["holding"] == ["orange"]
    moved = "You move the orange to the kitchen."
    assert update_belief(asked, "0", moved)["holding"] == ["orange"]
    assert update_belief(asked, "1", moved)["holding"] == []
    assert asked["asked"] and not update_belief(asked, "1", moved)["asked"]


def test_things_behind_a_closed_door_are_remembered_others_forgotten() -> None:
    opened = KITCHEN.replace(
        "The cupboard door is closed. ",
        "The cupboard door is open. In the cupboard is: a metal pot (containing nothing).",
    )
    belief = after(("teleport to kitchen", "You teleport to the kitchen."), ("look around", opened))
    assert belief["last_seen"]["metal pot"] == "cupboard"
    belief = update_belief(belief, "close cupboard", "The cupboard is now closed.")
    without = KITCHEN.replace("a red apple, an orange", "an orange")
    belief = update_belief(belief, "look around", without)
    assert belief["last_seen"]["metal pot"] == "cupboard"
    assert "red apple" not in belief["last_seen"]
    assert "metal pot" not in belief["visible"]


def test_what_is_common_to_several_rooms_is_forgotten_with_the_room() -> None:
    belief = after(
        ("teleport to kitchen", "You teleport to the kitchen."),
        ("activate sink", "The sink is now activated."),
        ("activate stove", "The stove is now activated."),
        ("go to bathroom", "You move to the bathroom."),
    )
    assert "sink" not in belief["flags"]
    assert belief["flags"]["stove"] == "activated"


def test_things_are_found_again_by_room() -> None:
    belief = after(
        ("teleport to kitchen", "You teleport to the kitchen."),
        ("look around", KITCHEN),
        ("pick up thermometer", "You move the thermometer to the inventory."),
        ("move apple to bowl", "You move the apple to the bowl."),
        ("go to hallway", "You move to the hallway."),
    )
    assert room_of(belief, "apple") == "kitchen"
    assert room_of(belief, "picture") == "hallway"
    assert room_of(belief, "moon") is None
    jug = update_belief(
        belief, "inventory", "In your inventory, you see:\n\ta jug (containing soil)"
    )
    assert room_of(jug, "soil") == "hallway"


def test_furniture_of_the_same_name_does_not_move_what_is_on_it() -> None:
    """Both rooms have a counter; the bowl was seen in the kitchen."""
    bathroom = (
        "This room is called the bathroom. In it, you see: \n\tthe agent\n"
        "\ta counter. On the counter is: nothing."
    )
    belief = after(
        ("teleport to kitchen", "You teleport to the kitchen."),
        ("look around", KITCHEN),
        ("teleport to bathroom", "You teleport to the bathroom."),
        ("look around", bathroom),
    )
    assert room_of(belief, "bowl") == "kitchen"


def _kitchen(*lines: str) -> tuple[str, str]:
    things = "".join(f"\n\t{line}" for line in ("the agent", *lines))
    return "look around", f"This room is called the kitchen. In it, you see: {things}"


GO = ("teleport to kitchen", "You teleport to the kitchen.")


def test_a_change_of_phase_shows_in_a_look_around_too() -> None:
    solid = _kitchen("a stove, which is turned on. On the stove is: a substance called tin.")
    liquid = _kitchen(
        "a stove, which is turned on. On the stove is: a substance called liquid tin."
    )
    belief = after(GO, solid, liquid)
    assert belief["flags"]["tin was"] == "tin"
    assert "tin" not in belief["last_seen"] and belief["last_seen"]["liquid tin"] == "stove"


def test_what_is_carried_in_a_cup_is_not_what_stands_in_the_room() -> None:
    cup = _kitchen("a cup (containing a substance called water)")
    take = ("pick up cup", "You move the cup to the inventory.")
    fountain = _kitchen("a fountain (containing a substance called water)")
    assert after(GO, cup, take, _kitchen("a chair"))["last_seen"]["water"] == "cup"
    assert after(GO, cup, take, fountain)["last_seen"]["water"] == "cup"


def test_a_seed_out_of_the_jar_in_hand_leaves_the_planted_one_in_view() -> None:
    seeds = "a seed jar (containing a pea seed, a pea seed)"
    jar = _kitchen(seeds, "a flower pot 1 (containing soil)", "a flower pot 2 (containing soil)")
    take = ("pick up seed jar", "You move the seed jar to the inventory.")
    look = _kitchen(
        "a flower pot 1 (containing a pea seed, soil)", "a flower pot 2 (containing soil)"
    )
    sow = (
        "move pea seed in seed jar to flower pot 2",
        "You move the pea seed to the flower pot 2.",
    )
    assert after(GO, jar, take, look, sow)["visible"].count("pea seed") == 2
