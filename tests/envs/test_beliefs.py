"""f_upd of both worlds, on beliefs, commands and answers drawn at random."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.vocabulary.belief import Belief, Event, empty_belief
from tests.envs.scienceworld.rooms import ASKED, BOIL, HALLWAY, KITCHEN, OUTSIDE

ALFWORLD, SCIENCEWORLD = get_environment("alfworld"), get_environment("scienceworld")
THING = st.sampled_from(
    ["orange", "red apple", "metal pot", "sink", "bee 1", "water", "ice", "tin"]
)
ROOM = st.sampled_from(["kitchen", "hallway", "outside"])
NAME = st.sampled_from(
    [f"{kind} {n}" for kind in ("desk", "drawer", "safe", "cd", "mug", "pen") for n in (1, 2)]
)
NAMES = st.lists(NAME, max_size=5, unique=True)
DOOR = st.sampled_from(["open", "closed"])
HOMES = st.builds(
    Belief,
    **{field: st.just(value) for field, value in empty_belief().items()}
    | {
        "location": st.none() | NAME,
        "reachable": NAMES,
        "spots": st.dictionaries(NAME, NAMES, max_size=3),
        "holding": st.lists(NAME, max_size=1),
        "containers": st.dictionaries(NAME, DOOR, max_size=4),
        "last_seen": st.dictionaries(NAME, NAME, max_size=5),
        "also_at": st.dictionaries(NAME, NAMES.filter(bool), max_size=2),
        "flags": st.dictionaries(NAME, st.sampled_from(["hot", "clean, cool", "on"]), max_size=2),
        "places": NAMES,
        "searched": NAMES,
    },
)
STATES = st.sampled_from(["activated", "liquid, 3 degrees celsius", BOIL])
HOUSES = st.builds(
    Belief,
    location=st.none() | ROOM,
    reachable=st.just([]),
    spots=st.dictionaries(ROOM, st.lists(THING, max_size=4), max_size=2),
    holding=st.lists(THING, max_size=3),
    containers=st.dictionaries(THING, DOOR, max_size=3),
    last_seen=st.dictionaries(THING, THING | ROOM, max_size=5),
    also_at=st.just({}),
    places=st.lists(ROOM, unique=True),
    searched=st.lists(THING | ROOM, max_size=3, unique=True),
    visible=st.lists(THING, max_size=4),
    alike=st.just({}),
    flags=st.dictionaries(THING | st.just("task"), STATES, max_size=3),
    events=st.lists(
        st.builds(Event, kind=st.sampled_from(["focus", "recipe"]), thing=THING), max_size=3
    ),
    disambiguation=st.dictionaries(st.sampled_from(["0", "1"]), st.just("eat orange"), max_size=2),
    progress=st.integers(0, 6),
    records=st.just({}),
    calls=st.just([]),
    owned=st.just({}),
)
LISTING = st.lists(NAME, max_size=4).map(
    lambda names: "nothing" if not names else ", and ".join(f"a {name}" for name in names)
)


def texts(*shapes: str, **blanks: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    """Some of these sentences, filled in, or any text at all."""
    filled = st.sampled_from(shapes).flatmap(lambda shape: st.builds(shape.format, **blanks))
    return filled | st.text(max_size=60)


PLAYED_AT_HOME = st.tuples(
    st.just(ALFWORLD),
    HOMES,
    texts(
        "look", "inventory", "", "dance", "go to {a}", "open {a}", "close {a}", "examine {a}",
        "use {a}", "heat {a} with {b}", "take {a} from {b}", "put {a} in/on {b}", a=NAME, b=NAME,
    ),
    texts(
        "On the {a}, you see {l}.", "The {a} is open. In it, you see {l}.", "The {a} is closed.",
        "You close the {a}.", "You pick up the {a} from the {b}.", "You put the {a} in/on the {b}.",
        "You are facing the {l}. Next to it, you see nothing.", "You are carrying: a {a}.",
        "You are not carrying anything.", "You heat the {a} using the {b}.",
        "You turn on the {a}.", "You turn off the {a}.", a=NAME, b=NAME, l=LISTING,
    ),
)  # fmt: skip
PLAYED_IN_THE_HOUSE = st.tuples(
    st.just(SCIENCEWORLD),
    HOUSES,
    texts(
        "look around", "inventory", "wait", "0", "1", "", "dance", "pick up {a}", "put down {a}",
        "eat {a}", "look at {a}", "move {a} to {b}", a=THING, b=THING | ROOM,
    ),
    texts(
        HALLWAY, KITCHEN, OUTSIDE, "a substance called ice", f"{ASKED}\n0:\twait\n",
        "You move the {a} to the {b}.", "You pour the contents of the {a} into the {c}.",
        "You move to the {r}.", "The {a} was delicious.", "The {a} is now activated.",
        "In your inventory, you see:\n\ta {a}",
        a=THING, b=THING | ROOM | st.just("inventory"), c=THING, r=ROOM,
    ),
)  # fmt: skip
TURN = PLAYED_AT_HOME | PLAYED_IN_THE_HOUSE
REFUSALS = {
    "alfworld": ("Nothing happens.", ["", " The safe 1 is closed.", "\n\nOn the desk 1, nothing."]),
    "scienceworld": ("No known action matches that input.", ["", " ", "\n"]),
}  # fmt: skip


@given(TURN, st.sampled_from([0, 1, 2]))
def test_a_refused_action_changes_nothing(turn: Any, tail: int) -> None:
    env, belief, action, _ = turn
    refusal, tails = REFUSALS[env.name]
    after = env.update_belief(belief, action, refusal + tails[tail])
    # A menu that waits for a number is gone with any other command.
    waiting = belief["disambiguation"] if action.strip().isdecimal() else {}
    assert after == {
        **belief,
        "disambiguation": waiting if env.name == "scienceworld" else belief["disambiguation"],
    }
    assert after is not belief


@given(TURN)
def test_an_update_leaves_its_input_alone_and_is_always_the_same(turn: Any) -> None:
    env, belief, action, observation = turn
    before = copy.deepcopy(belief)
    after = env.update_belief(belief, action, observation)
    assert belief == before
    assert env.update_belief(belief, action, observation) == after
    for field in ("reachable", "holding", "visible", "places"):
        after[field].append("x 1")
    for spot in after["spots"].values():
        spot.append("x 1")
    assert belief == before


@given(PLAYED_AT_HOME)
def test_what_an_update_leaves_behind_is_coherent(turn: Any) -> None:
    env, belief, action, observation = turn
    after = env.update_belief(belief, action, observation)
    assert len(after["holding"]) <= 1
    # What went into the hand at this step is nowhere else.
    if after["holding"] != belief["holding"] and observation.startswith("You pick up"):
        assert not set(after["holding"]) & set(after["last_seen"])
    assert set(belief["searched"]) <= set(after["searched"])
    assert set(after["containers"].values()) <= {"open", "closed"}
    assert after["places"] == belief["places"]
