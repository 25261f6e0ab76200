"""Recorded conversations held against a manual: what the guard says of every call in them.

Conversations have the form of OpenAI's chat messages. They are read and judged by the guard's own
code, each call by what the agent had seen when it made it. A call that ran has its effects, whether
or not a rule was against it; one that a guard has stopped has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from rpms.guard.conversation import DECISION, Conversations, ConversationState, decision_of
from rpms.guard.decision import GUARD_FAILED, Judgement, assume
from rpms.guard.tools import Unknown, is_allowed
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError

AuditVerdict = Literal["fine", "against", "uninformed"]
UNREADABLE = "unreadable arguments"
"""In the place of a rule's id: a model wrote arguments that are no JSON object."""
LOOP = "loop"
"""In the place of a rule's id: ``LoopGuard`` stopped the call."""
NOT_TOLD = "the log does not tell whether a person allowed it"
ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}
Defaults = Mapping[str, Mapping[str, Any]]


class AuditedCall(NamedTuple):
    """A call of a conversation, and what the manual says of it.

    Attributes:
        number: which call of the conversation it is, from 0.
        call: the tool and its arguments.
        verdict: ``uninformed`` where nothing that the agent had seen decides the rule.
        rule: the id of the rule that it is against; empty if none.
        reason: why, as a clause about "it".
        stopped: a guard answered in the tool's place, so that nothing was broken.
    """

    number: int
    call: Call
    verdict: AuditVerdict
    rule: str = ""
    reason: str = ""
    stopped: bool = False


def audit_conversation(
    desk: Conversations,
    messages: Sequence[AnyMessage],
    unknown: Unknown = "refuse",
    defaults: Defaults = MappingProxyType({}),
) -> Iterator[AuditedCall]:
    """Judge every call of a conversation, those of one reply one after the other.

    Args:
        desk: the world and its manual.
        messages: the conversation, as ``read_messages`` gives it.
        unknown: tools that need no rule, as for ``RulesGuard``.
        defaults: the values of the arguments that calls of a tool leave out.
    """
    memory, unread, number = desk.begin(), 0, 0
    for place, reply in enumerate(messages):
        if not isinstance(reply, AIMessage) or not reply.tool_calls:
            continue
        answers = _answers(messages, place)
        memory, unread = desk.read(memory, messages[unread:place]), place
        running: list[Call] = []
        for position, answer in enumerate(answers):
            asked = reply.tool_calls[position]
            decision = decision_of(answer) if answer else {}
            call = Call(asked["name"], asked["args"])
            if decision.get("call"):  # as it was carried out; a person may have changed it
                call = Call(**decision["call"])
            judged = Call(call.tool, {**defaults.get(call.tool, {}), **call.arguments})
            if position in reply.response_metadata.get(UNREADABLE, ()):
                yield AuditedCall(number, call, "against", UNREADABLE, "they are no JSON object")
            elif decision.get("ran") is False:
                reason = f"stopped by the guard: {decision['reason']}"
                yield AuditedCall(number, call, "fine", decision["rule"], reason, stopped=True)
            else:
                found = _judge(desk, memory, judged, running, unknown, bool(decision))
                yield AuditedCall(number, call, *found)
                running.append(judged)
            number += 1


def _answers(messages: Sequence[AnyMessage], place: int) -> list[ToolMessage | None]:
    """The answer to each call of a reply, with what is known of how the call ended."""
    reply = messages[place]
    assert isinstance(reply, AIMessage)
    answers: list[ToolMessage | None] = [None] * len(reply.tool_calls)
    places: dict[str, list[int]] = {}  # a model may give two calls the same id
    for position, call in enumerate(reply.tool_calls):
        places.setdefault(call["id"] or "", []).append(position)
    for message in messages[place + 1 :]:
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage) and places.get(message.tool_call_id):
            position = places[message.tool_call_id].pop(0)
            answers[position] = message
            tool = re.escape(reply.tool_calls[position]["name"])
            refusal = rf"{tool}\(.*?\) was not carried out(?: \[([^\]]+)\])?: (.*)"
            if stopped := re.fullmatch(refusal, message.text, re.DOTALL):
                told = {"rule": stopped[1] or LOOP, "reason": stopped[2], "ran": False}
                message.response_metadata[DECISION] = {**told, **decision_of(message)}
            elif position in reply.response_metadata.get(UNREADABLE, ()):
                message.response_metadata[DECISION] = {"ran": False}
    return answers


def _judge(
    desk: Conversations,
    memory: ConversationState,
    call: Call,
    running: Sequence[Call],
    unknown: Unknown,
    guarded: bool,
) -> tuple[AuditVerdict, str, str]:
    """Of several rules, one that the call is against counts before one that nothing decides."""
    if call.tool not in desk.manual.by_name and is_allowed(call.tool, unknown):
        return "fine", "", ""
    first: Judgement | None = None
    for judgement in _judgements(desk, memory, call, running):
        if judgement.verdict == "ask" and guarded:  # a guard that let it run has asked a person
            continue
        first = judgement if first is None or not judgement.uninformed else first
        if not judgement.uninformed:
            break
    if first is None:
        return "fine", "", ""
    reason = f"{first.reason}; {NOT_TOLD}" if first.verdict == "ask" else first.reason
    return "uninformed" if first.uninformed else "against", first.rule, reason


