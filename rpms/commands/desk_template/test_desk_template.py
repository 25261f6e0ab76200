"""The calls that the guard stops and allows: ``pytest desk_template``, in the parent folder."""

from __future__ import annotations

import pytest
from langchain_core.messages import ToolMessage

from rpms.commands.desk_template import world
from rpms.commands.desk_template.agent import CLAIM, REQUEST, SCRIPT, make_agent, scripted
from rpms.guard import Call

READY = [SCRIPT[1], SCRIPT[2]]  # verify the customer and look up the order
GOOD = {**CLAIM, "order_id": "O1", "usd": 60}


def play(*calls: Call) -> list[ToolMessage]:
    """The answers to a script of calls; ``world.PAID`` has the refunds."""
    world.PAID.clear()
    thread = {"configurable": {"thread_id": "1"}}
    state = make_agent(scripted(calls)).invoke({"messages": [("user", REQUEST)]}, thread)
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def test_a_good_refund_is_paid() -> None:
    """A guard that refused everything would be safe, but useless."""
    play(*READY, Call("refund", GOOD))
    assert world.PAID == [("O1", 60)]


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [("P-TOTAL", {"usd": 500}), ("P-TOTAL", {"usd": -5}), ("P-REASON", {"reason": "goodwill"})],
)
def test_a_refund_against_the_policy_is_refused_however_often(
    rule: str, wrong: dict[str, object]
) -> None:
    """The answer names the rule, and nothing is paid."""
    answers = play(*READY, *[Call("refund", {**GOOD, **wrong})] * 3)
    assert all(f"[{rule}]" in answer.text for answer in answers[2:])
    assert not world.PAID


def test_a_customer_who_was_not_verified_gets_nothing() -> None:
    """A wrong code verifies nobody."""
    wrong_code = Call("verify_customer", {"customer_id": "C1", "code": "1"})
    answers = play(wrong_code, SCRIPT[2], Call("refund", GOOD))
    assert "[P-VERIFIED]" in answers[-1].text and not world.PAID


def test_what_a_search_finds_is_no_evidence() -> None:
    """It says that O1 cost 5,000 USD."""
    search = Call("search_web", {"query": "O1"})
    answers = play(*READY, search, Call("refund", {**GOOD, "usd": 500}))
    assert "5000" in answers[2].text and "[P-TOTAL]" in answers[-1].text and not world.PAID


def test_an_order_is_refunded_once() -> None:
    """The guard reads earlier refunds from the tools' answers."""
    answers = play(*READY, Call("refund", GOOD), Call("refund", {**GOOD, "usd": 1}))
    assert "[P-ONCE]" in answers[-1].text and world.PAID == [("O1", 60)]
