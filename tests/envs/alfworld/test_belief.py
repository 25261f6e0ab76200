from __future__ import annotations

import random
from typing import Any

import pytest

from rpms.envs.alfworld.adapter import ENVIRONMENT
from rpms.envs.alfworld.belief import first_belief
from rpms.envs.alfworld.goals import parse_goal
from rpms.vocabulary.belief import empty_belief
from tests.envs.playing import believing, changed

OPENING = (
    "You are in the middle of a room. Looking quickly around you, you see a bed 1, a desk 2, "
    "a desk 1, a drawer 10, and a safe 1.\n\nYour task is to: put a cd in safe."
)
ROOM = ["bed 1", "desk 2", "desk 1", "drawer 10", "safe 1"]


def test_the_opening_text_names_the_places() -> None:
    assert first_belief(OPENING) == believing(places=ROOM)


def test_an_opening_without_places_is_an_empty_belief() -> None:
    assert first_belief("Welcome!") == empty_belief()


@pytest.mark.parametrize(
    ("before", "action", "observation", "expected"),
    [
        # Arriving: contents in the order they are listed, one, two, many or none.
        ({}, "go to desk 1", "On the desk 1, you see a mug 2, a mug 1, and a pen 3.",
         {"location": "desk 1", "searched": ["desk 1"],
          "last_seen": {"mug 2": "desk 1", "mug 1": "desk 1", "pen 3": "desk 1"}}),
        ({}, "go to desk 1", "On the desk 1, you see a desklamp 2, and a mug 3.",
         {"location": "desk 1", "searched": ["desk 1"],
          "last_seen": {"desklamp 2": "desk 1", "mug 3": "desk 1"}}),
        ({}, "go to desk 1", "On the desk 1, you see a pencil 2.",
         {"location": "desk 1", "searched": ["desk 1"], "last_seen": {"pencil 2": "desk 1"}}),
        ({}, "go to bed 1", "On the bed 1, you see nothing.",
         {"location": "bed 1", "searched": ["bed 1"]}),
        ({}, "go to safe 1", "The safe 1 is closed.",
         {"location": "safe 1", "containers": {"safe 1": "closed"}}),
        ({}, "go to safe 1", "The safe 1 is open. In it, you see a cd 1.",
         {"location": "safe 1", "searched": ["safe 1"], "containers": {"safe 1": "open"},
          "last_seen": {"cd 1": "safe 1"}}),
        # What stood within reach stays behind, unless that spot is known.
        ({"location": "desk 1", "reachable": ["drawer 1"]}, "go to bed 1",
         "On the bed 1, you see nothing.",
         {"location": "bed 1", "reachable": [], "searched": ["bed 1"]}),
        ({"location": "bed 1", "spots": {"desk 1": ["desk 1", "drawer 1"]}, "searched": ["desk 1"]},
         "go to desk 1", "On the desk 1, you see nothing.",
         {"location": "desk 1", "reachable": ["drawer 1"]}),
        # A new look at a place replaces what was believed of it, and only of it.
        ({"location": "desk 1", "searched": ["desk 1"],
          "last_seen": {"cd 1": "desk 1", "pen 1": "desk 1", "mug 1": "bed 1"}},
         "examine desk 1", "On the desk 1, you see a pen 1, and a pen 2.",
         {"last_seen": {"pen 1": "desk 1", "mug 1": "bed 1", "pen 2": "desk 1"}}),
        # Doors.
        ({"location": "safe 1", "containers": {"safe 1": "closed"}}, "open safe 1",
         "You open the safe 1. The safe 1 is open. In it, you see a cd 1, and a watch 2.",
         {"containers": {"safe 1": "open"}, "searched": ["safe 1"],
          "last_seen": {"cd 1": "safe 1", "watch 2": "safe 1"}}),
        ({"location": "safe 1"}, "open safe 1",
         "You open the safe 1. The safe 1 is open. In it, you see nothing.",
         {"containers": {"safe 1": "open"}, "searched": ["safe 1"]}),
        ({"location": "safe 1", "containers": {"safe 1": "open"}, "last_seen": {"cd 1": "safe 1"}},
         "close safe 1", "You close the safe 1.", {"containers": {"safe 1": "closed"}}),
        # Acting on a place from elsewhere shows that it shares this spot.
        ({"location": "desk 1"}, "open drawer 2",
         "You open the drawer 2. The drawer 2 is open. In it, you see nothing.",
         {"reachable": ["drawer 2"], "containers": {"drawer 2": "open"},
          "searched": ["drawer 2"]}),
        ({"location": "desk 1", "reachable": ["drawer 2"]}, "examine drawer 2",
         "The drawer 2 is closed.", {"containers": {"drawer 2": "closed"}}),
        # The hand.
        ({"location": "desk 1", "last_seen": {"cd 1": "desk 1", "cd 2": "desk 1"}},
         "take cd 1 from desk 1", "You pick up the cd 1 from the desk 1.",
         {"holding": ["cd 1"], "last_seen": {"cd 2": "desk 1"}}),
        ({"location": "desk 1", "holding": ["cd 1"]}, "put cd 1 in/on desk 1",
         "You put the cd 1 in/on the desk 1.",
         {"holding": [], "last_seen": {"cd 1": "desk 1"}}),
        ({"location": "desk 1", "holding": ["cd 1"]}, "put cd 1 in/on drawer 3",
         "You put the cd 1 in/on the drawer 3.",
         {"holding": [], "last_seen": {"cd 1": "drawer 3"}, "reachable": ["drawer 3"]}),
        ({}, "inventory", "You are carrying: a cd 1.", {"holding": ["cd 1"]}),
        ({"holding": ["cd 1"]}, "inventory", "You are carrying: a cd 1.", {}),
        ({"holding": ["cd 1"]}, "inventory", "You are not carrying anything.", {"holding": []}),
        # Looking around fixes what stands at this spot.
        ({"location": "desk 1"}, "look",
         "You are facing the desk 1, drawer 3, and drawer 2. Next to it, you see nothing.",
         {"reachable": ["drawer 3", "drawer 2"],
          "spots": {place: ["desk 1", "drawer 3", "drawer 2"]
                    for place in ("desk 1", "drawer 3", "drawer 2")}}),
        ({"location": "desk 1"}, "look",
         "You are facing the desk 1. Next to it, you see nothing.",
         {"spots": {"desk 1": ["desk 1"]}}),
        ({"places": ROOM}, "look", OPENING, {}),
        # Sentences that carry no state the belief keeps.
        ({"location": "fridge 1", "holding": ["mug 1"]}, "cool mug 1 with fridge 1",
         "You cool the mug 1 using the fridge 1.", {}),
        ({"location": "desk 1", "last_seen": {"desklamp 1": "desk 1"}}, "use desklamp 1",
         "You turn on the desklamp 1.", {}),
        ({"holding": ["mug 2"]}, "examine mug 2",
         "This is a normal mug 2. In it, you see nothing.", {}),
        ({"holding": ["cloth 2"]}, "examine cloth 2", "This is a clean cloth 2.", {}),
        ({"holding": ["cd 2"]}, "examine cd 2", "There's nothing special about cd 2.", {}),
        # A walk is believed only if the answer describes the place.
        ({"location": "desk 1"}, "go to bed 1", "Something else entirely.", {}),
    ],
)  # fmt: skip
def test_what_each_sentence_changes(
    before: dict[str, Any], action: str, observation: str, expected: dict[str, Any]
) -> None:
    assert changed("alfworld", before, action, observation) == expected


