"""What a veto says would make an action possible, in three worlds that share no names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.guard.repair import BLANK, LONGEST, find_repair
from rpms.rules import check_action
from rpms.rules.check import check_manual
from rpms.vocabulary.belief import Belief
from tests.envs.playing import believing

HOUSE, LAB = "alfworld", "scienceworld"
HOME = ["cabinet 1", "countertop 1", "desk 1", "fridge 1", "microwave 1", "sofa 1"]
SMALL = "rpms.commands.world_template.world:WORLD"
BOXES = ["box 1", "drawer 1"]
AT_SOFA = {"location": "sofa 1", "searched": ["sofa 1"]}
ON_TABLE = {"searched": ["countertop 1", "sofa 1"], "last_seen": {"apple 1": "countertop 1"}}
CUPBOARD = {"containers": {"cupboard": "closed"},
            "last_seen": {"metal pot": "cupboard", "cupboard": "kitchen"}}  # fmt: skip


@pytest.mark.parametrize(
    ("world", "action", "fields", "words"),
    [
        (HOUSE, "open fridge 1", AT_SOFA, "first: go to fridge 1"),
        (HOUSE, "take apple 1 from fridge 1",
         {"location": "fridge 1", "containers": {"fridge 1": "closed"}}, "first: open fridge 1"),
        (HOUSE, "put apple 1 in/on fridge 1", {**ON_TABLE, "location": "countertop 1"},
         "first: take apple 1 from countertop 1"),
        (HOUSE, "heat apple 1 with microwave 1", {**ON_TABLE, "location": "sofa 1"},
         "first: go to countertop 1, then: take apple 1 from countertop 1"),
        (HOUSE, "heat apple 1 with microwave 1", AT_SOFA, "first: take apple 1 from <place>"),
        (HOUSE, "take apple 1 from countertop 1",
         {**ON_TABLE, "location": "countertop 1", "holding": ["mug 1"]},
         "first: put mug 1 in/on countertop 1"),
        (HOUSE, "take apple 1 from sofa 1", {**ON_TABLE, "location": "sofa 1"},
         "instead: go to countertop 1, then: take apple 1 from countertop 1"),
        (HOUSE, "use desklamp 1", {**AT_SOFA, "last_seen": {"desklamp 1": "desk 1"}},
         "first: go to desk 1"),
        (HOUSE, "examine desk 1", AT_SOFA, "first: go to desk 1"),
        (HOUSE, "go to sofa 1", AT_SOFA, "what it would do is done already"),
        (HOUSE, "open fridge 1", {"location": "fridge 1", "containers": {"fridge 1": "open"}},
         "what it would do is done already"),
        (HOUSE, "heat fork 1 with microwave 1", {"location": "sofa 1", "holding": ["fork 1"]},
         "no known action causes fork 1 to be something that can be heated"),
        (HOUSE, "go to moon 1", AT_SOFA,
         "there is no moon here; "
         "not searched yet: cabinet 1, countertop 1, desk 1, fridge 1, microwave 1"),
        (HOUSE, "open cabinet 2", {"location": "cabinet 1", "searched": HOME},
         "the only cabinet here: cabinet 1; all is searched"),
        (HOUSE, "look", AT_SOFA, ""),
        (HOUSE, "levitate", AT_SOFA, ""),
        (LAB, "go to kitchen",
         {"location": "hallway", "containers": {"door to kitchen": "closed"}},
         "first: open door to kitchen"),
        (LAB, "go to foundry", {"location": "hallway"}, "instead: teleport to foundry"),
        (LAB, "pick up metal pot", {"location": "kitchen", "visible": ["cupboard"], **CUPBOARD},
         "first: open cupboard"),
        (LAB, "pick up metal pot", {"location": "hallway", "visible": ["picture"], **CUPBOARD},
         "first: go to kitchen"),
        (LAB, "look in cupboard", {"location": "kitchen", "visible": ["cupboard"], **CUPBOARD},
         "first: open cupboard"),
        (LAB, "pick up oven", {"location": "kitchen", "visible": ["oven"]},
         "no known action causes oven to be something that can be moved"),
        (SMALL, "take key 1 from box 1", {"containers": {"box 1": "closed"}}, "first: open box 1"),
        (SMALL, "take key 1 from box 1",
         {"containers": {"box 1": "open", "drawer 1": "closed"}, "searched": ["box 1"],
          "last_seen": {"key 1": "drawer 1"}},
         "instead: open drawer 1, then: take key 1 from drawer 1"),
    ],
)  # fmt: skip
def test_what_a_veto_says_would_help(
    world: str, action: str, fields: dict[str, Any], words: str
) -> None:
    places = {} if world == LAB else {"places": WORLDS[world][0]}
    repair = find_repair(load_manual(world), action, believing(**places, **fields))
    assert (repair.words if repair else "") == words


LIGHTHOUSE = """
affordances: {pennant: [red pennant]}
predicates:
  ready: [["state(thing, filled)", closed(thing)]]
  at_mast: [[at(mast 1)]]
