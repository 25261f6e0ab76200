"""Schemas are told by uses alone: no manual is asked."""

from __future__ import annotations

from rpms.memory_store import schemas
from rpms.memory_store.entries import Use


def use(worked: bool, count: int = 1, after: tuple[str, ...] = (), **before: bool) -> Use:
    named = {name.replace("_", "(") + ")": held for name, held in before.items()}
    return Use(before=named, worked=worked, after=list(after), count=count)


LEFT = ("holding(object)", "at(place)")
COOL = [
    use(True, 5, LEFT, holding_object=True, at_place=True, open_place=True),
    use(True, 2, LEFT, holding_object=True, at_place=True, open_place=False),
    use(False, 3, holding_object=True, at_place=False),
    use(False, 1, holding_object=False, at_place=True),
]


def test_needs_held_at_every_success_and_explain_the_refusals() -> None:
    assert schemas.preconditions(COOL) == ["at(place)", "holding(object)"]


def test_without_refusals_nothing_is_known_to_be_needed() -> None:
    assert schemas.preconditions(COOL[:2]) == []
    assert schemas.preconditions([]) == [] and schemas.effects([]) == []


def test_a_refusal_that_nothing_explains_adds_nothing() -> None:
    odd = use(False, 9, holding_object=True, at_place=True)
    assert schemas.preconditions([*COOL, odd]) == ["at(place)", "holding(object)"]
    assert schemas.confidence([*COOL, odd]) == 0.55
    assert schemas.confidence(COOL) == 1.0


def test_the_hand_is_told_although_it_did_not_change() -> None:
    """The paper's headline effect: after cooling the object is still held."""
    assert schemas.effects(COOL) == ["holding(object)"]


def test_what_became_true_every_time_is_an_effect() -> None:
    opened = [use(True, 2, ("open(place)", "here(place)"), open_place=False)]
    assert schemas.effects(opened) == ["open(place)"]
    assert schemas.effects([*opened, use(True, 1, (), open_place=False)]) == []


def test_one_kind_only() -> None:
    assert schemas.only_kind({"fridge": 3}) == "fridge"
    assert schemas.only_kind({"fridge": 2}) == "" and schemas.only_kind({"a": 3, "b": 1}) == ""