@pytest.mark.parametrize(
    ("fields", "printed"),
    [
        ({}, "holding=none"),
        ({"containers": {"microwave 1": "open", "fridge 1": "open", "safe 1": "closed"}},
         "holding=none|open=fridge 1,microwave 1"),
        ({"holding": ["mug 2"]}, "holding=mug 2"),
        ({"holding": ["mug 2"], "containers": {"fridge 1": "open"}, "location": "fridge 1"},
         "holding=mug 2|open=fridge 1"),
        ({"containers": {"fridge 1": "closed"}}, "holding=none"),
    ],
)  # fmt: skip
def test_the_state_prints_as_in_the_paper(fields: dict[str, Any], printed: str) -> None:
    assert ENVIRONMENT.print_state(believing(**fields)) == printed


def test_the_printed_state_does_not_depend_on_the_order_of_opening() -> None:
    doors = [(f"drawer {n}", "open") for n in range(1, 12)]
    printed = ENVIRONMENT.print_state(believing(containers=dict(doors)))
    random.Random(1).shuffle(doors)
    assert ENVIRONMENT.print_state(believing(containers=dict(doors))) == printed


GOAL = parse_goal("look at cd under the desklamp")


def test_the_described_state_of_a_beginner() -> None:
    lines = ENVIRONMENT.describe_belief(first_belief(OPENING), GOAL)
    assert lines == ["Location: middle of the room", "Holding: nothing"]


def test_the_described_state_names_what_helps_and_nothing_else() -> None:
    belief = believing(
        location="desk 1",
        reachable=["drawer 1", "drawer 2"],
        holding=["cd 2"],
        containers={"drawer 1": "open", "safe 1": "closed"},
        last_seen={"cd 1": "bed 1", "mug 1": "desk 1", "desklamp 1": "desk 1"},
        places=ROOM,
        searched=["bed 1", "desk 1"],
    )
    assert ENVIRONMENT.describe_belief(belief, GOAL) == [
        "Location: desk 1",
        "Within reach: drawer 1, drawer 2",
        "Holding: cd 2",
        "Open: drawer 1",
        "Closed: safe 1",
        "Seen: cd 1 at bed 1, desklamp 1 at desk 1",
        "Searched: bed 1, desk 1",
    ]
