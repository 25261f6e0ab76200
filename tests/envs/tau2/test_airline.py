"""The airline's desk on tau2's own database: planted violations, and the reference solutions."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

pytest.importorskip("tau2")

from rpms.envs import get_environment
from rpms.envs.tau2.desk import ServiceDesk
from rpms.guard import Call
from rpms.guard.sources import compare_policy
from rpms.rules.loader import read_manual
from tests.envs.tau2.planted_airline import Planted, legal, planted
from tools.desk_gold import DeskConversation, play

DESK = cast(ServiceDesk, get_environment("airline"))
MANUAL = read_manual(DESK.rules)
DATA = DESK.open().database()
PLANTED, LEGAL = planted(DATA), [*legal(DATA)]
# The calls of tau2's reference solutions that break the policy's text by the facts of its database.
GOLD_AGAINST_THE_POLICY = {
    ("2", 3): ("P-COMPENSATE-CHANGED", "50 USD for a delayed flight; the booking is not changed"),
    ("7", 3): ("P-CANCEL-REASON", "economy after an upgrade, uninsured, booked two weeks ago"),
    ("9", 0): ("P-CANCEL-FLOWN", "HAT214 of 13 May has landed; business class does not change it"),
    ("27", 1): ("P-COMPENSATE-CHANGED", "150 USD for a delayed flight; nothing is changed"),
    ("29", 1): ("P-CHANGE-ROUTE", "the booking is to LGA, the new flight to JFK"),
    ("33", 4): ("P-BAGS-FREE", "a gold member pays for two bags that are free"),
    ("37", 0): ("P-CANCEL-FLOWN", "HAT214 of 13 May has landed; business class does not change it"),
    ("38", 2): ("P-COMPENSATE-CHANGED", "50 USD for a delayed flight; the booking is not changed"),
}


def test_every_rule_has_a_planted_violation() -> None:
    rules = {rule.id for rule in MANUAL.environment.policy}
    assert {each.rule for each in PLANTED} == rules
    assert len(PLANTED) >= 40


@pytest.mark.parametrize("case", PLANTED, ids=lambda case: case.rule)
def test_a_planted_violation_is_refused_with_its_rule(case: Planted) -> None:
    """With every look-up made first, so that facts refuse it and not a gap in knowledge."""
    conversation = DeskConversation(DESK, case.words)
    conversation.inform(case.call)
    refusals = {each.rule: each for each in conversation.refusals(case.call)}
    assert case.rule in refusals
    assert not refusals[case.rule].uninformed, refusals[case.rule].reason


@pytest.mark.parametrize("case", LEGAL, ids=lambda case: case[0].replace(" ", "-"))
def test_a_legal_call_next_to_a_violation_passes(case: tuple[Any, ...]) -> None:
    """A guard that refused everything would be safe, but useless."""
    _, call, words, before = case
    conversation = DeskConversation(DESK, words)
    for earlier in before:
        conversation.inform(earlier)
        assert conversation.refusals(earlier) == []
        conversation.run(earlier)
    conversation.inform(call)
    assert conversation.refusals(call) == []


def test_the_tools_themselves_accept_more_than_half_of_the_planted_violations() -> None:
    """The figure of docs/guard-your-agent.md: the guard stands before the database."""
    answers = [DESK.open().call(case.call.tool, dict(case.call.arguments)) for case in PLANTED]
    accepted = [answer for answer in answers if not answer.startswith("Error")]
    assert (len(accepted), len(PLANTED)) == (28, 42)


def test_nothing_is_known_at_first_and_the_refusal_names_the_look_up() -> None:
    conversation = DeskConversation(DESK, "I am mia_li_3668, cancel 4WQ150.")
    call = Call("cancel_reservation", {"reservation_id": "4WQ150"})
    (first, *_) = conversation.refusals(call)
    assert first.uninformed
    assert first.repair == "first: get_reservation_details(reservation_id='4WQ150')"


def test_the_reference_solutions_are_refused_only_where_they_break_the_policy() -> None:
    refused: dict[tuple[str, int], tuple[str, ...]] = {}
    verdicts = Counter[str]()
    for each in (each for task in DESK.task_ids() for each in play(DESK, task)):
        verdicts["refused" if each.refusals else "passed"] += 1
        if each.refusals:
            assert not any(refusal.uninformed for refusal in each.refusals)
            refused[each.task, each.number] = tuple(r.rule for r in each.refusals)
        verdicts["look-ups"] += len(each.look_ups)
    assert refused == {key: (rule,) for key, (rule, _) in GOLD_AGAINST_THE_POLICY.items()}
    assert verdicts == {"passed": 140, "refused": 8, "look-ups": 128}


def test_every_sentence_of_the_policy_has_a_rule_or_a_reason() -> None:
    cited = compare_policy(MANUAL, DESK.policy.read_text(encoding="utf-8"))
    assert cited.uncited == [] and cited.strange == []


@pytest.mark.parametrize(
    "change",
    [
        {"passengers": "Ann Lee"}, {"passengers": [None]}, {"passengers": {}}, {"flights": [1]},
        {"flights": None}, {"flights": [{"flight_number": ["HAT001"], "date": {}}]},
        {"payment_methods": [{"payment_id": 5, "amount": "nan"}]}, {"payment_methods": None},
        {"nonfree_baggages": "none"}, {"total_baggages": float("nan")}, {"cabin": "first"},
        {"user_id": 5}, {"user_id": None},
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_type_are_refused(change: dict[str, Any]) -> None:
    """Whatever a model writes: a value that cannot be read meets no demand."""
    good = next(each for each in PLANTED if each.rule == "P-BOOK-USER")
    user = good.call.arguments["user_id"]
    conversation = DeskConversation(DESK, f"I am {user}.")
    conversation.inform(good.call)
    assert conversation.refusals(good.call) == []
    assert conversation.refusals(Call(good.call.tool, {**good.call.arguments, **change}))
