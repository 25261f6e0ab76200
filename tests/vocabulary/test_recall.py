"""The outcome of a recalled memory."""

from __future__ import annotations

from typing import Any

import pytest

import rpms
from rpms.vocabulary.recall import RECALL_OUTCOMES


def test_dropping_names_a_stage_and_the_first_reason_stays() -> None:
    dropped = rpms.drop(rpms.memory(["look"]), "scf", "the hand is full")
    assert (dropped["dropped_by"], dropped["reason"]) == ("scf", "the hand is full")
    assert rpms.drop(dropped, "arbitration", "forbidden", "U-FAIL-001") == dropped


@pytest.mark.parametrize("stage", ["mine", ""])
def test_an_unknown_stage_is_refused_with_the_known_ones(stage: Any) -> None:
    with pytest.raises(rpms.RpmsError) as refused:
        rpms.drop(rpms.memory(["look"]), stage, "why")
    assert all(f"'{name}'" in str(refused.value) for name in RECALL_OUTCOMES[1:])
