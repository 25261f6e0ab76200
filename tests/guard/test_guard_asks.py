"""Rules that ask a person, rules that only warn, and tools of every kind."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.tools import InjectedState, ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from rpms.guard import RulesGuard
from tests.guard.desk.playing import (
    ASKED,
    COUNT,
    KINDS,
    KNOWN,
    NUMBERS,
    answers,
    guarded,
    in_place_of,
    look,
    new_guard,
    refund,
    refused,
)
from tests.guard.desk.world import Desk

APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "too much"}
BIG = {"id": "P-BIG", "action": "refund", "needs": ["at_most(usd, 30)"],
       "text": "A person decides about more than 30."}  # fmt: skip
ASKING = {"policy": [{**BIG, "on_violation": "ask"}]}
WARNING = {"policy": [{**BIG, "on_violation": "warn"}]}


def edit(**args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "refund", "args": args}}


class Conversation:
    """One thread; after each interrupt it may go on with a guard and an agent of its own."""

    def __init__(self, kind: str, folder: Path, desk: Desk, new_process: bool = True) -> None:
        self.kind, self.folder, self.desk, self.fresh = kind, folder, desk, new_process
        self.saver, self.store = InMemorySaver(), InMemoryStore()
        self.config: Any = {"configurable": {"thread_id": f"thread-{next(NUMBERS)}"}}
        self.guard = new_guard(folder / "rules", **ASKING)
        self.tools = self.guard.protect(desk.tools())

    def agent(self, replies: Any) -> Any:
        if self.fresh:
            self.guard = new_guard(self.folder / "rules", **ASKING)
            self.tools = self.guard.protect(self.desk.tools())
        return guarded(self.kind, self.guard, self.desk.tools(), replies,
                       saver=self.saver, store=self.store, carried=self.tools)  # fmt: skip

    def play(self, *replies: Any) -> dict[str, Any]:
        ended: dict[str, Any] = self.agent([*KNOWN, *replies]).invoke(ASKED, self.config)
        return ended

    def resume(self, answer: Any, *replies: Any) -> dict[str, Any]:
        ended: dict[str, Any] = self.agent(replies).invoke(Command(resume=answer), self.config)
        return ended


@pytest.fixture(params=[True, False], ids=["new process", "same process"])
def fresh(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def asked(ended: dict[str, Any]) -> list[dict[str, Any]]:
    return [each.value for each in ended.get("__interrupt__", ())]


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_is_shown_the_call_the_rule_and_the_reason(kind: str, tmp_path: Path) -> None:
    desk = Desk()
    (request,) = asked(Conversation(kind, tmp_path, desk).play([refund("O1", 40)]))
    assert (request["name"], request["rule"]) == ("refund", "P-BIG")
    assert request["args"] == refund("O1", 40)[1] and "A person decides" in request["reason"]
    assert request["allowed_decisions"] == ["approve", "edit", "reject"] and desk.done == []


@pytest.mark.parametrize("kind", ["agent", "node"])
@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        (APPROVE, [40.0]), ("approve", [40.0]), ({"decisions": [APPROVE]}, [40.0]),
        (REJECT, []), ("reject", []), ("yes", []), (True, []), ("", []), (5, []), ([APPROVE], []),
        ({"decisions": []}, []), ({"decisions": [APPROVE, APPROVE]}, []), ({"type": "Approve"}, []),
        (edit(customer_id="C1", order_id="O1", usd=35), [35.0]),
        (edit(customer_id="C1", order_id="O1", usd=20), [20.0]),
        (edit(customer_id="C1", order_id="O1", usd=500), []),  # which another rule refuses
        (edit(customer_id="C2", order_id="O1", usd=20), []),
        (edit(), []), (edit(customer_id="C1", order_id="O1", usd="nan"), []),
        ({"type": "edit"}, []), ({"type": "edit", "edited_action": {"name": "refund"}}, []),
        ({"type": "edit", "edited_action": {"name": "close_account",
                                            "args": {"customer_id": "C1"}}}, []),
        ({"type": "edit", "edited_action": {"name": "refund", "args": "O1"}}, []),
    ],
    ids=lambda value: json.dumps(value)[:60],
)  # fmt: skip
def test_only_a_clear_yes_lets_it_pass(
    kind: str, answer: Any, paid: list[float], tmp_path: Path
) -> None:
    desk = Desk()
    talk = Conversation(kind, tmp_path, desk)
    talk.play([refund("O1", 40)])
    ended = talk.resume(answer)
    assert desk.refunds == paid and desk.forbidden == []
    assert refused(answers(ended)[COUNT:]) == [not paid]
    if answer == REJECT:
        assert "a person was asked and rejected it: too much" in answers(ended)[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_an_approval_is_for_one_call(kind: str, fresh: bool, tmp_path: Path) -> None:
    desk = Desk()
    talk = Conversation(kind, tmp_path, desk, fresh)
    talk.play([refund("O1", 40)])
    ended = talk.resume(APPROVE, [refund("O1", 40)], [refund("O2", 40)])
    assert desk.refunds == [40.0] and len(asked(ended)) == 1
    ended = talk.resume(REJECT)
    assert desk.refunds == [40.0] and desk.forbidden == []
    assert refused(answers(ended)[COUNT:]) == [False, True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_a_rule_refuses_is_not_asked_about(kind: str, tmp_path: Path) -> None:
    desk = Desk()
    ended = Conversation(kind, tmp_path, desk).play([refund("O1", 500)])
    assert asked(ended) == [] and refused(answers(ended)[COUNT:]) == [True] and desk.done == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [True, False])
def test_siblings_of_a_call_that_is_asked_about_run_once(
    kind: str, first: bool, fresh: bool, tmp_path: Path
) -> None:
    big, small, note = refund("O1", 40), refund("O2", 20), look("O4")[0][0]
    for answer, paid in ((APPROVE, [20.0, 40.0]), (REJECT, [20.0])):
        desk = Desk()
        talk = Conversation(kind, tmp_path, desk, fresh)
        (request,) = asked(talk.play([big, small, note] if first else [note, small, big]))
        assert request["args"]["usd"] == 40
        talk.resume(answer, [refund("O3", 20)])
        expected = sorted([*paid, *([20.0] if answer is REJECT else [])])
        assert sorted(desk.refunds) == expected and desk.forbidden == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_people_say_goes_to_the_call_that_they_were_asked_about(
    kind: str, fresh: bool, tmp_path: Path
) -> None:
    """Two calls of one reply are asked about, and only the second is approved."""
    desk = Desk()
    talk = Conversation(kind, tmp_path, desk, fresh)
    ended = talk.play([refund("O1", 40), refund("O2", 60)])
    for _ in range(2):
        pending = ended.get("__interrupt__", ())
        if not pending:
            break
        said = {each.id: APPROVE if each.value["args"]["usd"] == 60 else REJECT for each in pending}
        ended = talk.resume(said if len(pending) > 1 else next(iter(said.values())))
    assert desk.refunds == [60.0] and desk.forbidden == []
    assert refused(answers(ended)[COUNT:]) == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_two_approved_calls_that_are_too_much_together(kind: str, tmp_path: Path) -> None:
    """Their sum is over the limit that no person is asked about."""
    desk = Desk()
    talk = Conversation(kind, tmp_path, desk)
    ended = talk.play([refund("O2", 80), refund("O3", 110)])
    while pending := ended.get("__interrupt__", ()):
        said = {each.id: APPROVE for each in pending}
        ended = talk.resume(said if len(pending) > 1 else APPROVE)
    assert desk.refunds == [80.0] and desk.forbidden == []


def test_outside_a_graph_nobody_can_be_asked(tmp_path: Path) -> None:
    desk, guard = Desk(), new_guard(tmp_path / "rules", **ASKING)
    tools = {each.name: each for each in guard.protect(desk.tools())}
    for reply in KNOWN:
        for name, arguments in reply:
            tools[name].invoke(arguments)
    text = tools["refund"].invoke(refund("O1", 40)[1])
    assert "was not carried out" in text and desk.done == []
    assert tools["refund"].invoke(refund("O1", 20)[1]) == "done"


@pytest.mark.parametrize("kind", ["agent", "node"])
@pytest.mark.parametrize("retries", [0, 1, 2])
def test_a_rule_that_warns_sends_a_call_back_so_often(
    kind: str, retries: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()
    guard = new_guard(tmp_path / "rules", settings={"retries": retries}, **WARNING)
    replies = [*KNOWN, *[[refund("O1", 40)]] * 3, [refund("O1", 500)], [refund("O2", 500)]]
    with caplog.at_level(logging.WARNING, "rpms.guard"):
        ended = guarded(kind, guard, desk.tools(), replies).invoke(ASKED)
    sent_back = [number < retries for number in range(retries + 1)]
    assert refused(answers(ended)[COUNT:])[: retries + 1] == sent_back
    assert desk.refunds == [40.0] and desk.forbidden == []
    assert "is against P-BIG" in caplog.text


# Tools of every kind


def kinds_of_tools(desk: Desk) -> dict[str, BaseTool]:
    """Refunds by tools that take and return what tools can."""

    @tool("refund")
    def with_state(
        customer_id: str, order_id: str, usd: float,
        state: Annotated[dict[str, Any], InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId], note: str = "",
    ) -> str:  # fmt: skip
        """Refund."""
        assert state["messages"] and tool_call_id.startswith("call-")
        return desk.refund(customer_id, order_id, usd, note)

    @tool("refund")
    def with_runtime(
        customer_id: str, order_id: str, usd: float, runtime: ToolRuntime, note: str = ""
    ) -> str:
        """Refund."""
        assert runtime.state["messages"] and runtime.tool_call_id
        return desk.refund(customer_id, order_id, usd, note)

    @tool("refund")
    def with_command(
        customer_id: str, order_id: str, usd: float,
        tool_call_id: Annotated[str, InjectedToolCallId], note: str = "",
    ) -> Any:  # fmt: skip
        """Refund."""
        answer = ToolMessage(desk.refund(customer_id, order_id, usd, note),
                             tool_call_id=tool_call_id)  # fmt: skip
        return Command(update={"messages": [answer]})

    @tool("refund", response_format="content_and_artifact")
    def with_artifact(customer_id: str, order_id: str, usd: float, note: str = "") -> Any:
        """Refund."""
        return desk.refund(customer_id, order_id, usd, note), {"paid": usd}

    async def coroutine(customer_id: str, order_id: str, usd: float, note: str = "") -> str:
        return desk.refund(customer_id, order_id, usd, note)

    text, number = {"type": "string"}, {"type": "number"}
    schema = {"type": "object", "required": ["customer_id", "order_id", "usd"],
              "properties": {"customer_id": text, "order_id": text, "usd": number,
                             "note": {**text, "default": ""}}}  # fmt: skip
    return {
        "injected state and id": with_state,
        "runtime": with_runtime,
        "command": with_command,
        "artifact": with_artifact,
        "coroutine": StructuredTool.from_function(
            coroutine=coroutine, name="refund", description="Refund."
        ),
        "a schema in JSON": StructuredTool.from_function(
            func=lambda **given: desk.refund(**given), coroutine=coroutine, name="refund",
            description="Refund.", args_schema=schema,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", kinds_of_tools(Desk()))
async def test_tools_of_every_kind_are_guarded(form: str, kind: str) -> None:
    desk = Desk()
    tools = in_place_of(desk, kinds_of_tools(desk)[form])
    replies = [*KNOWN, [refund("O1", 500)], [refund("O1", 20)], [refund("O1", 20)],
               [refund("O2", 20), refund("O3", 20)], [refund("O3", 5)]]  # fmt: skip
    ended = await guarded(kind, new_guard(), tools, replies).ainvoke(ASKED)
    assert refused(answers(ended)[COUNT:]) == [True, False, True, False, True, True]
    assert desk.refunds == [20.0, 20.0] and desk.forbidden == []
    if form == "artifact":
        paid = [m.artifact for m in ended["messages"] if isinstance(m, ToolMessage) and m.artifact]
        assert paid == [{"paid": 20}, {"paid": 20}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_may_ask_a_person_itself(kind: str, tmp_path: Path) -> None:
    """The node runs again after it; what the tool then does is done once."""
    desk = Desk()

    def pay(customer_id: str, order_id: str, usd: float, note: str = "") -> str:
        if interrupt("Really?") != "yes":
            return "Error: no"
        return desk.refund(customer_id, order_id, usd, note)

    paying = StructuredTool.from_function(pay, name="refund", description="Refund.")
    tools = in_place_of(desk, paying)
    replies = [*KNOWN, [("send_voucher", {"customer_id": "C1", "usd": 5}), refund("O1", 20)],
               [refund("O1", 20)]]  # fmt: skip
    agent = guarded(kind, new_guard(), tools, replies, saver=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    agent.invoke(ASKED, config)
    ended = agent.invoke(Command(resume="yes"), config)
    assert desk.refunds == [20.0] and desk.vouchers == ["C1"] and desk.forbidden == []
    assert refused(answers(ended)[COUNT:]) == [False, False, True]


def test_a_guard_is_made_of_a_world_s_name_too() -> None:
    with pytest.raises(Exception, match="no-such-world"):
        RulesGuard("no-such-world")
