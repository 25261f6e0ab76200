"""Audits recorded conversations: judges every call in them by a manual.

Conversations have the form of OpenAI's chat messages. The guard's own code judges each call by what
the agent had seen when it made the call. A call that ran has its effects, whether or not it broke a
rule; a call that a guard stopped has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from rpms.guard.conversation import DECISION, ConversationState, ConversationTracker, decision_of
from rpms.guard.decision import GUARD_FAILED, Judgement, assume
from rpms.guard.tools import Unknown, is_allowed
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError

AuditVerdict = Literal["fine", "against", "uninformed"]
UNREADABLE = "unreadable arguments"
"""Instead of a rule's id: the model wrote arguments that are not a JSON object."""
LOOP = "loop"
"""Instead of a rule's id: ``LoopGuard`` stopped the call."""
NOT_TOLD = "the log does not tell whether a person allowed it"
ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}
Defaults = Mapping[str, Mapping[str, Any]]


class AuditedCall(NamedTuple):
    """A call of a conversation with the manual's verdict.

    Attributes:
        number: which call of the conversation it is, from 0.
        call: the tool and its arguments.
        verdict: ``uninformed`` where nothing that the agent had seen decides the rule.
        rule: the id of the rule that it violates; empty if none.
        reason: why, as a clause about "it".
        stopped: a guard answered instead of the tool, so no rule was broken.
        rejected: the tool answered with an error, so it changed nothing.
    """

    number: int
    call: Call
    verdict: AuditVerdict
    rule: str = ""
    reason: str = ""
    stopped: bool = False
    rejected: bool = False


def audit_conversation(
    tracker: ConversationTracker,
    messages: Sequence[AnyMessage],
    unknown: Unknown = "refuse",
    defaults: Defaults = MappingProxyType({}),
) -> Iterator[AuditedCall]:
    """Judge every call of a conversation, in order.

    Args:
        tracker: the world and its manual.
        messages: the conversation, as ``read_messages`` gives it.
        unknown: tools that need no rule, as for ``RulesGuard``.
        defaults: the values of the arguments that calls of a tool leave out.
    """
    tracker = tracker._replace(trust=True)
    conversation, unread, number = tracker.begin(), 0, 0
    for index, reply in enumerate(messages):
        if not isinstance(reply, AIMessage) or not reply.tool_calls:
            continue
        answers = _answers(messages, index)
        conversation, unread = tracker.read(conversation, messages[unread:index]), index
        running: list[Call] = []
        for position, answer in enumerate(answers):
            requested = reply.tool_calls[position]
            decision = decision_of(answer) if answer else {}
            call = Call(requested["name"], requested["args"])
            if decision.get("call"):  # a person may have changed it
                call = Call(**decision["call"])
            rejected = answer is not None and (
                answer.status == "error" or tracker.world.failed(answer.text)
            )
            full_call = Call(call.tool, {**defaults.get(call.tool, {}), **call.arguments})
            if position in reply.response_metadata.get(UNREADABLE, ()):
                reason = "they are no JSON object"
                yield AuditedCall(number, call, "against", UNREADABLE, reason, rejected=rejected)
            elif decision.get("ran") is False:
                reason = f"stopped by the guard: {decision['reason']}"
                yield AuditedCall(number, call, "fine", decision["rule"], reason, stopped=True)
            else:
                guarded = bool(decision) and not decision.get("observed")
                finding = _judge(tracker, conversation, full_call, running, unknown, guarded)
                yield AuditedCall(number, call, *finding, rejected=rejected)
                running.append(full_call)
            number += 1


def _answers(messages: Sequence[AnyMessage], index: int) -> list[ToolMessage | None]:
    """The answer to each call of a reply; how the call ended is noted in its metadata."""
    reply = messages[index]
    assert isinstance(reply, AIMessage)
    answers: list[ToolMessage | None] = [None] * len(reply.tool_calls)
    positions: dict[str, list[int]] = {}  # a model may give two calls the same id
    for position, call in enumerate(reply.tool_calls):
        positions.setdefault(call["id"] or "", []).append(position)
    for message in messages[index + 1 :]:
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage) and positions.get(message.tool_call_id):
            position = positions[message.tool_call_id].pop(0)
            answers[position] = message
            tool = re.escape(reply.tool_calls[position]["name"])
            refusal = rf"{tool}\(.*?\) was not carried out(?: \[([^\]]+)\])?: (.*)"
            if stopped := re.fullmatch(refusal, message.text, re.DOTALL):
                refusal_note = {"rule": stopped[1] or LOOP, "reason": stopped[2], "ran": False}
                message.response_metadata[DECISION] = {**refusal_note, **decision_of(message)}
            elif position in reply.response_metadata.get(UNREADABLE, ()):
                message.response_metadata[DECISION] = {"ran": False}
    return answers


