"""With no look-up made, no call passes that changes an account, a line, an order or a booking."""

from __future__ import annotations

from typing import Any, cast

import pytest
from langchain_core.messages import HumanMessage

from rpms.envs import get_environment
from rpms.envs.tau2.desk import ServiceDesk
from rpms.guard import Call
from rpms.guard.conversation import ConversationTracker
from rpms.guard.decision import judge
from tests.envs.telecom.conftest import TRAIN, gold
from tests.envs.telecom.test_policy import as_calls

ACCOUNT = ("suspend_line", "resume_line", "refuel_data", "send_payment_request", "make_payment",
           "enable_roaming", "disable_roaming")  # fmt: skip


@pytest.mark.parametrize("name", ["airline", "retail"])
def test_at_a_desk(name: str) -> None:
    desk = cast(ServiceDesk, get_environment(name))
    tracker, judged = ConversationTracker.open(desk), 0
    for task in desk.task_ids():
        said = HumanMessage(f"{desk.customer(task)} {desk.gold(task)}", id="0")
        state = tracker.read(tracker.begin(), [said])
        for call in desk.gold(task):
            if tracker.changes(call.tool):
                judged += 1
                assert tracker.judge(state, call).verdict == "refuse", (task, call)
    assert judged > 50


def test_at_the_telecom_desk() -> None:
    tracker = ConversationTracker.open(get_environment("telecom"))  # type: ignore[arg-type]
    both = {"customer_id": "C1001", "line_id": "L1002"}
    more: list[Any] = [("suspend_line", {**both, "reason": "overdue"}), ("enable_roaming", both),
                       ("disable_roaming", both), ("refuel_data", {**both, "gb_amount": 1}),
                       ("make_payment", {}), ("resume_line", both)]  # fmt: skip
    judged: set[str] = set()
    for task in [*TRAIN.values()]:
        state = tracker.read(tracker.begin(), [HumanMessage(task["goal"], id="0")])
        made = [Call(call["name"], call["args"]) for call in as_calls(gold(task))]
        for call in (*made, *(Call(*each) for each in more)):
            if call.tool in ACCOUNT:
                judged.add(call.tool)
                assert tracker.judge(state, call).verdict == "refuse", (task["id"], call)
    assert judged == {*ACCOUNT}


@pytest.mark.parametrize("amount", [-1, 0, 0.0, -0.5])
def test_no_line_is_refuelled_by_nothing_or_less(amount: float) -> None:
    tracker = ConversationTracker.open(get_environment("telecom"))  # type: ignore[arg-type]
    belief = tracker.begin()["belief"]
    belief["last_seen"]["L1002"] = "C1001"
    belief["flags"]["L1002"] = "a line, not refuelled, usage exceeded, line active, roaming allowed"
    call = {"customer_id": "C1001", "line_id": "L1002", "gb_amount": amount}
    assert judge(tracker.manual, Call("refuel_data", call), belief).verdict == "refuse"
    assert (
        judge(tracker.manual, Call("refuel_data", {**call, "gb_amount": 2}), belief)[0] == "allow"
    )
    for tool, extra in (("suspend_line", {"reason": "x"}), ("disable_roaming", {})):
        both = {"customer_id": "C1001", "line_id": "L1002", **extra}
        assert judge(tracker.manual, Call(tool, both), belief).verdict == "refuse"
