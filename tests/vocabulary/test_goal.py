from __future__ import annotations

import pytest

from rpms.vocabulary.goal import PAPER, GoalSignature, hand, hand_was_empty, read_signature

PRINTED = "pick_heat_then_place_in_recep:mug:hot:cabinet"
GAMMA = GoalSignature("pick_heat_then_place_in_recep", "mug", "cabinet")


@pytest.mark.parametrize(("field", "same"), [(0, False), (1, False), (2, True), (3, False)])
def test_gamma_is_type_object_and_destination(field: int, same: bool) -> None:
    # The printed form has four fields; the paper's formula, which we match on, has three.
    assert {read_signature(PRINTED): 1}[GAMMA] == 1
    parts = PRINTED.split(":")
    parts[field] = "other"
    assert (read_signature(":".join(parts)) == GAMMA) is same


def test_a_world_says_what_its_fields_mean() -> None:
    fields = ("type", "destination", "object")
    assert read_signature("F3:melt:water", fields) == ("F3", "water", "melt")
    assert read_signature("light", ("type", "object")) == ("light", "", "")


def test_the_paper_s_compat_asks_whether_the_hand_is_empty() -> None:
    empty, full = "holding=none|open=fridge 1", "holding=mug 1|open=fridge 1"
    assert hand_was_empty(empty) and not hand_was_empty(full)
    assert hand("holding=none") == hand(empty) != hand(full)
    assert (read_signature, hand) == PAPER
