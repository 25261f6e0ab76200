from __future__ import annotations

import pytest

from rpms.envs.scienceworld.naming import find, same_thing, same_words, split_phase


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tin", ("tin", "")),
        ("liquid tin", ("tin", "liquid")),
        ("gaseous tin", ("tin", "gas")),
        ("solid unknown substance Y", ("unknown substance Y", "solid")),
        ("ice", ("water", "solid")),
        ("water", ("water", "liquid")),
        ("steam", ("water", "gas")),
        ("ice cream", ("ice cream", "")),
    ],
)
def test_the_phase_is_split_off_the_name(name: str, expected: tuple[str, str]) -> None:
    assert split_phase(name) == expected


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


@pytest.mark.parametrize(
    ("name", "target", "same"),
    [
        ("liquid tin", "tin", True),
        ("steam", "water", True),
        ("salt water", "water", True),
        ("liquid unknown substance C", "solid unknown substance c", True),
        ("tin cup", "tin", False),
        ("peach tree", "plant", False),
    ],
)
def test_what_can_be_the_target(name: str, target: str, same: bool) -> None:
    assert same_thing(name, target) is same


def test_an_exact_name_is_found_before_a_similar_one() -> None:
    assert find(["red apple", "apple"], "apple") == "apple"
    assert find(["red apple", "pear"], "apple") == "red apple"
    assert find(["apple"], "red apple") == "apple"
    assert find(["orange wire"], "orange") is None
    assert find([], "orange") is None
