"""What a judgement tells beyond yes and no: what would help, and whether anybody could know."""

from __future__ import annotations

import pytest

from rpms.commands.desk_template.world import WORLD
from rpms.guard import Call, RulesGuard, judge
from rpms.guard.answers import after_answer
from rpms.rules import read_manual
from rpms.vocabulary.belief import Belief, empty_belief
from rpms.vocabulary.errors import RpmsError

MANUAL = read_manual(WORLD.rules)
REFUND = Call("refund", {"order_id": "O1", "customer_id": "C1", "usd": 60, "reason": "late"})
LOOK = Call("get_order", {"order_id": "O1"})
VERIFY = Call("verify_customer", {"customer_id": "C1", "code": "4711"})


def after(*calls: Call) -> Belief:
    tools, belief = {tool.name: tool for tool in WORLD.tools()}, empty_belief()
    for call in calls:
        answer = tools[call.tool].invoke(dict(call.arguments))
        belief = after_answer(MANUAL, WORLD, belief, call, answer)
    return belief


def test_what_a_call_was_to_bring_about_is_not_so_without_it() -> None:
    """Nobody verified the customer: that is no lack of information."""
    judgement = judge(MANUAL, REFUND, after(LOOK))
    assert (judgement.verdict, judgement.rule) == ("refuse", "P-VERIFIED")
    assert not judgement.uninformed
    assert judgement.repair == "first: verify_customer(customer_id='C1', code=<code>)"


def test_what_no_answer_has_shown_may_still_be_so() -> None:
    judgement = judge(MANUAL, REFUND, after(VERIFY))
    assert (judgement.verdict, judgement.rule) == ("refuse", "P-TOTAL")
    assert judgement.uninformed and "no answer has shown the total of O1 yet" in judgement.reason
    too_much = Call("refund", {**REFUND.arguments, "usd": 61})
    assert not judge(MANUAL, too_much, after(VERIFY, LOOK)).uninformed
    assert judge(MANUAL, REFUND, after(VERIFY, LOOK)).verdict == "allow"


def test_a_world_that_no_registry_has_named_is_called_by_its_class() -> None:
    with pytest.raises(RpmsError, match=r"the tools do not fit the manual of 'Desk': .*'refund'"):
        RulesGuard(WORLD).protect(WORLD.tools()[:2])
