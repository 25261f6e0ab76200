from __future__ import annotations

from typing import Any

import pytest

from rpms.rules.predicates import (
    Wording,
    World,
    evaluate,
    parse_predicate,
    phrase,
)
from tests.envs.playing import believing

WORLD = World(
    affordances={"heatable": frozenset({"mug", "apple"})},
    contains={"desk": frozenset({"mug"}), "toaster": frozenset()},
    built_together=[frozenset({"desk", "drawer"})],
    predicates={
        "at_hand": [["holding(thing)"], ["at(thing)"]],
        "ready": [["hand_empty", "open(thing)"]],
    },
    wording=Wording(phrases={"at_hand": "{0} is within reach", "at": "stand before {0}"}),
)


def test_reading_a_predicate_and_writing_it_again() -> None:
    assert parse_predicate("hand_empty") == (True, "hand_empty", ())
    assert parse_predicate("not at(place)") == (False, "at", ("place",))
    assert parse_predicate(" in( object ,place ) ") == (True, "in", ("object", "place"))
    for text in ("hand_empty", "not at(place)", "in(object, place)"):
        assert str(parse_predicate(text)) == text
    for text in ("", "at(place", "at place", "not not at(x)", "in((a), b)", "at(x) and open(x)"):
        with pytest.raises(ValueError, match="is not a predicate"):
            parse_predicate(text)


