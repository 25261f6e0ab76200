"""Manuals without some rules or tiers: what is gone is gone from everything, and nothing else."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.guard.procedure import applicable_actions, find_violation
from rpms.rules import (
    Diagnosis,
    Manual,
    already_done,
    can_work,
    check_action,
    explain_rejection,
    forbidden_by,
    match_action,
    needed_actions,
)
from rpms.rules.ablate import ids_of, leave_out, names_in
from rpms.rules.conditions import DecisionPoint
from rpms.rules.loader import overlay
from rpms.rules.manual import TIERS
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.errors import RpmsError

ENV, MANUAL = get_environment("alfworld"), load_manual("alfworld")
GOAL = ENV.parse_goal("put a hot apple in countertop")
HOME = Belief(**{**empty_belief(), "places": ["fridge 1", "microwave 1", "countertop 1"],
                 "location": "microwave 1", "holding": ["apple 1"],
                 "containers": {"microwave 1": "open"}})  # type: ignore[typeddict-item] # fmt: skip
OWN = """
tier: mine
rules:
  - {id: L-001, text: Sing.}
  - {id: L-002, text: Dance., for: [pick_heat_then_place_in_recep]}
"""


@cache
def with_own_tier(world: str) -> Manual:
    with TemporaryDirectory() as folder:
        (Path(folder) / "mine.yaml").write_text(OWN)
        return overlay(load_manual(world), Path(folder))


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_what_is_left_out_is_all_that_is_missing(data: st.DataObject) -> None:
    whole = with_own_tier(data.draw(st.sampled_from(["alfworld", "scienceworld"])))
    by_tier = ids_of(whole)
    every = [*by_tier, *(rule for rules in by_tier.values() for rule in rules)]
    names = data.draw(st.sets(st.sampled_from(every)))
    gone = names.union(*(by_tier[name] for name in names & by_tier.keys()))
    goal = {**GOAL, "type": data.draw(st.sampled_from(sorted(whole.domain.procedures)))}
    part = leave_out(whole, names)
    shown = part.active(goal, HOME)  # type: ignore[arg-type]
    assert shown == {
        tier: [line for line in lines if line["id"] not in gone]
        for tier, lines in whole.active(goal, HOME).items()  # type: ignore[arg-type]
    }
    forbidden = [pattern for pattern in whole.forbidden if pattern.id not in gone]
    assert part.forbidden == ([] if "environment" in names else forbidden)
    # What replies are read by is always whole.
    assert [rule.syntax for rule in part.actions] == [rule.syntax for rule in whole.actions]
    assert whole.active(goal, HOME)["mine"]  # type: ignore[arg-type]


def test_a_sentence_takes_its_pattern_with_it() -> None:
    action = "put apple 1 in/on microwave 1"
    assert forbidden_by(MANUAL, action, GOAL) == "D-HEAT-001"
    for names in (["D-HEAT-001"], ["domain"], ["environment"]):
        assert forbidden_by(leave_out(MANUAL, names), action, GOAL) is None, names


@pytest.mark.parametrize("name", ["O-ACT-001", "environment"])
def test_of_an_action_only_its_form_stays(name: str) -> None:
    part, action = leave_out(MANUAL, [name]), "go to microwave 1"
    assert check_action(MANUAL, action, HOME).verdict == "broken"
    assert already_done(MANUAL, action, HOME)
    assert match_action(part, action) == match_action(MANUAL, action)
    assert check_action(part, action, HOME) == Diagnosis("open", "")
    assert can_work(part, action, HOME) is None
    assert not already_done(part, action, HOME)
    assert explain_rejection(part, action, HOME) == "the reason is not known"
    detour = ["go to fridge 1", "take apple 1 from countertop 1"]
    assert needed_actions(MANUAL, detour) == detour[1:]
    assert needed_actions(part, detour) == detour


def test_the_guard_acts_by_no_principle_that_is_left_out() -> None:
    step = ENV.sub_goal(GOAL, HOME, [])
    heat, unknown = "heat apple 1 with microwave 1", "eat apple 1"
    for manual, rules in ((MANUAL, ["U-FAIL-001", "O-FAIL-003"]),
                          (leave_out(MANUAL, ["universal"]), [None, None])):  # fmt: skip
        tried = DecisionPoint(manual, GOAL, step, HOME, no_effect=[heat])
        for action, rule in zip((heat, unknown), rules, strict=True):
            against = find_violation(tried, action)
            assert (against.rule if against else None) == rule
        circled = DecisionPoint(manual, GOAL, step, HOME, repeated_here=[heat, heat])
        assert bool(find_violation(circled, heat)) == (rules[0] is not None)


def test_without_the_domain_nothing_serves_and_nothing_is_demanded() -> None:
    step = ENV.sub_goal(GOAL, HOME, [])
    part = leave_out(MANUAL, ["domain"])
    assert applicable_actions(DecisionPoint(MANUAL, GOAL, step, HOME))
    assert applicable_actions(DecisionPoint(part, GOAL, step, HOME)) == []
    assert MANUAL.demanded(step["name"]) == "heat" and part.demanded(step["name"]) == ""
    assert part.localities_of("apple") == [] and MANUAL.localities_of("apple")
    # What memories are found and told by stays.
    assert part.domain.categories == MANUAL.domain.categories
    assert part.domain.procedures == MANUAL.domain.procedures


def test_without_the_environment_the_procedure_still_serves() -> None:
    step = ENV.sub_goal(GOAL, HOME, [])
    offered = applicable_actions(
        DecisionPoint(leave_out(MANUAL, ["environment"]), GOAL, step, HOME)
    )
    assert [choice["action"] for choice in offered] == ["heat apple 1 with microwave 1"]
    assert {choice["rule"] for choice in offered} == {""}
    # Nor does an answer to a question cite a rule that is left out.
    science = load_manual("scienceworld")
    rule = science.environment.disambiguation.rule
    assert rule and leave_out(science, [rule]).environment.disambiguation.rule == ""


@pytest.mark.parametrize(
    ("name", "near"), [("U-FAIL-01", "U-FAIL-001"), ("domian", "domain"), ("Tier 3", "environment")]
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(RpmsError, match=f"no rule or tier '{name}'; the nearest names are {near}"):
        leave_out(MANUAL, [name])


def test_a_list_by_comma_has_no_order() -> None:
    assert names_in(" domain, U-FAIL-001,,domain") == names_in("U-FAIL-001,domain")
    assert names_in("") == []
    assert leave_out(MANUAL, TIERS).active(GOAL, HOME) == {
        "universal": [], "domain": [], "environment": [], "situation": [],
    }  # fmt: skip
