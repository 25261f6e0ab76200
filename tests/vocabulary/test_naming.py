from __future__ import annotations

import pytest

from rpms.vocabulary.naming import (
    bare_name,
    find,
    find_name,
    is_a,
    refers_to,
    same_thing,
    same_words,
    words_of,
)  # fmt: skip

KINDS = frozenset({"cup", "pot", "blast furnace", "door"})


@pytest.mark.parametrize(
    ("phrase", "name"),
    [
        ("mug 1", "mug 1"),
        ("water in metal pot", "water"),
        ("Metal Pot containing water", "metal pot"),
        ("flower pot 9 containing apple tree and soil", "flower pot 9"),
        ("the door to kitchen", "door"),
        ("book (Beowulf)", "book"),
        ("inclined plane with a steel surface", "inclined plane with a steel surface"),
        ("orange on orange tree", "orange"),
    ],
)
def test_the_thing_itself(phrase: str, name: str) -> None:
    assert bare_name(phrase) == name


def test_kinds() -> None:
    of_a_kind = {
        True: ("cup", "wood cup", "cup 3 in cupboard", "flower pot 2", "door to kitchen",
               "art studio door"),
        None: ("furnace",),
        False: ("cupboard", "tea in cup", "potato"),
    }  # fmt: skip
    for expected, phrases in of_a_kind.items():
        assert {phrase: is_a(phrase, KINDS) for phrase in phrases} == dict.fromkeys(
            phrases, expected
        )
    assert is_a("cup", frozenset()) is False


RELATIONS = [
    # What a phrase can stand for.
    (same_thing, [("apple in bowl", "red apple"), ("red apple", "red apple"),
                  ("pot", "flower pot 2"), ("flower pot", "flower pot 2")],
     [("flower pot 3", "flower pot 2"), ("red", "red apple"), ("red apple", "apple")]),
    # What may mean the goal's object.
    (refers_to, [("tin", "tin"), ("liquid tin", "tin"), ("tin in ceramic cup", "tin"),
                 ("unknown substance b in inventory", "unknown substance B"),
                 ("sandwich", "banana sandwich")],
     [("cup containing tin", "tin"), ("unknown substance c", "unknown substance B"),
      ("sugar", "sugar water"), ("tinfoil", "tin")]),
    # What can be printed of a thing.
    (same_words, [("red apple", "apple"), ("apple", "apple"), ("adult bee", "bee 3"),
                  ("giant tortoise egg", "giant tortoise"), ("egg", "egg"),
                  ("round green pea seed", "pea seed"),
                  ("unknown substance B", "unknown substance b")],
     [("apple", "red apple"), ("orange wire", "orange"), ("orange juice", "orange"),
      ("flower pot 3", "flower pot 2")]),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "related", "unrelated"), RELATIONS)
def test_a_phrase_and_a_name(relation, related, unrelated) -> None:  # type: ignore[no-untyped-def]
    assert [pair for pair in related if relation(*pair) is not True] == []
    assert [pair for pair in unrelated if relation(*pair) is not False] == []


def test_a_known_name_is_found_if_there_is_just_one() -> None:
    assert find_name("cupboard", ["large cupboard", "stove"]) == "large cupboard"
    assert find_name("cup", ["tin cup", "glass cup"]) is None
    assert find_name("cup", ["cup", "glass cup"]) == "cup"
    assert find_name("lamp", ["cup"]) is None


def test_telling_words() -> None:
    assert words_of(["The water in a metal pot", "mug 1"]) == {"water", "metal", "pot", "mug"}


def test_an_exact_name_is_found_before_a_similar_one() -> None:
    assert find(["red apple", "apple"], "apple") == "apple"
    assert find(["red apple", "pear"], "apple") == "red apple"
    assert find(["apple"], "red apple") == "apple"
    assert find(["orange wire"], "orange") is None
    assert find([], "orange") is None
