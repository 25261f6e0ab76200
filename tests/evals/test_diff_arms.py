"""Arms at the same states of an erring player: every mechanism changes some prompts."""

from __future__ import annotations

import json

import pytest

from rpms.evals.running.diff_arms import diff_arms, played_states
from rpms.vocabulary.context import RunContext
from tests.command_line import in_process

D = RunContext()
PAIRS: dict[str, RunContext] = {
    "none": D.with_(arbitration="none"),
    "soft": D.with_(arbitration="soft"),
    "hard": D.with_(arbitration="hard"),
    "no filter": D.with_(scf="off"),
    "extras": D.with_(arbitration_extras=True),
    "recorded": D.with_(memory_form="recorded"),
}


@pytest.mark.engine
@pytest.mark.xdist_group("jvm")
def test_no_mechanism_is_without_effect_in_both_worlds() -> None:
    arms = {"D": D, **PAIRS}
    homes = diff_arms(arms, played_states(D, "alfworld", limit=12))
    rooms = diff_arms(arms, played_states(D, "scienceworld", limit=4, max_steps=15))
    for home, room in zip(homes, rooms, strict=True):
        assert home.states > 100 and room.states > 30
        assert home.differing + room.differing > 0, home.second


def test_an_arm_does_not_differ_from_itself_and_each_difference_has_an_example() -> None:
    arms = {"D": D, "again": D, "C": RunContext.for_condition("C")}
    same, other = diff_arms(arms, played_states(D, "alfworld", limit=2))
    assert (same.differing, same.example) == (0, [])
    assert other.differing == other.states > 5
    assert any(line.startswith("-[RULES") for line in other.example) and other.where


def test_the_command_prints_shares_and_refuses_one_arm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rpms = in_process(monkeypatch, capsys)
    found = rpms("diff-arms", "D", "none:arbitration=none", "--limit", "1", "--json")
    (pair,) = json.loads(found.out)
    assert (pair["first"], pair["second"]) == ("D", "none") and pair["states"] > 2
    assert pair["share"] == pair["differing"] / pair["states"]
    refused = rpms("diff-arms", "D")
    assert refused.code == 2 and "two or more arms" in refused.err
