"""What a judgement tells beyond yes and no: what would help, and whether anybody could know."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from rpms.commands.desk_template.world import WORLD
from rpms.guard import Call, RulesGuard, judge
from rpms.guard.conversation import ConversationTracker
from rpms.rules import read_manual
from rpms.rules.answers import after_answer
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


def test_an_answer_is_read_although_its_reply_was_removed() -> None:
    """Whatever keeps a context short may cut between a reply and its answers."""
    desk = ConversationTracker.open(WORLD)._replace(trust=True)
    due = {"name": "get_order", "args": {"order_id": "O1"}, "id": "1", "type": "tool_call"}
    memory: Any = {**desk.begin(), "open": [due], "reply": "gone"}
    answer = ToolMessage('{"order_id": "O1", "total": 60}', tool_call_id="1", id="a")
    memory = desk.settle(desk.read(memory, [answer]))
    assert memory["belief"]["records"]["O1"]["total"] == 60 and memory["worst"] is None


def test_of_two_objects_about_a_thing_the_outer_one_counts() -> None:
    def told(answer: str) -> Any:
        return after_answer(MANUAL, WORLD, empty_belief(), LOOK, answer)["records"]["O1"]

    inner = '"note": {"order_id": "O1", "total": 9999, "text": "hi"}'
    assert told(f'{{"order_id": "O1", "total": 5, {inner}}}')["total"] == 5
    assert told(f'{{"order_id": "O1", {inner}}}')["total"] == 9999
    side_by_side = '[{"order_id": "O1", "total": 5, "a": 1}, {"order_id": "O1", "total": 9999}]'
    assert told(side_by_side) == {"order_id": "O1", "a": 1}


def test_a_name_counts_as_it_is_written_and_as_it_may_be_meant() -> None:
    belief = after(VERIFY, LOOK)
    spelt = Call("refund", {**REFUND.arguments, "order_id": "o1"})
    assert "no answer has shown the total of o1 yet" in judge(MANUAL, spelt, belief).reason
    belief["records"]["o1"] = {**belief["records"]["O1"], "total": 5}
    assert "the total of o1 is 5" in judge(MANUAL, REFUND, belief).reason


def test_a_world_that_no_registry_has_named_is_called_by_its_class() -> None:
    with pytest.raises(RpmsError, match=r"the tools do not fit the manual of 'Desk': .*'refund'"):
        RulesGuard(WORLD).protect(WORLD.tools()[:2])