def truth(text: str, **fields: Any) -> bool | None:
    return evaluate(
        parse_predicate(text), believing(**fields), WORLD, {"p": "desk 1", "o": "mug 1"}
    )


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        # at: another place may share the spot unless a look around or the furniture rules it out
        ("at(p)", {"location": "desk 1"}, True),
        ("at(p)", {"location": "drawer 1", "reachable": ["desk 1"]}, True),
        ("at(p)", {"location": None}, False),
        ("at(p)", {"location": "bed 1"}, False),
        ("at(p)", {"location": "drawer 1"}, None),
        ("at(p)", {"location": "drawer 1", "spots": {"drawer 1": ["drawer 1"]}}, False),
        # place
        ("place(p)", {"places": ["desk 1"]}, True),
        ("place(p)", {"places": ["desk 2"]}, False),
        # hand
        ("holding(o)", {"holding": ["mug 1"]}, True),
        ("holding(o)", {"holding": ["mug 2"]}, False),
        ("hand_empty", {}, True),
        ("hand_empty", {"holding": ["mug 1"]}, False),
        # doors: unknown until the place was seen, none if its contents were seen without one
        ("open(p)", {"containers": {"desk 1": "open"}}, True),
        ("open(p)", {"containers": {"desk 1": "closed"}}, False),
        ("open(p)", {}, None),
        ("open(p)", {"searched": ["desk 1"]}, False),
        ("closed(p)", {"containers": {"desk 1": "closed"}}, True),
        ("closed(p)", {"containers": {"desk 1": "open"}}, False),
        ("closed(p)", {}, None),
        ("closed(p)", {"searched": ["desk 1"]}, False),
        ("accessible(p)", {"containers": {"desk 1": "open"}}, True),
        ("accessible(p)", {"containers": {"desk 1": "closed"}, "searched": ["desk 1"]}, False),
        ("accessible(p)", {"searched": ["desk 1"]}, True),
        ("accessible(p)", {}, None),
        # in
        ("in(o, p)", {"last_seen": {"mug 1": "desk 1"}}, True),
        ("in(o, p)", {"last_seen": {"mug 1": "bed 1"}, "searched": ["desk 1"]}, False),
        ("in(o, p)", {"searched": ["desk 1"]}, False),
        ("in(o, p)", {"holding": ["mug 1"]}, False),
        ("in(o, p)", {}, None),
        # here and at hand
        ("here(o)", {"location": "desk 1", "last_seen": {"mug 1": "desk 1"}}, True),
        ("here(o)", {"location": "bed 1", "last_seen": {"mug 1": "desk 1"}}, False),
        ("here(o)", {"location": "drawer 1", "last_seen": {"mug 1": "desk 1"}}, None),
        ("here(o)", {"location": "desk 1"}, None),
        ("here(o)", {"location": "desk 1", "holding": ["mug 1"]}, False),
        ("here(o)", {"location": None}, False),
        ("at_hand(o)", {"holding": ["mug 1"]}, True),
        ("at_hand(p)", {"location": "desk 1"}, True),
        ("at_hand(p)", {"location": "bed 1"}, False),
        ("at_hand(p)", {"location": "drawer 1"}, None),
        ("ready(p)", {"containers": {"desk 1": "open"}}, True),
        ("ready(p)", {"containers": {"desk 1": "open"}, "holding": ["mug 1"]}, False),
        ("ready(p)", {}, None),
        # kinds and static knowledge
        ("kind(p, desk)", {}, True),
        ("kind(p, fridge)", {}, False),
        ("can_contain(p, o)", {}, True),
        ("can_contain(o, p)", {}, False),
        ("heatable(o)", {}, True),
        ("heatable(p)", {}, False),
        # states are seldom known
        ("state(o, hot)", {}, None),
        ("state(o, hot)", {"flags": {"mug 1": "hot"}}, True),
        ("state(o, hot)", {"flags": {"mug 1": "cool"}}, False),
        ("here_closed", {"location": "desk 1", "containers": {"desk 1": "closed"}}, True),
        ("here_closed", {"location": "desk 1", "containers": {"desk 1": "open"}}, False),
        ("here_closed", {}, False),
        # in view: names are loose, so only what nothing in a known view resembles is denied
        ("visible(o)", {"visible": ["mug 1"]}, True),
        ("visible(o)", {"holding": ["mug 1"]}, True),
        ("visible(o)", {"visible": ["mug 2"], "location": "hall"}, None),
        ("visible(o)", {"visible": ["pan 1"], "location": "hall"}, False),
        ("visible(o)", {"location": "hall"}, None),
        ("adjacent(p)", {"location": "hall"}, None),
        ("unclosed(p)", {"containers": {"desk 1": "open"}}, True),
        ("unclosed(p)", {"containers": {"desk 1": "closed"}}, False),
        ("unclosed(p)", {"visible": ["desk 1"]}, True),
        ("unclosed(p)", {}, None),
        ("activated(o)", {"flags": {"mug 1": "on"}}, True),
        ("activated(o)", {"flags": {"mug 1": "deactivated"}}, False),
        ("activated(o)", {"flags": {"mug 1": "hot"}}, None),
        ("activated(o)", {}, None),
        ("combined(p)", {"last_seen": {"mug 1": "desk 1", "pan 1": "desk 1"}}, True),
        ("combined(p)", {"last_seen": {"mug 1": "desk 1"}}, None),
        ("changed(o)", {}, None),
        ("looked_around", {"visible": ["mug 1"]}, True),
        ("looked_around", {}, False),
    ],
)
def test_the_three_truths(text: str, fields: dict[str, Any], expected: bool | None) -> None:
    assert truth(text, **fields) is expected
    denied = None if expected is None else not expected
    assert truth(f"not {text}", **fields) is denied


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("at_hand(p)", "desk 1 is within reach"),
        ("at(p)", "stand before desk 1"),
        ("not at(p)", "not be at desk 1 already"),
        ("holding(o)", "hold mug 1"),
        ("hand_empty", "hands empty"),
        ("in(o, p)", "mug 1 is in/on desk 1"),
        ("kind(p, microwave)", "desk 1 is a microwave"),
        ("heatable(o)", "mug 1 is heatable"),
        ("not holding(o)", "not: hold mug 1"),
        ("not looked_around", "not: looked around"),
    ],
)
def test_predicates_in_words(text: str, words: str) -> None:
    assert phrase(parse_predicate(text), {"p": "desk 1", "o": "mug 1"}, WORLD) == words
