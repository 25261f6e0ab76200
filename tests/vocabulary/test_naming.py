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
)

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


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("cup", True),
        ("wood cup", True),
        ("cup 3 in cupboard", True),
        ("flower pot 2", True),
        ("door to kitchen", True),
        ("art studio door", True),
        ("furnace", None),
        ("cupboard", False),
        ("tea in cup", False),
        ("potato", False),
    ],
)
def test_kinds(phrase: str, expected: bool | None) -> None:
    assert is_a(phrase, KINDS) is expected


def test_nothing_is_of_no_kind() -> None:
    assert is_a("cup", frozenset()) is False


@pytest.mark.parametrize(
    ("phrase", "name", "expected"),
    [
        ("apple in bowl", "red apple", True),
        ("red apple", "red apple", True),
        ("pot", "flower pot 2", True),
        ("flower pot", "flower pot 2", True),
        ("flower pot 3", "flower pot 2", False),
        ("red", "red apple", False),
        ("red apple", "apple", False),
    ],
)
def test_what_a_phrase_can_stand_for(phrase: str, name: str, expected: bool) -> None:
    assert same_thing(phrase, name) is expected


@pytest.mark.parametrize(
    ("phrase", "thing", "expected"),
    [
        ("tin", "tin", True),
        ("liquid tin", "tin", True),
        ("tin in ceramic cup", "tin", True),
        ("cup containing tin", "tin", False),
        ("unknown substance b in inventory", "unknown substance B", True),
        ("unknown substance c", "unknown substance B", False),
        ("sandwich", "banana sandwich", True),
        ("sugar", "sugar water", False),
        ("tinfoil", "tin", False),
    ],
)
def test_what_may_mean_the_goal_s_object(phrase: str, thing: str, expected: bool) -> None:
    assert refers_to(phrase, thing) is expected


def test_a_known_name_is_found_if_there_is_just_one() -> None:
    assert find_name("cupboard", ["large cupboard", "stove"]) == "large cupboard"
    assert find_name("cup", ["tin cup", "glass cup"]) is None
    assert find_name("cup", ["cup", "glass cup"]) == "cup"
    assert find_name("lamp", ["cup"]) is None


def test_telling_words() -> None:
    assert words_of(["The water in a metal pot", "mug 1"]) == {"water", "metal", "pot", "mug"}


@pytest.mark.parametrize(
    ("printed", "name", "same"),
    [
        ("red apple", "apple", True),
        ("apple", "apple", True),
        ("apple", "red apple", False),
        ("orange wire", "orange", False),
        ("orange juice", "orange", False),
        ("giant tortoise egg", "giant tortoise", True),
        ("egg", "egg", True),
        ("adult bee", "bee 3", True),
        ("flower pot 3", "flower pot 2", False),
        ("round green pea seed", "pea seed", True),
        ("unknown substance B", "unknown substance b", True),
    ],
)
def test_what_can_be_printed_of_a_thing(printed: str, name: str, same: bool) -> None:
    assert same_words(printed, name) is same


def test_an_exact_name_is_found_before_a_similar_one() -> None:
    assert find(["red apple", "apple"], "apple") == "apple"
    assert find(["red apple", "pear"], "apple") == "red apple"
    assert find(["apple"], "red apple") == "apple"
    assert find(["orange wire"], "orange") is None
    assert find([], "orange") is None
