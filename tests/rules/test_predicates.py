from __future__ import annotations

from typing import Any

import pytest

from rpms.envs.manuals import load_manual
from rpms.rules.predicates import StaticFacts, Wording, evaluate, parse_predicate, reading
from rpms.rules.wording import contrary, need, statement
from tests.envs.playing import believing

WORLD = StaticFacts(
    affordances={"heatable": frozenset({"mug", "apple"})},
    contains={"desk": frozenset({"mug"}), "toaster": frozenset()},
    built_together=[frozenset({"desk", "drawer"})],
    predicates={
        "at_hand": [["holding(thing)"], ["at(thing)"]],
        "ready": [["hand_empty", "open(thing)"]],
    },
    wording=Wording(
        phrases={
            "at_hand": "{0} is within reach",
            "in": "{0} belongs to {1}",
            "fixed": "{0} is fixed in its place",
            "not fixed": "{0} is something that can be moved",
            "ready": "your hand is empty and {0} is open",
            "near": "you hold {0} or {0} is where you are or next to you",
        }
    ),
)
NAMES = {"p": "desk 1", "o": "mug 1", "n": "5"}


def test_reading_a_predicate_and_writing_it_again() -> None:
    assert parse_predicate("hand_empty") == (True, "hand_empty", ())
    assert parse_predicate("not at(place)") == (False, "at", ("place",))
    assert parse_predicate(" in( object ,place ) ") == (True, "in", ("object", "place"))
    for text in ("hand_empty", "not at(place)", "in(object, place)"):
        assert str(parse_predicate(text)) == text
    for text in ("", "at(place", "at place", "not not at(x)", "in((a), b)", "at(x) and open(x)"):
        with pytest.raises(ValueError, match="is not a predicate"):
            parse_predicate(text)


