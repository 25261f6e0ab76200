"""What an audit says of the calls in recorded conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from rpms.guard.audit import AuditedCall, audit_conversation, read_messages, write_messages
from rpms.guard.conversation import DECISION, ConversationTracker
from rpms.guard.tools import defaults_of
from rpms.vocabulary.errors import RpmsError
from tests.guard.audited.world import TOOLS, WORLD

DESK = ConversationTracker.open(WORLD)
DEFAULTS = {tool.name: defaults_of(tool) for tool in TOOLS}
ASKED = {"role": "user", "content": "My money back!"}
ORDER = {"order_id": "O1", "total": 50.0, "status": "delivered"}


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"id": f"c{number}", "type": "function", "function": function}


def reply(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def answer(number: int, content: object) -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content)
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


SEEN = [ASKED, reply(call(0, "get_order", order_id="O1")), answer(0, ORDER)]


def audited(*messages: dict[str, Any], **options: Any) -> list[AuditedCall]:
    read = read_messages({"messages": [*messages]}, "log:1")
    return [*audit_conversation(DESK, read, defaults=DEFAULTS, **options)]


def verdicts(*messages: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    return [(found.verdict, found.rule) for found in audited(*messages, **options)]


FINE = ("fine", "")


def test_a_call_is_judged_by_what_the_agent_had_seen() -> None:
    paid = reply(call(1, "refund", order_id="O1", usd=50))
    much = reply(call(1, "refund", order_id="O1", usd=50.01))
    assert verdicts(*SEEN, paid, answer(1, "done")) == [FINE, FINE]
    assert verdicts(*SEEN, much, answer(1, "done")) == [FINE, ("against", "P-LIMIT")]
    assert verdicts(ASKED, paid, answer(1, "done")) == [("uninformed", "P-LIMIT")]
    # What comes later in the conversation, or in the same reply, was not seen either.
    assert verdicts(ASKED, paid, answer(1, "done"), *SEEN[1:])[0] == ("uninformed", "P-LIMIT")
    both = reply(call(0, "get_order", order_id="O1"), call(1, "refund", order_id="O1", usd=50))
    assert verdicts(ASKED, both, answer(0, ORDER), answer(1, "done")) == [
        FINE, ("uninformed", "P-LIMIT")]  # fmt: skip


def test_reasons_say_what_is_so() -> None:
    *_, found = audited(*SEEN, reply(call(1, "refund", order_id="O1", usd=500)))
    assert found.number == 1 and found.call.arguments["usd"] == 500
    assert "usd is 500 and the total of O1 is 50" in found.reason


def test_what_was_against_a_rule_has_its_effect_all_the_same() -> None:
    twice = [call(1, "refund", order_id="O1", usd=60), call(2, "refund", order_id="O1", usd=5)]
    expected = [("against", "P-LIMIT"), ("against", "P-ONCE")]
    one_reply = [reply(*twice), answer(1, "done"), answer(2, "done")]
    two_replies = [reply(twice[0]), answer(1, "done"), reply(twice[1]), answer(2, "done")]
    assert verdicts(*SEEN, *one_reply)[1:] == expected
    assert verdicts(*SEEN, *two_replies)[1:] == expected
    # The second is against a rule even where nothing was known of the order.
    assert verdicts(ASKED, *one_reply) == [("uninformed", "P-LIMIT"), ("against", "P-ONCE")]


def test_a_rejected_call_has_no_effect() -> None:
    paid = call(1, "refund", order_id="O1", usd=50), call(2, "refund", order_id="O1", usd=50)
    failed = [reply(paid[0]), answer(1, "Error: try again"), reply(paid[1]), answer(2, "done")]
    assert verdicts(*SEEN, *failed) == [FINE, FINE, FINE]


def test_a_call_that_a_guard_stopped_broke_nothing() -> None:
    made = call(1, "refund", order_id="O1", usd=500)
    by_rule = "refund(order_id='O1', usd=500) was not carried out [P-LIMIT]: it needs less."
    again = [reply(call(2, "refund", order_id="O1", usd=50)), answer(2, "done")]
    found = audited(*SEEN, reply(made), answer(1, by_rule), *again)
    assert [(each.verdict, each.rule, each.stopped) for each in found] == [
        ("fine", "", False), ("fine", "P-LIMIT", True), ("fine", "", False)]  # fmt: skip
    assert found[1].reason == "stopped by the guard: it needs less."
    by_loop = "refund(order_id='O1') was not carried out: it gave the same answer 3 times."
    assert audited(*SEEN, reply(made), answer(1, by_loop))[1][3:] == (
        "loop", "stopped by the guard: it gave the same answer 3 times.", True, False)  # fmt: skip
    # Another tool's words, or words within an answer, stop nothing.
    for other in (f"get_{by_rule}", f"done; {by_rule}", f"verify{by_rule.removeprefix('refund')}"):
        assert audited(*SEEN, reply(made), answer(1, other))[1][2:4] == ("against", "P-LIMIT")


def test_tools_that_the_manual_does_not_have() -> None:
    strange = reply(call(1, "delete_everything"))
    assert verdicts(ASKED, strange) == [("against", "unknown tool")]
    assert verdicts(ASKED, strange, unknown="allow") == [FINE]
    argument = reply(call(1, "get_order", order_id="O1", force=True))
    assert verdicts(ASKED, argument, unknown="allow") == [("against", "unknown argument")]


def test_arguments_left_out_have_the_tool_s_defaults() -> None:
    paid = reply(call(1, "refund", order_id="O1", usd=5))
    read = read_messages({"messages": [*SEEN, paid]}, "")
    *_, without = audit_conversation(DESK, read)
    assert (without.verdict, without.rule) == ("against", "P-CURRENCY")
    assert verdicts(*SEEN, paid)[1] == FINE


def test_where_a_person_is_asked_only_a_guard_s_own_log_tells_the_answer() -> None:
    arguments = {"order_id": "O1", "usd": 45, "currency": "EUR"}
    asked = reply(call(1, "refund", **arguments))
    *_, found = audited(*SEEN, asked, answer(1, "done"))
    assert (found.verdict, found.rule) == ("against", "P-MUCH")
    assert found.reason.endswith("; the log does not tell whether a person allowed it")
    decided = {
        "ran": True,
        "rule": "",
        "reason": "",
        "call": {"tool": "refund", "arguments": arguments},
    }
    allowed = answer(1, "done") | {"rpms": json.dumps(decided)}
    assert verdicts(*SEEN, asked, allowed)[1] == FINE


def test_odd_forms_of_messages() -> None:
    """Parts, an id used twice, arguments as data or none, the form before tool calls."""
    parts = {"role": "tool", "tool_call_id": "c0",
             "content": [{"type": "text", "text": json.dumps(ORDER)}]}  # fmt: skip
    assert verdicts(*SEEN[:2], parts, reply(call(1, "refund", order_id="O1", usd=5)))[1] == FINE
    same = [call(0, "get_order", order_id="O1"), call(0, "get_order", order_id="O2")]
    other = {**ORDER, "order_id": "O2", "total": 1}
    paid = reply(call(1, "refund", order_id="O2", usd=5))
    assert verdicts(ASKED, reply(*same), answer(0, ORDER), answer(0, other), paid) == [
        FINE, FINE, ("against", "P-LIMIT")]  # fmt: skip
    as_data = {"id": "c1", "function": {"name": "get_order", "arguments": {"order_id": "O1"}}}
    none = {"id": "c1", "function": {"name": "verify", "arguments": ""}}
    assert verdicts(ASKED, reply(as_data, none)) == [FINE, FINE]
    function = {"name": "refund", "arguments": '{"order_id": "O1", "usd": 500}'}
    old = {"role": "assistant", "content": None, "function_call": function}
    assert verdicts(*SEEN, old)[1] == ("against", "P-LIMIT")


@pytest.mark.parametrize("text", ["{", "[1]", "5", "[" * 100_000])
def test_arguments_that_no_tool_could_take(text: str) -> None:
    broken = reply({"id": "c1", "function": {"name": "refund", "arguments": text}})
    paid = reply(call(2, "refund", order_id="O1", usd=5))
    assert verdicts(*SEEN, broken, answer(1, "done"), paid) == [
        FINE, ("against", "unreadable arguments"), FINE]  # fmt: skip


def test_a_number_that_is_none_is_against_the_rule() -> None:
    nan = {"name": "refund", "arguments": '{"order_id": "O1", "usd": NaN}'}
    assert verdicts(*SEEN, reply({"id": "c1", "function": nan}))[1] == ("against", "P-LIMIT")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "no conversation; a line is one JSON object with 'messages'"),
        ({"messages": 5}, "no conversation; a line is one JSON object with 'messages'"),
        ({"messages": [5]}, "message 0: no JSON object"),
        ({"messages": [ASKED, {"role": "bot"}]}, 'message 1: unknown role "bot"'),
        ({"messages": [reply({"id": "1"})]}, "message 0: tool call 0 has no function with a name"),
        ({"messages": [answer(1, "") | {"rpms": "{}"}]}, "message 0: 'rpms' is not what"),
    ],
)
def test_what_is_no_conversation_is_told_with_its_place(data: object, words: str) -> None:
    with pytest.raises(RpmsError) as error:
        read_messages(data, "log.jsonl:7")
    assert str(error.value).startswith(f"log.jsonl:7: {words}")


def test_a_conversation_is_written_as_it_is_read() -> None:
    made = {"name": "refund", "args": {"order_id": "O1", "usd": float("inf")}, "id": "c1"}
    decision = {"ran": False, "rule": "P-LIMIT", "reason": "no", "call": None}
    messages = [
        HumanMessage("Hello"),
        AIMessage("", tool_calls=[made]),
        ToolMessage(
            "no", tool_call_id="c1", status="error", response_metadata={DECISION: decision}
        ),
    ]
    text = json.dumps({"messages": write_messages(messages)}, allow_nan=False)
    _, asked, told = read_messages(json.loads(text), "")
    assert isinstance(asked, AIMessage) and isinstance(told, ToolMessage)
    assert asked.tool_calls[0]["args"] == made["args"]
    assert told.status == "error" and told.response_metadata[DECISION] == decision
