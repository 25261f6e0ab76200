from __future__ import annotations

import pytest

from rpms.vocabulary.goal import PAPER, GoalSignature, hand, hand_was_empty, read_signature

PRINTED = "pick_heat_then_place_in_recep:mug:hot:cabinet"
GAMMA = GoalSignature("pick_heat_then_place_in_recep", "mug", "cabinet")


def test_gamma_is_type_object_and_destination() -> None:
    assert read_signature(PRINTED) == GAMMA


def test_gamma_matches_on_three_fields_only() -> None:
    # The printed form has four; the paper's formula, which we match on, has three.
    assert read_signature(PRINTED.replace(":hot:", ":cold:")) == GAMMA


@pytest.mark.parametrize("field", [0, 1, 3])
def test_gamma_tells_goals_apart(field: int) -> None:
    parts = PRINTED.split(":")
    parts[field] = "other"
    assert read_signature(":".join(parts)) != GAMMA


def test_a_world_says_what_its_fields_mean() -> None:
    assert read_signature("F3:melt:water", ("type", "destination", "object")) == (
        "F3",
        "water",
        "melt",
    )
    assert read_signature("light", ("type", "object")) == ("light", "", "")


def test_the_hand_is_read_from_the_printed_state() -> None:
    assert hand_was_empty("holding=none|open=fridge 1")
    assert not hand_was_empty("holding=mug 1|open=fridge 1")


def test_the_paper_s_compat_asks_whether_the_hand_is_empty() -> None:
    assert hand("holding=none") != hand("holding=mug 1|open=fridge 1")
    assert hand("holding=none|open=fridge 1") == hand("holding=none")
    assert (read_signature, hand) == PAPER


def test_signatures_are_keys() -> None:
    assert {read_signature(PRINTED): 1}[GAMMA] == 1