def _judge(
    tracker: ConversationTracker,
    conversation: ConversationState,
    call: Call,
    running: Sequence[Call],
    unknown: Unknown,
    guarded: bool,
) -> tuple[AuditVerdict, str, str]:
    """Judge one call; a rule that it violates outranks one that nothing decides."""
    if call.tool not in tracker.manual.by_name and is_allowed(call.tool, unknown):
        return "fine", "", ""
    worst: Judgement | None = None
    for judgement in _judgements(tracker, conversation, call, running):
        if judgement.verdict == "ask" and guarded:  # the guard let it run, so a person allowed it
            continue
        worst = judgement if worst is None or not judgement.uninformed else worst
        if not judgement.uninformed:
            break
    if worst is None:
        return "fine", "", ""
    reason = f"{worst.reason}; {NOT_TOLD}" if worst.verdict == "ask" else worst.reason
    return "uninformed" if worst.uninformed else "against", worst.rule, reason


def _judgements(
    tracker: ConversationTracker,
    conversation: ConversationState,
    call: Call,
    running: Sequence[Call],
) -> Iterator[Judgement]:
    """The judgement of each rule that a call violates, strictest first."""
    states: list[tuple[ConversationState, Sequence[Call]]] = [(conversation, running)]
    if running:  # they have run, so their effects may count as well
        later = assume(tracker.manual, running, conversation["belief"])
        states.append(({**conversation, "belief": later}, ()))
    for state, parallel in states:
        seen = set[str]()
        while (judgement := tracker.judge(state, call, parallel, seen)).rule not in {"", *seen}:
            if judgement.rule == GUARD_FAILED:
                raise RpmsError(judgement.reason)
            seen.add(judgement.rule)
            yield judgement


def read_messages(conversation: object, where: str) -> list[AnyMessage]:
    """Read a conversation in OpenAI's form; errors name ``where`` it stands."""
    listed = conversation.get("messages") if isinstance(conversation, Mapping) else None
    if not isinstance(listed, list):
        raise RpmsError(f"{where}: no conversation; a line is one JSON object with 'messages'")
    return [_read(message, index, where) for index, message in enumerate(listed)]


def _read(message: object, index: int, where: str) -> AnyMessage:
    where = f"{where}: message {index}"
    if not isinstance(message, Mapping):
        raise RpmsError(f"{where}: no JSON object")
    role, text, message_id = message.get("role"), _text(message.get("content")), str(index)
    if role in ("system", "developer"):
        return SystemMessage(text, id=message_id)
    if role == "user":
        return HumanMessage(text, id=message_id)
    if role == "assistant":
        return _read_reply(message, text, message_id, where)
    if role in ("tool", "function"):
        status: Any = "error" if message.get("status") == "error" else "success"
        metadata = {DECISION: _decision(message["rpms"], where)} if message.get("rpms") else {}
        call_id = str(message.get("tool_call_id") or "")
        return ToolMessage(
            text, id=message_id, tool_call_id=call_id, status=status, response_metadata=metadata
        )
    roles = "system, developer, user, assistant, tool"
    raise RpmsError(f"{where}: unknown role {json.dumps(role)}; choose from {roles}")


def _decision(written: object, where: str) -> dict[str, Any]:
    """Read a decision of the guard as ``write_messages`` writes it."""
    decision = _arguments(written) or {}
    call = decision.get("call")
    complete = call is None or (isinstance(call, Mapping) and {*call} == {*Call._fields})
    if not complete or not {"ran", "rule", "reason"} <= {*decision}:
        raise RpmsError(f"{where}: 'rpms' is not what rpms.middleware.Recorder writes")
    return decision


def _text(content: object) -> str:
    """The text, or the joined text of its parts."""
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _read_reply(message: Mapping[str, Any], text: str, message_id: str, where: str) -> AIMessage:
    listed = message.get("tool_calls") or []
    if message.get("function_call"):  # OpenAI's older form, for one call
        listed = [{"function": message["function_call"]}]
    calls: list[Any] = []
    unreadable: list[int] = []
    for index, call in enumerate(listed if isinstance(listed, list) else [listed]):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise RpmsError(f"{where}: tool call {index} has no function with a name")
        arguments = _arguments(function.get("arguments"))
        if arguments is None:
            unreadable.append(index)
        calls.append(
            {"name": function["name"], "args": arguments or {}, "id": str(call.get("id") or "")}
        )
    metadata = {UNREADABLE: unreadable} if unreadable else {}
    return AIMessage(text, id=message_id, tool_calls=calls, response_metadata=metadata)


def _arguments(written: object) -> dict[str, Any] | None:
    """The arguments of a call; None if they are not an object."""
    if written is None or written == "":
        return {}
    try:
        parsed = json.loads(written) if isinstance(written, str) else written
    except (ValueError, RecursionError):
        return None
    return dict(parsed) if isinstance(parsed, Mapping) else None


def write_messages(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """A conversation in OpenAI's form, with the guard's decision about each call."""
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
