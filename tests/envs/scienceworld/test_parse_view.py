"""What the texts say of rooms and things, and what of it the belief keeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.scienceworld.belief import first_belief, update_belief
from rpms.envs.scienceworld.parse_view import Thing, read_lines, read_thing, room_of, walk
from rpms.vocabulary.belief import Belief, empty_belief
from tests.envs.scienceworld.rooms import HALLWAY, KITCHEN


def brief(thing: Thing | None) -> str:
    """``bowl{red apple; banana}``, ``oven[deactivated]<closed>``."""
    if thing is None:
        return ""
    states = f"[{', '.join(thing.states)}]" if thing.states else ""
    door = f"<{thing.door}>" if thing.door else ""
    inside = "" if thing.contents is None else f"{{{'; '.join(map(brief, thing.contents))}}}"
    return f"{thing.name}{states}{door}{inside}"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("an axe", "axe"),
        ("the ground", "ground"),
        ("soil", "soil"),
        ("unknown substance B", "unknown substance B"),
        ("a substance called sodium chloride", "sodium chloride"),
        ("a inventory (containing an orange)", "inventory{orange}"),
        ("a glass cup (containing nothing)", "glass cup{}"),
        ("a table. On the table is: nothing.", "table{}"),
        ("a oven, which is turned off. The oven door is closed. ", "oven[deactivated]<closed>"),
        ("a blast furnace, which is turned on. The blast furnace door is open. In the blast "
         "furnace is: a metal pot (containing a substance called liquid tin).",
         "blast furnace[activated]<open>{metal pot{liquid tin}}"),
        ("a cupboard. The cupboard door is open. In the cupboard is: a ceramic cup (containing "
         "nothing), a drawer, a tin cup (containing nothing).",
         "cupboard<open>{ceramic cup{}; drawer; tin cup{}}"),
        ("a sink, which is turned on. In the sink is: a metal pot (containing a substance called "
         "water). The drain is open.", "sink[activated]{metal pot{water}}"),
        ("a toilet. In the toilet is: A drain, which is open, a substance called water.",
         "toilet{drain<open>; water}"),
        ("a counter. On the counter is: a bowl (containing a red apple, a banana), a drawer.",
         "counter{bowl{red apple; banana}; drawer}"),
        ("a counter (on fire). On the counter (on fire) is: a drawer.",
         "counter[on fire]{drawer}"),
        ("a bed. On the bed is: a mattress. On the mattress is: a white pillow..",
         "bed{mattress{white pillow}}"),
        ("a couch. On the couch is: a chair. On the chair is: a closet. The closet door is open. "
         "In the closet is: nothing.., a white pillow.",
         "couch{chair{closet<open>{}}; white pillow}"),
        ("a table. On the table is: a battery, a black wire, a green light bulb, which is off, a "
         "switch, which is on.", "table{battery; black wire; green light bulb[deactivated]; "
         "switch[activated]}"),
        ("a stopwatch, which is activated. The time reads 12 ticks.", "stopwatch[activated]"),
        ("a thermometer, currently reading a temperature of -10 degrees celsius",
         "thermometer[-10 degrees celsius]"),
        ("a fire pit (containing a substance called wood (on fire))", "fire pit{wood[on fire]}"),
        ("A recipe titled instructions to make sugar water", "recipe"),
        ("a book shelf (containing A book (Moby Dick) titled Moby Dick by Herman Melville, A book "
         "(Beowulf) titled Beowulf by Beowulf poet)",
         "book shelf{book (Moby Dick); book (Beowulf)}"),
        ("a painting (on fire) of two people playing.  The artist is listed as Bob.",
         "painting[on fire]"),
        ("a blue wireits terminal 1 is connected to: nothing. its terminal 2 is connected to: "
         "nothing.", "blue wire"),
        ("a battery. its anode is connected to: nothing. its cathode is connected to: nothing.",
         "battery"),
        ("an inclined plane with a unknown material H surface, with: a wood block approximately 9% "
         "down the plane",
         "inclined plane with a unknown material H surface{wood block[9% down the plane]}"),
        ("an inclined plane B, with: a brick at the bottom of the plane",
         "inclined plane B{brick[bottom of the plane]}"),
        ("a flower pot 2 (containing a orange tree in the reproducing stage. On the orange tree "
         "you see: a flower. , soil)",
         "flower pot 2{orange tree[reproducing stage]{flower}; soil}"),
        ("a flower pot 8 (containing a pea plant in the reproducing stage with a tall height, "
         "soil)",
         "flower pot 8{pea plant[reproducing stage]; soil}"),
        ("a banana tree in the adult stage (that looks unwell)", "banana tree[adult stage]"),
        ("a seed jar (containing a round green  pea seed, a  unknown C seed)",
         "seed jar{round green pea seed; unknown C seed}"),
        ("a wilting flower. Inside the flower is: a adult bee", "wilting flower{adult bee}"),
        ("a adult bee, that is covered in pollen", "adult bee"),
        ("a lemonpollen", "lemon pollen"),
        ("nothing", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_line_says(line: str, expected: str) -> None:
    assert brief(read_thing(line)) == expected


def test_a_list_below_a_thing_ends_with_a_blank_line_or_with_nothing() -> None:
    block = (
        "\ta cupboard. The cupboard door is open. In the cupboard is: \n\ta drawer\n"
        "\ta tin cup (containing red paint)\n\n\ta drawer. In the drawer is: \n\tnothing\n"
        "\tan orange\n\ta table. On the table is: \n\ta switch, which is off"
    )
    assert [brief(thing) for thing in read_lines(block)] == [
        "cupboard<open>{drawer; tin cup{red paint}}",
        "drawer{}",
        "orange",
        "table{switch[deactivated]}",
    ]


def test_walking_names_what_each_thing_is_in() -> None:
    block = "\ta bed. On the bed is: a mattress. On the mattress is: a pillow..\n\tan axe"
    things = read_lines(block)
    assert [(thing.name, inside) for thing, inside in walk(things, "bedroom")] == [
        ("bed", "bedroom"),
        ("mattress", "bed"),
        ("pillow", "mattress"),
        ("axe", "bedroom"),
    ]


@given(st.text(alphabet="ab ,.():\n\tOniscgthe", max_size=80))
def test_any_text_is_survived(text: str) -> None:
    assert isinstance(read_lines(text), list)


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
