"""How the manual judges proposals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.rules import forbidden_by
from rpms.rules.judgement import KNOWN_ACTION, StepJudgement, judge
from rpms.vocabulary.belief import Belief, empty_belief

ENV = get_environment("alfworld")
MANUAL = load_manual("alfworld")
COOL = ENV.parse_goal("cool some mug and put it in shelf.")
ACTIONS = {rule.name: rule.id for rule in MANUAL.actions}
FRIDGE = {"location": "fridge 1", "containers": {"fridge 1": "open"}}


def here(**known: Any) -> Belief:
    belief: Any = {**empty_belief(), "location": "shelf 1", "places": ["shelf 1", "fridge 1"]}
    return belief | known  # type: ignore[no-any-return]


@pytest.mark.parametrize(("action", "belief", "verdict"), [
    ("take mug 1 from fridge 1", {"spots": {"shelf 1": []}}, "broken"),
    ("take mug 1 from shelf 1", {"last_seen": {"mug 1": "shelf 1"}, "searched": ["shelf 1"]},
     "kept"),
    # Is it open? The belief does not tell.
    ("put mug 1 in/on fridge 1", {"location": "fridge 1", "holding": ["mug 1"]}, "open"),
])  # fmt: skip
def test_an_action_is_judged_by_its_rule(action: str, belief: Any, verdict: Any) -> None:
    judged = judge(MANUAL, action, here(**belief), COOL)
    assert judged[:2] == [
        StepJudgement(KNOWN_ACTION, "kept"), StepJudgement(ACTIONS[action.split()[0]], verdict)
    ]  # fmt: skip


def test_a_forbidding_rule_speaks_only_of_its_own_actions_and_goals() -> None:
    belief, put = here(**FRIDGE, holding=["mug 1"]), "put mug 1 in/on fridge 1"
    rule = forbidden_by(MANUAL, put, COOL)
    assert rule
    other = ENV.parse_goal("put some mug on shelf.")
    verdicts = [
        dict(judge(MANUAL, action, belief, goal)).get(rule)
        for action, goal in ((put, COOL), ("put mug 1 in/on shelf 1", COOL),
                             ("go to shelf 1", COOL), (put, other))
    ]  # fmt: skip
    assert verdicts == ["broken", "kept", None, None]


def test_a_request_that_was_asked_back_wants_a_number() -> None:
    manual = load_manual("scienceworld")
    rule = manual.environment.disambiguation.rule
    goal = get_environment("scienceworld").parse_goal("Your task is to boil water.")
    question = here(disambiguation={"0": "open cupboard", "1": "open oven"})
    assert judge(manual, "1", question, goal) == [
        StepJudgement(KNOWN_ACTION, "kept"), StepJudgement(rule, "kept")
    ]  # fmt: skip
    assert judge(manual, "look around", question, goal)[0] == StepJudgement(rule, "broken")
    assert judge(manual, "1", here(), goal) == [StepJudgement(KNOWN_ACTION, "broken")]


@given(st.text(max_size=60), st.booleans())
def test_any_reply_can_be_judged(proposal: str, holding: bool) -> None:
    judged = judge(MANUAL, proposal, here(holding=["mug 1"] if holding else []), COOL)
    assert len(judged) == len(dict(judged))
    assert bool(judged) == bool(proposal)
    assert judge(MANUAL, "levitate", here(), COOL) == [StepJudgement(KNOWN_ACTION, "broken")]
