"""A guard that only observes, and one that hides the tools that no argument could make allowed."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from rpms.guard.audit import audit_conversation, read_messages, write_messages
from rpms.guard.conversation import ConversationTracker
from tests.guard.desk.playing import (
    ASKED,
    IDENTIFY,
    Scripted,
    answers,
    as_message,
    guarded,
    look,
    new_guard,
    refund,
    refused,
)
from tests.guard.desk.world import Desk, DeskWorld

ASKING = {"id": "P-BIG", "action": "refund", "needs": ["at_most(usd, 30)"], "on_violation": "ask"}


@pytest.mark.parametrize("kind", ["agent", "node"])
def test_a_guard_that_observes_refuses_and_asks_nothing(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    guard = new_guard(tmp_path / "rules", settings={"observe": True}, policy=[ASKING])
    replies = [*IDENTIFY, *look("O1"), [refund("O1", 500)], [refund("O1", 40)], [refund("O2", 5)]]
    with caplog.at_level(logging.WARNING, "rpms.guard"):
        ended = guarded(kind, guard, desk.tools(), replies).invoke(ASKED)
    assert not any(refused(answers(ended))) and desk.refunds == [500.0, 40.0, 5.0]
    assert caplog.text.count("would not be carried out [") == 3
    assert "would not be carried out [P-AMOUNT]: it needs usd to be at most" in caplog.text
    # What was observed is in the answers, and the audit of the log finds it.
    notes = [m.response_metadata["rpms"].get("observed") for m in ended["messages"]
             if m.type == "tool"]  # fmt: skip
    assert notes[-3:] == ["refuse", "refuse", "refuse"]
    log = json.loads(json.dumps({"messages": write_messages(ended["messages"])}))
    desk_rules = ConversationTracker.open(DeskWorld(), tmp_path / "rules")
    found = [*audit_conversation(desk_rules, read_messages(log, "log"))][-3:]
    assert [(call.verdict, call.rule) for call in found] == [
        ("against", "P-AMOUNT"), ("against", "P-STATUS"), ("against", "P-COUNT")
    ]  # fmt: skip


class Watching(Scripted):
    """Notes the tools that it is offered."""

    offered: list[set[str]]

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        self.offered.append({tool.name for tool in tools})
        return self


def test_tools_that_no_argument_could_make_allowed_are_hidden(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = [
        {"id": "P-COUNT", "action": "refund", "needs": ["at_most(count(refund), 0)"]},
        {"id": "P-ROLE", "action": "close_account", "needs": ["equal(context.role, boss)"]},
        {"id": "P-LATER", "action": "send_voucher", "when": ["at_least(count(refund), 1)"],
         "needs": ["at_most(hour(now), 9)"]},
        {"id": "P-ITEM", "action": "return_items", "needs": ["one_of(order.status, sent)"]},
        {"id": "P-WARN", "action": "cancel_order", "needs": ["before(now, 2020-01-01)"],
         "on_violation": "warn"},
    ]  # fmt: skip
    desk, guard = Desk(), new_guard(tmp_path / "rules", settings={"hide": True}, policy=rules)
    replies = [*IDENTIFY, *look("O1"), [refund("O1", 20)], [refund("O1", 20)]]
    messages = [*map(as_message, replies), AIMessage("done")]
    model, middleware = Watching(messages=iter(messages), offered=[]), [guard]
    every = {tool.name for tool in desk.tools()}
    with caplog.at_level(logging.INFO, "rpms.guard"):
        agent: Any = create_agent(model, desk.tools(), middleware=middleware)  # type: ignore[arg-type]
        ended = agent.invoke(ASKED)
    assert model.offered[0] == every - {"close_account"}
    assert model.offered[-1] == every - {"close_account", "refund", "send_voucher"}
    assert "refund is not offered to the model [P-COUNT]" in caplog.text
    assert refused(answers(ended))[-2:] == [False, True] and desk.refunds == [20.0]
