"""Audits recorded conversations: judges every call in them by a manual.

Conversations have the form of OpenAI's chat messages. The guard's own code judges each call by what
the agent had seen when it made the call. A call that ran has its effects, whether or not it broke a
rule; a call that a guard stopped has none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

from langchain_core.messages import (
    AnyMessage,
    ToolCall,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.messages.tool import tool_call

from rpms.guard.conversation import (
    DECISION,
    ConversationState,
    ConversationTracker,
    MessageTurn,
    decision_of,
    turns_of,
)
from rpms.guard.decision import GUARD_FAILED, Judgement
from rpms.guard.tools import Unknown, is_allowed
from rpms.rules.calls import assume
from rpms.vocabulary.calls import Call
from rpms.vocabulary.errors import RpmsError

AuditVerdict = Literal["fine", "against", "uninformed"]
UNREADABLE = "unreadable arguments"
"""Instead of a rule's id: the model wrote arguments that are not a JSON object."""
LOOP = "loop"
"""Instead of a rule's id: ``LoopGuard`` stopped the call."""
NOT_TOLD = "the log does not tell whether a person allowed it"
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
    for turn in turns_of(messages):
        if not turn.calls:
            continue
        unreadable = turn.message.response_metadata.get(UNREADABLE, ())
        _note_refusals(turn, unreadable)
        conversation = tracker.read(conversation, messages[unread : turn.place])
        unread = turn.place
        running: list[Call] = []
        for position, requested in enumerate(turn.calls):
            answer = turn.answers.get(position)
            decision = decision_of(answer) if answer else {}
            call = Call(requested["name"], requested["args"])
            if decision.get("call"):  # a person may have changed it
                call = Call(**decision["call"])
            rejected = answer is not None and (
                answer.status == "error" or tracker.world.failed(answer.text)
            )
            full_call = Call(call.tool, {**defaults.get(call.tool, {}), **call.arguments})
            if position in unreadable:
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


def _note_refusals(turn: MessageTurn, unreadable: Collection[int]) -> None:
    """Note in the answers to a reply which of its calls were not carried out."""
    for position, answer in turn.answers.items():
        tool = re.escape(turn.calls[position]["name"])
        refusal = rf"{tool}\(.*?\) was not carried out(?: \[([^\]]+)\])?: (.*)"
        if stopped := re.fullmatch(refusal, answer.text, re.DOTALL):
            refusal_note = {"rule": stopped[1] or LOOP, "reason": stopped[2], "ran": False}
            answer.response_metadata[DECISION] = {**refusal_note, **decision_of(answer)}
        elif position in unreadable:
            answer.response_metadata[DECISION] = {"ran": False}


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
    role = "tool" if message.get("role") == "function" else message.get("role")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        roles = "system, developer, user, assistant, tool"
        raise RpmsError(f"{where}: unknown role {json.dumps(role)}; choose from {roles}")
    entry: dict[str, Any] = {"role": role, "content": _text(message.get("content"))}
    metadata: dict[str, Any] = {}
    if role == "assistant":
        entry["tool_calls"], unreadable = _calls(message, where)
        metadata = {UNREADABLE: unreadable} if unreadable else {}
    elif role == "tool":
        entry["tool_call_id"] = str(message.get("tool_call_id") or "")
        entry["status"] = "error" if message.get("status") == "error" else "success"
        metadata = {DECISION: _decision(message["rpms"], where)} if message.get("rpms") else {}
    [read] = convert_to_messages([{**entry, "id": str(index), "response_metadata": metadata}])
    return cast(AnyMessage, read)


def _decision(written: object, where: str) -> dict[str, Any]:
    """Read a decision of the guard as ``write_messages`` writes it."""
    decision = _arguments(written) or {}
    call = decision.get("call")
    complete = call is None or (isinstance(call, Mapping) and {*call} == {*Call._fields})
    if not complete or not {"ran", "rule", "reason"} <= {*decision}:
        raise RpmsError(f"{where}: 'rpms' is not what rpms.Recorder writes")
    return decision


def _text(content: object) -> str:
    """The text, or the joined text of its parts."""
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _calls(message: Mapping[str, Any], where: str) -> tuple[list[ToolCall], list[int]]:
    """The calls of a reply, and the places of those whose arguments cannot be read."""
    listed = message.get("tool_calls") or []
    if message.get("function_call"):  # OpenAI's older form, for one call
        listed = [{"function": message["function_call"]}]
    calls, unreadable = list[ToolCall](), list[int]()
    for index, call in enumerate(listed if isinstance(listed, list) else [listed]):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise RpmsError(f"{where}: tool call {index} has no function with a name")
        arguments = _arguments(function.get("arguments"))
        if arguments is None:
            unreadable.append(index)
        calls.append(
            tool_call(name=function["name"], args=arguments or {}, id=str(call.get("id") or ""))
        )
    return calls, unreadable


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
    written = list[dict[str, Any]]()
    for message in messages:
        entry = {**cast(Any, convert_to_openai_messages(message)), "content": message.text}
        if isinstance(message, ToolMessage):
            if message.status == "error":
                entry["status"] = message.status
            if decision := message.response_metadata.get(DECISION):
                entry["rpms"] = json.dumps(decision, ensure_ascii=False, default=str)
        written.append(entry)
    return written
