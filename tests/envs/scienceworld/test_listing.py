from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs.scienceworld.parse_view import Thing, read_lines, read_thing, walk


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