PLACES = ["desk 1", "drawer 1"]


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
        ("at(p)", {"location": "drawer 1", "places": PLACES}, None),
        ("at(p)", {"location": "drawer 1", "places": ["drawer 1"]}, False),
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
        (
            "in(o, p)",
            {
                "last_seen": {"mug 1": "bed 1"},
                "also_at": {"mug 1": ["desk 1"]},
                "searched": ["desk 1"],
            },
            True,
        ),
        (
            "in(o, p)",
            {
                "last_seen": {"mug 1": "bed 1"},
                "also_at": {"mug 1": ["sofa 1"]},
                "searched": ["desk 1"],
            },
            False,
        ),
        ("in(o, p)", {"holding": ["mug 1"]}, False),
        ("in(o, p)", {}, None),
        # here and at hand
        ("here(o)", {"location": "desk 1", "last_seen": {"mug 1": "desk 1"}}, True),
        ("here(o)", {"location": "bed 1", "last_seen": {"mug 1": "desk 1"}}, False),
        (
            "here(o)",
            {"location": "drawer 1", "places": PLACES, "last_seen": {"mug 1": "desk 1"}},
            None,
        ),
        ("here(o)", {"location": "desk 1"}, None),
        ("here(o)", {"location": "desk 1", "holding": ["mug 1"]}, False),
        ("here(o)", {"location": None}, False),
        ("at_hand(o)", {"holding": ["mug 1"]}, True),
        ("at_hand(p)", {"location": "desk 1"}, True),
        ("at_hand(p)", {"location": "bed 1"}, False),
        ("at_hand(p)", {"location": "drawer 1", "places": PLACES}, None),
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
    ("text", "fact", "needed"),
    [
        ("at(p)", "you are at desk 1", "you to be at desk 1"),
        ("not at(p)", "you are somewhere else than desk 1", "you to be somewhere else than desk 1"),
        ("holding(o)", "you hold mug 1", "you to hold mug 1"),
        ("not holding(o)", "you do not hold mug 1", "you not to hold mug 1"),
        ("hand_empty", "your hand is empty", "your hand to be empty"),
        ("not hand_empty", "your hand is full", "your hand to be full"),
        ("open(p)", "desk 1 is open", "desk 1 to be open"),
        ("not open(p)", "desk 1 is not open", "desk 1 not to be open"),
        ("accessible(p)", "desk 1 is open (if it has a door)",
         "desk 1 to be open (if it has a door)"),
        ("not accessible(p)", "desk 1 is closed", "desk 1 to be closed"),
        ("unclosed(p)", "desk 1 is not closed", "desk 1 not to be closed"),
        ("not unclosed(p)", "desk 1 is closed", "desk 1 to be closed"),
        ("here(o)", "mug 1 is where you are", "mug 1 to be where you are"),
        ("can_contain(p, o)", "desk 1 is able to hold mug 1", "desk 1 to be able to hold mug 1"),
        ("activated(o)", "mug 1 is on", "mug 1 to be on"),
        ("not activated(o)", "mug 1 is off", "mug 1 to be off"),
        ("state(o, hot)", "mug 1 is hot", "mug 1 to be hot"),
        ("not state(o, hot)", "mug 1 is not hot", "mug 1 not to be hot"),
        ("kind(p, microwave)", "desk 1 is a microwave", "desk 1 to be a microwave"),
        ("kind(p, oven)", "desk 1 is an oven", "desk 1 to be an oven"),
        ("not kind(p, oven)", "desk 1 is not an oven", "desk 1 not to be an oven"),
        ("heatable(o)", "mug 1 is heatable", "mug 1 to be heatable"),
        ("not looked_around", "you are not informed about what is here",
         "you not to be informed about what is here"),
        # A limit is about the argument, and what was given is a fact.
        ("at_most(n, 2)", "n is at most 2", "n to be at most 2"),
        # In a world's own words, also where they deny, have no verb to turn, or several clauses.
        ("at_hand(p)", "desk 1 is within reach", "desk 1 to be within reach"),
        ("not at_hand(p)", "desk 1 is not within reach", "desk 1 not to be within reach"),
        ("fixed(o)", "mug 1 is fixed in its place", "mug 1 to be fixed in its place"),
        ("not fixed(o)", "mug 1 is something that can be moved",
         "mug 1 to be something that can be moved"),
        ("in(o, p)", "mug 1 belongs to desk 1", "it to be so that mug 1 belongs to desk 1"),
        ("not in(o, p)", "it is not so that mug 1 belongs to desk 1",
         "it not to be so that mug 1 belongs to desk 1"),
        ("ready(p)", "your hand is empty and desk 1 is open",
         "your hand to be empty and desk 1 to be open"),
        ("not ready(p)", "it is not so that your hand is empty and desk 1 is open",
         "it not to be so that your hand is empty and desk 1 is open"),
        ("near(o)", "you hold mug 1 or mug 1 is where you are or next to you",
         "you to hold mug 1 or mug 1 to be where you are or next to you"),
    ],
)  # fmt: skip
def test_a_predicate_as_a_fact_and_as_a_need(text: str, fact: str, needed: str) -> None:
    predicate = parse_predicate(text)
    assert statement(predicate, NAMES, WORLD) == fact
    assert need(predicate, NAMES, WORLD) == needed


@pytest.mark.parametrize(
    "text",
    [
        f"{no}{each.name}({', '.join('op'[: each.arity])})".replace("()", "")
        for each in reading("things")
        for no in ("", *(["not "] if each.denied else []))
    ],
)
def test_no_need_reads_as_a_fact_and_nothing_is_its_own_contrary(text: str) -> None:
    """Whatever is denied or needed: the sentence of a fact is printed for the fact alone."""
    plain = StaticFacts(affordances={}, contains={})
    predicate = parse_predicate(text)
    denied = predicate._replace(positive=not predicate.positive)
    words = [statement(each, NAMES, plain) for each in (predicate, denied)]
    words += [need(each, NAMES, plain) for each in (predicate, denied)]
    assert len({*words}) == 4, words
    assert all(" to be " in f"{each} " or " to hold " in each for each in words[2:]), words
    assert not any(" to be " in each.replace("known to be", "") for each in words[:2]), words