actions:
- {id: E-GO, name: go_to, syntax: "go to {place}", preconditions: [place(place), not at(place)],
   effects: [at(place)]}
- {id: E-CLOSE, name: close, syntax: "close {place}", preconditions: [open(place)],
   effects: [closed(place)]}
- {id: E-FILL, name: fill, syntax: "fill {place} with oil", effects: ["state(place, filled)"]}
- {id: E-LIGHT, name: light, syntax: "light {device}", preconditions: [ready(device)]}
- {id: E-HOIST, name: hoist, syntax: "hoist {object}", preconditions: [pennant(object), at_mast]}
- {id: E-HEAT, name: heat, syntax: heat boiler, effects: ["state(boiler, hot)"]}
- {id: E-SOUND, name: sound, syntax: sound horn of boiler, preconditions: ["state(boiler, hot)"]}
"""


@pytest.mark.parametrize(
    ("action", "fields", "words"),
    [
        ("light lamp 1", {"containers": {"lamp 1": "open"}, "flags": {"lamp 1": "filled"}},
         "first: close lamp 1"),
        ("light lamp 1", {"containers": {"lamp 1": "closed"}, "flags": {"lamp 1": "empty"}},
         "first: fill lamp 1 with oil"),
        ("hoist red pennant 1", {"location": "lamp 1"}, "first: go to mast 1"),
        ("hoist oil can 1", {"location": "mast 1"},
         "no known action causes oil can 1 to be pennant"),
        ("sound horn of boiler", {"flags": {"boiler": "cold"}}, "first: heat boiler"),
    ],
)  # fmt: skip
def test_predicates_of_a_world_s_own_and_things_by_their_names(
    action: str, fields: dict[str, Any], words: str, tmp_path: Path
) -> None:
    (tmp_path / "environment.yaml").write_text(LIGHTHOUSE)
    assert not check_manual(get_environment(SMALL).rules, over=tmp_path)
    belief = believing(places=["lamp 1", "mast 1"], **fields)
    repair = find_repair(load_manual(SMALL, str(tmp_path)), action, belief)
    assert repair is not None and repair.words == words


WORLDS: dict[str, tuple[list[str], list[str]]] = {
    HOUSE: (HOME, ["apple 1", "fork 1", "mug 1"]),
    LAB: (["hallway", "kitchen", "outside"], ["cupboard", "metal pot", "stove"]),
    SMALL: (BOXES, ["key 1", "torch 1"]),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str, Belief]:
    env = draw(st.sampled_from(sorted(WORLDS)))
    places, things = WORLDS[env]
    names = st.sampled_from([*places, *things])
    rule = draw(st.sampled_from(load_manual(env).actions))
    action = rule.syntax.format(**{name: draw(names) for name in rule.parameters})
    place = st.sampled_from(places)
    belief = believing(
        places=places,
        location=draw(st.none() | place),
        holding=draw(st.lists(st.sampled_from(things), max_size=1)),
        last_seen=draw(st.dictionaries(st.sampled_from(things), place, max_size=2)),
        containers=draw(st.dictionaries(names, st.sampled_from(["open", "closed"]), max_size=3)),
        searched=draw(st.lists(place, max_size=3, unique=True)),
        visible=draw(st.lists(st.sampled_from(things), max_size=2, unique=True)),
    )
    return env, action, belief


@settings(max_examples=50)
@given(cases())
def test_the_first_thing_to_do_is_never_known_to_be_impossible(
    case: tuple[str, str, Belief],
) -> None:
    """It can be done now for all that is known, or it has a blank for what is to be found out."""
    env, action, belief = case
    manual = load_manual(env)
    repair = find_repair(manual, action, belief)
    assert (repair is not None) == (check_action(manual, action, belief).verdict == "broken")
    if repair is None:
        return
    assert bool(repair.actions) == (repair.kind in ("first", "instead"))
    assert bool(repair.lacking) == (repair.kind in ("never", "elsewhere"))
    assert len(repair.actions) <= LONGEST and action not in repair.actions
    if repair.actions and BLANK not in repair.actions[0]:
        assert check_action(manual, repair.actions[0], belief).verdict in ("kept", "open")
        assert repair.playable == repair.actions[0]
    else:
        assert repair.playable == ""
