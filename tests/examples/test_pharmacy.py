"""The worked example of the rules page: a policy as a company writes it, and its rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.pharmacy.world import WORLD
from rpms.guard import Call
from rpms.guard.conversation import ConversationTracker
from rpms.guard.examples import example_problems, field_problems, unexercised
from rpms.guard.sources import compare_policy

FOLDER = Path(__file__).parents[2] / "docs" / "pharmacy"


@pytest.fixture
def pharmacy() -> ConversationTracker:
    return ConversationTracker.open(WORLD)


def test_every_example_comes_out_as_written_and_every_rule_has_some(
    pharmacy: ConversationTracker,
) -> None:
    assert [*example_problems(pharmacy), *field_problems(pharmacy.manual)] == []
    assert [*unexercised(pharmacy)] == []


def test_every_sentence_has_a_rule_or_is_about_words(pharmacy: ConversationTracker) -> None:
    found = compare_policy(pharmacy.manual, (FOLDER / "policy.md").read_text(encoding="utf-8"))
    assert len(found.sentences) == 20 and len(found.cited) == 19
    assert found.uncited == [] and found.strange == [] and len(found.excused) == 1


def test_with_nothing_looked_up_nothing_is_given_out(pharmacy: ConversationTracker) -> None:
    for tool, given in (("dispense", {"customer_id": "C1", "prescription_id": "R1", "packs": 1}),
                        ("refund", {"customer_id": "C1", "sale_id": "S1", "to": "x"})):  # fmt: skip
        state = {**pharmacy.begin(), "context": {"role": "pharmacist"}}
        judgement = pharmacy.judge(state, Call(tool, given))  # type: ignore[arg-type]
        assert judgement.verdict == "refuse" and len(judgement.rules) > 3
        assert "get_" in judgement.repair