@pytest.mark.parametrize(
    ("text", "fields", "instead"),
    [
        ("at(p)", {"location": "bed 1"}, "you are at bed 1"),
        ("at(p)", {}, "you are at none of the places yet"),
        ("not at(p)", {"location": "desk 1"}, "you are at desk 1 already"),
        ("holding(o)", {"holding": ["cup 1"]}, "you hold cup 1"),
        ("holding(o)", {}, "you hold nothing"),
        ("hand_empty", {"holding": ["cup 1"]}, "you hold cup 1"),
        ("open(p)", {"containers": {"desk 1": "closed"}}, "desk 1 is closed"),
        ("open(p)", {"searched": ["desk 1"]}, "desk 1 has no door"),
        ("closed(p)", {"containers": {"desk 1": "open"}}, "desk 1 is open"),
        ("closed(p)", {"searched": ["desk 1"]}, "desk 1 has no door"),
        ("accessible(p)", {"containers": {"desk 1": "closed"}}, "desk 1 is closed"),
        ("unclosed(p)", {"containers": {"desk 1": "closed"}}, "desk 1 is closed"),
        # The door may be known under a longer name than the one that was said.
        ("unclosed(cupboard)", {"containers": {"red cupboard": "closed"}}, "cupboard is closed"),
        ("here(o)", {"location": "bed 1", "last_seen": {"mug 1": "desk 1"}},
         "mug 1 was last seen at desk 1"),
        ("here(o)", {"location": "bed 1", "holding": ["mug 1"]}, "you hold mug 1"),
        ("here(o)", {}, "you are at none of the places yet"),
        ("in(o, p)", {"holding": ["mug 1"]}, "you hold mug 1"),
        ("in(o, p)", {"last_seen": {"mug 1": "bed 1"}, "searched": ["desk 1"]},
         "mug 1 was last seen at bed 1"),
        ("in(o, p)", {"searched": ["desk 1"]}, "it was not there when desk 1 was searched"),
        ("can_contain(p, apple 1)", {}, "a desk does not take an apple"),
        ("at_most(n, 2)", {}, "n is 5"),
        ("activated(o)", {"flags": {"mug 1": "off"}}, "mug 1 is off"),
        ("not activated(o)", {"flags": {"mug 1": "on"}}, "mug 1 is on"),
        ("state(o, hot)", {"flags": {"mug 1": "cool"}}, "mug 1 is cool"),
        ("visible(o)", {"location": "hall", "containers": {"desk 1": "closed"},
                        "last_seen": {"mug 1": "desk 1"}}, "it is in desk 1, which is closed"),
        # Nothing more is known than that it is not so.
        ("visible(o)", {"location": "hall", "visible": ["pan 1"]}, ""),
        ("heatable(p)", {}, ""),
        ("kind(p, oven)", {}, ""),
        ("not holding(o)", {"holding": ["mug 1"]}, ""),
    ],
)  # fmt: skip
def test_what_is_so_instead_of_an_unmet_need(
    text: str, fields: dict[str, Any], instead: str
) -> None:
    predicate, belief = parse_predicate(text), believing(**fields)
    plain = WORLD._replace(wording=Wording())
    assert evaluate(predicate, belief, plain, NAMES) is False
    assert contrary(predicate, belief, plain, NAMES) == instead


def test_what_a_world_words_itself_is_not_contradicted_in_our_words() -> None:
    own = WORLD._replace(wording=Wording(phrases={"holding": "{0} is locked", "not at": "x is y"}))
    belief = believing(location="bed 1", holding=["cup 1"])
    for text in ("holding(o)", "at(p)"):
        predicate = parse_predicate(text)
        assert contrary(predicate, belief, own, NAMES) == ""
        assert contrary(predicate, belief, WORLD, NAMES) != ""


@pytest.mark.parametrize("world", ["alfworld", "scienceworld"])
def test_every_need_of_a_manual_reads_as_a_need(world: str) -> None:
    """With "is", "are" or "hold" left in its main clause it would read as a fact."""
    manual = load_manual(world)
    predicates = {p for rule in manual.actions for p in rule.needs}
    for predicate in predicates:
        words = need(predicate, {}, manual.facts)
        assert " to be " in words or " to hold " in words, words
        assert "so that" not in words, f"{predicate}: its statement has no verb to turn"
    assert len(predicates) >= 15