def _judgements(
    desk: Conversations, memory: ConversationState, call: Call, running: Sequence[Call]
) -> Iterator[Judgement]:
    """What each rule that a call is against makes of it, the strictest first."""
    states: list[tuple[ConversationState, Sequence[Call]]] = [(memory, running)]
    if running:  # they have run, so that it is also judged as if that were seen
        later = assume(desk.manual, running, memory["belief"])
        states.append(({**memory, "belief": later}, ()))
    for state, beside in states:
        passed = set[str]()
        while (judgement := desk.judge(state, call, beside, passed)).rule not in {"", *passed}:
            if judgement.rule == GUARD_FAILED:
                raise RpmsError(judgement.reason)
            passed.add(judgement.rule)
            yield judgement


def read_messages(conversation: object, where: str) -> list[AnyMessage]:
    """The messages of a conversation in OpenAI's form; ``where`` it stands is in every error."""
    listed = conversation.get("messages") if isinstance(conversation, Mapping) else None
    if not isinstance(listed, list):
        raise RpmsError(f"{where}: no conversation; a line is one JSON object with 'messages'")
    return [_read(message, place, where) for place, message in enumerate(listed)]


def _read(message: object, place: int, where: str) -> AnyMessage:
    where = f"{where}: message {place}"
    if not isinstance(message, Mapping):
        raise RpmsError(f"{where}: no JSON object")
    role, text, name = message.get("role"), _text(message.get("content")), str(place)
    if role in ("system", "developer"):
        return SystemMessage(text, id=name)
    if role == "user":
        return HumanMessage(text, id=name)
    if role == "assistant":
        return _read_reply(message, text, name, where)
    if role in ("tool", "function"):
        status: Any = "error" if message.get("status") == "error" else "success"
        noted = {DECISION: _decision(message["rpms"], where)} if message.get("rpms") else {}
        call_id = str(message.get("tool_call_id") or "")
        return ToolMessage(
            text, id=name, tool_call_id=call_id, status=status, response_metadata=noted
        )
    known = "system, developer, user, assistant, tool"
    raise RpmsError(f"{where}: unknown role {json.dumps(role)}; choose from {known}")


def _decision(written: object, where: str) -> dict[str, Any]:
    """What the guard decided, as ``write_messages`` keeps it."""
    decision = _arguments(written) or {}
    call = decision.get("call")
    whole = call is None or (isinstance(call, Mapping) and {*call} == {*Call._fields})
    if not whole or not {"ran", "rule", "reason"} <= {*decision}:
        raise RpmsError(f"{where}: 'rpms' is not what rpms.middleware.Recorder writes")
    return decision


def _text(content: object) -> str:
    """Text, or the text of its parts."""
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _read_reply(message: Mapping[str, Any], text: str, name: str, where: str) -> AIMessage:
    listed = message.get("tool_calls") or []
    if message.get("function_call"):  # as OpenAI wrote a call before there were several
        listed = [{"function": message["function_call"]}]
    calls: list[Any] = []
    unreadable: list[int] = []
    for place, call in enumerate(listed if isinstance(listed, list) else [listed]):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise RpmsError(f"{where}: tool call {place} has no function with a name")
        arguments = _arguments(function.get("arguments"))
        if arguments is None:
            unreadable.append(place)
        calls.append(
            {"name": function["name"], "args": arguments or {}, "id": str(call.get("id") or "")}
        )
    noted = {UNREADABLE: unreadable} if unreadable else {}
    return AIMessage(text, id=name, tool_calls=calls, response_metadata=noted)


def _arguments(given: object) -> dict[str, Any] | None:
    """The arguments of a call; None where they are no object."""
    if given is None or given == "":
        return {}
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return None
    return dict(found) if isinstance(found, Mapping) else None


def write_messages(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """A conversation in OpenAI's form, with what the guard decided about each call."""
    written: list[dict[str, Any]] = []
    for message in messages:
        entry = {"role": ROLES.get(message.type, message.type), "content": message.text}
        if isinstance(message, AIMessage) and message.tool_calls:
            functions = [
                {"name": call["name"], "arguments": _as_json(call["args"])}
                for call in message.tool_calls
            ]
            entry["tool_calls"] = [
                {"id": call["id"], "type": "function", "function": function}
                for call, function in zip(message.tool_calls, functions, strict=True)
            ]
        if isinstance(message, ToolMessage):
            entry["tool_call_id"] = message.tool_call_id
            if message.status == "error":
                entry["status"] = message.status
            if decision := message.response_metadata.get(DECISION):
                entry["rpms"] = _as_json(decision)
        written.append(entry)
    return written


def _as_json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, default=str)
