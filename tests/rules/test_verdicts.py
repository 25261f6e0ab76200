"""How the manual judges proposals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.envs import get_environment
from rpms.envs.manuals import load_manual
from rpms.rules import forbidden_by
from rpms.rules.verdicts import KNOWN_ACTION, verdicts_on
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
    judged = verdicts_on(MANUAL, action, here(**belief), COOL)
    assert judged.items() >= {KNOWN_ACTION: "kept", ACTIONS[action.split()[0]]: verdict}.items()


def test_a_forbidding_rule_speaks_only_of_its_own_actions_and_goals() -> None:
    belief, put = here(**FRIDGE, holding=["mug 1"]), "put mug 1 in/on fridge 1"
    rule = forbidden_by(MANUAL, put, COOL)
    assert rule
    other = ENV.parse_goal("put some mug on shelf.")
    verdicts = [
        verdicts_on(MANUAL, action, belief, goal).get(rule)
        for action, goal in ((put, COOL), ("put mug 1 in/on shelf 1", COOL),
                             ("go to shelf 1", COOL), (put, other))
    ]  # fmt: skip
    assert verdicts == ["broken", "kept", None, None]


def test_a_request_that_was_asked_back_wants_a_number() -> None:
    manual = load_manual("scienceworld")
    rule = manual.environment.disambiguation.rule
    goal = get_environment("scienceworld").parse_goal("Your task is to boil water.")
    question = here(disambiguation={"0": "open cupboard", "1": "open oven"})
    assert verdicts_on(manual, "1", question, goal) == {KNOWN_ACTION: "kept", rule: "kept"}
    assert verdicts_on(manual, "look around", question, goal)[rule] == "broken"
    assert verdicts_on(manual, "1", here(), goal) == {KNOWN_ACTION: "broken"}


@given(st.text(max_size=60), st.booleans())
def test_any_reply_can_be_judged(proposal: str, holding: bool) -> None:
    judged = verdicts_on(MANUAL, proposal, here(holding=["mug 1"] if holding else []), COOL)
    assert bool(judged) == bool(proposal)
    assert verdicts_on(MANUAL, "levitate", here(), COOL) == {KNOWN_ACTION: "broken"}
