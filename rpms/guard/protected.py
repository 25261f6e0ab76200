"""Tools that carry the guard themselves: it judges every call, in any graph.

A guarded tool wraps a tool, judges its calls and reads its answers. Calls belong to the
conversation of their thread id. In a graph, earlier events, perhaps of another process, are read
from the graph's messages. Without a graph and a thread id, all calls of the tools that were
protected together form one conversation.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from threading import RLock
from typing import Any, NamedTuple, Protocol, cast
from uuid import uuid4

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import ConfigDict, ValidationError

from rpms.guard.conversation import (
    DECISION,
    ConversationState,
    ConversationTracker,
    as_call,
    before,
    pending,
)
from rpms.guard.decision import GUARD_FAILED, Judgement
from rpms.guard.tools import arguments_of
from rpms.vocabulary.calls import Call

LOG = logging.getLogger("rpms.guard")
RUNTIME = "runtime"
"""The argument by which a tool node passes its state to a tool."""


class Passage:
    """One call on its way through a gate."""

    def __init__(self, call: Call, tool: BaseTool, call_id: str, runtime: Any, config: Any) -> None:
        self.call, self.tool, self.call_id = call, tool, call_id
        self.runtime, self.config = runtime, config
        self.proposal, self.key = call, ("", "")
        self.decision: CallDecision | None = None
        self.started = 0

    @property
    def messages(self) -> Sequence[AnyMessage]:
        """The messages of the graph's state; empty without a graph."""
        state = getattr(self.runtime, "state", None)
        messages = state if isinstance(state, list) else getattr(state, "messages", None)
        if isinstance(state, Mapping):
            messages = state.get("messages")
        return messages if isinstance(messages, list) else []

    @property
    def run(self) -> Any:
        """The node run that the call belongs to; a new one after an interrupt."""
        return getattr(self.runtime, "execution_info", None)

    @property
    def task(self) -> str:
        """The id of the node's task, which stays the same after an interrupt."""
        return str(getattr(self.run, "task_id", ""))

    @property
    def is_sent(self) -> bool:
        """True if the call has its own task, apart from its siblings, as in ``create_agent``."""
        path = ((self.config or {}).get("metadata") or {}).get("langgraph_path") or ("",)
        return bool(path[0] == "__pregel_push")

    @property
    def thread(self) -> str:
        configurable = (self.config or {}).get("configurable") or {}
        return str(configurable.get("thread_id") or "")


@dataclass
class Invocation:
    """The input and the answer of a tool behind a gate; a refused call has an answer at once."""

    tool_input: Any
    refused: bool = False
    answer: Any = None


class Gate(Protocol):
    """Admits or refuses the calls of a tool."""

    def enter(self, passage: Passage) -> Any:
        """Admit a call (None; the gate may have changed it), or return a refusal."""

    def leave(self, passage: Passage, answer: Any, error: BaseException | None) -> None:
        """Record how the call ended."""


class GuardedTool(BaseTool):
    """A tool behind a gate."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    wrapped: BaseTool
    gate: Any

    @classmethod
    def around(cls, tool: BaseTool, gate: Gate) -> GuardedTool:
        """Wrap a tool with a gate."""
        return cls(
            wrapped=tool, gate=gate, name=tool.name, description=tool.description,
            args_schema=tool.args_schema, return_direct=tool.return_direct, tags=tool.tags,
            metadata=tool.metadata, response_format=tool.response_format, extras=tool.extras,
        )  # fmt: skip

    def func(self, runtime: ToolRuntime, **arguments: Any) -> Any:
        """Call the tool with a runtime; this signature makes a tool node pass one."""
        return self.invoke({**arguments, RUNTIME: runtime})

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self.invoke({k: v for k, v in kwargs.items() if k not in ("config", "run_manager")})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Judge the call, then run the tool."""
        with self._through_gate(input, config) as invocation:
            if not invocation.refused:
                invocation.answer = self.wrapped.invoke(invocation.tool_input, config, **kwargs)
        return invocation.answer

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same on an event loop."""
        with self._through_gate(input, config) as invocation:
            if not invocation.refused:
                invocation.answer = await self.wrapped.ainvoke(
                    invocation.tool_input, config, **kwargs
                )
        return invocation.answer

    @contextmanager
    def _through_gate(self, tool_input: Any, config: RunnableConfig | None) -> Iterator[Invocation]:
        """Yield the tool's input, or the refusal; record how the call ends."""
        passage, injected = self._open(tool_input, config)
        refusal = self.gate.enter(passage)
        if refusal is not None:
            yield Invocation(None, refused=True, answer=self._instead(refusal, tool_input))
            return
        invocation, error = Invocation(_with_arguments(tool_input, passage, injected)), None
        try:
            yield invocation
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.gate.leave(passage, invocation.answer, error)

    @cached_property
    def _injected(self) -> frozenset[str]:
        """The arguments that the graph injects; the model does not see them."""
        function = getattr(self.wrapped, "func", None) or getattr(self.wrapped, "coroutine", None)
        runtime = {*signature(function).parameters} & {RUNTIME} if function else set()
        fields = {*cast(Any, self.wrapped.get_input_schema()).model_fields}
        return frozenset((fields | runtime) - {*self._arguments})

    @cached_property
    def _arguments(self) -> tuple[str, ...]:
        return tuple(arguments_of(self.wrapped))

    def _open(self, tool_input: Any, config: Any) -> tuple[Passage, dict[str, Any]]:
        """Split an input into the call and the arguments that the graph injected."""
        written = tool_input["args"] if _is_tool_call(tool_input) else tool_input
        if not isinstance(written, Mapping):  # a tool with one argument accepts the bare value
            written = dict.fromkeys(self._arguments[:1], written)
        arguments = dict(written)
        runtime = None if RUNTIME in self._arguments else arguments.get(RUNTIME)
        injected = {k: arguments.pop(k) for k in self._injected if k in arguments}
        if RUNTIME not in self._arguments:
            arguments.pop(RUNTIME, None)
        call_id = str(tool_input["id"]) if _is_tool_call(tool_input) else ""
        call = Call(self.name, arguments)
        return Passage(call, self.wrapped, call_id, runtime, config), injected

    def _instead(self, answer: Any, tool_input: Any) -> Any:
        """The refusal in the form that the caller expects: a message for a tool call, else text."""
        if isinstance(answer, ToolMessage) and not _is_tool_call(tool_input):
            return answer.content
        return answer


def _is_tool_call(tool_input: Any) -> bool:
    return isinstance(tool_input, dict) and tool_input.get("type") == "tool_call"


def _with_arguments(tool_input: Any, passage: Passage, injected: Mapping[str, Any]) -> Any:
    """The input with the arguments that were judged."""
    arguments = {**passage.call.arguments, **injected}
    return {**tool_input, "args": arguments} if _is_tool_call(tool_input) else arguments


class CallDecision(NamedTuple):
    """The decision about a call.

    Attributes:
        call: the call to carry out; a person may have changed it.
        judged: the call with the tool's types and defaults.
        judgement: the rule and the reason.
        valid: false if the tool will reject the arguments.
    """

    call: Call
    judged: Call
    judgement: Judgement
    valid: bool = True

    @property
    def refused(self) -> bool:
        """True if the guard answers instead of the tool."""
        return self.judgement.verdict not in ("allow", "warn")

    def refusal(self, call_id: str, proposal: Call, besides: Sequence[Call] = ()) -> ToolMessage:
        """The answer instead of the tool's."""
        answer = ToolMessage(
            self.judgement.words(self.call),
            tool_call_id=call_id, name=self.call.tool, status="error",
        )  # fmt: skip
        return self.note(answer, proposal, False, besides)

    def note(
        self, message: ToolMessage, proposal: Call, ran: bool, besides: Sequence[Call] = ()
    ) -> ToolMessage:
        """Write the decision into an answer, with the calls that were carried out besides."""
        message.response_metadata[DECISION] = {
            **self.judgement._asdict(), "ran": ran, "proposal": str(proposal),
            "call": self.judged._asdict(), "besides": [call._asdict() for call in besides],
        }  # fmt: skip
        return message

    def not_taken(self, error: BaseException | None) -> bool:
        """True if the tool rejected the arguments before it did anything."""
        return isinstance(error, ValidationError) and not self.valid


def messages_in(answer: Any) -> Iterator[ToolMessage]:
    """The tool messages of an answer, which may be a command."""
    for each in answer if isinstance(answer, list) else [answer]:
        if isinstance(each, Command) and isinstance(each.update, Mapping):
            yield from messages_in(each.update.get("messages") or [])
        elif isinstance(each, ToolMessage):
            yield each


def failure(call: Call, error: BaseException | str) -> CallDecision:
    """The refusal when the guard itself could not decide."""
    what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    reason = f"the guard itself failed ({what})"
    return CallDecision(call, call, Judgement("refuse", GUARD_FAILED, reason))


def doubled(calls: Sequence[ToolCall], call_id: str) -> str:
    """Why a call cannot be identified within its reply; empty if it can."""
    if [str(call["id"]) for call in calls].count(call_id) > 1:
        return f"two calls of this reply have the id '{call_id}'"
    return ""


Decide = Callable[
    [ConversationState, Call, Sequence[Call], Any, Callable[[str], int]], CallDecision
]


class RoundEntry(NamedTuple):
    """A call as the model wrote it, and the decision about it."""

    proposal: Call
    decision: CallDecision


class Round:
    """The calls of a reply in one run of a node, decided in order before any of them runs.

    So a person is asked before anything happens: after the interrupt the node runs again from its
    start, perhaps in another process, and no call must have been carried out by then. It also
    assigns the answers of several people to the right calls.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.decisions: dict[str, RoundEntry] = {}
        self.interrupt: GraphBubbleUp | None = None


class ToolSession:
    """One conversation of guarded tools: its state, and its calls."""

    def __init__(self, conversation: ConversationState) -> None:
        self.conversation, self.lock = conversation, RLock()
        self.running: dict[tuple[str, str], Call] = {}
        # Answers of the node's last task by call id; `taken` holds all calls that were read.
        self.task, self.answers = "", dict[str, tuple[Call, Any]]()
        self.taken: set[tuple[str, str]] = set()
        self.round = Round(None)
        self.refused = Counter[str]()
        self.changes: list[Call] = []


class SessionGate:
    """Judges each call by the conversation that it belongs to."""

    def __init__(
        self, tracker: ConversationTracker, decide: Decide, tools: Sequence[BaseTool]
    ) -> None:
        self.tracker, self._decide, self._lock = tracker, decide, RLock()
        self._tools = {tool.name: tool for tool in tools}
        self._sessions: dict[str, ToolSession] = {}

    def enter(self, passage: Passage) -> Any:
        """Admit a call that is right with and without the effects of the running calls."""
        session = self._session(passage)
        with session.lock:
            # An interrupted node runs again from its start: calls that ran have their answers.
            if passage.task and passage.task == session.task:
                proposal, answer = session.answers.get(passage.call_id, (None, None))
                if proposal == passage.call:
                    return answer
            try:
                decision = self._judge(session, passage)
            except GraphBubbleUp:  # interrupts for a person
                raise
            except Exception as error:
                LOG.exception("the guard failed")
                decision = failure(passage.call, error)
            if decision.refused:
                session.refused[decision.judgement.rule] += 1
                return decision.refusal(passage.call_id, passage.proposal)
            passage.call, passage.decision = decision.call, decision
            session.running[passage.key] = decision.judged
            passage.started = len(session.changes)
            return None

    def _judge(self, session: ToolSession, passage: Passage) -> CallDecision:
        reply, calls = pending(passage.messages)
        passage.key = (reply, passage.call_id) if passage.call_id else ("", str(uuid4()))
        if why := doubled(calls, passage.call_id):
            return failure(passage.call, why)
        session.conversation = self.tracker.read(
            session.conversation, passage.messages, session.taken
        )
        calls = [call for call in calls if (reply, str(call["id"])) not in session.taken]
        if passage.is_sent:  # its siblings are judged in their own tasks
            earlier = [
                as_call(call)
                for call in before(calls, passage.call_id)
                if (reply, str(call["id"])) not in session.running
            ]
            return self._alone(
                session, passage, self.tracker.passing(session.conversation, earlier)
            )
        if passage.run is None or passage.run is not session.round.run:
            session.round = Round(passage.run)
            self._decide_all(session, calls)
        if session.round.interrupt is not None:
            raise session.round.interrupt
        decisions = session.round.decisions
        entry = decisions.get(passage.call_id)
        if entry is not None and entry.proposal == passage.call:
            return entry.decision
        parallel = [
            other.decision.judged
            for key, other in decisions.items()
            if key != passage.call_id
            and (reply, key) not in session.running
            and not other.decision.refused
        ]
        return self._alone(session, passage, parallel)

    def _alone(
        self, session: ToolSession, passage: Passage, parallel: Sequence[Call]
    ) -> CallDecision:
        running = [call for key, call in session.running.items() if key != passage.key]
        refused = session.refused.__getitem__
        return self._decide(
            session.conversation, passage.call, [*running, *parallel], passage.tool, refused
        )

    def _decide_all(self, session: ToolSession, calls: Sequence[ToolCall]) -> None:
        running = [*session.running.values()]
        for call in calls:
            proposal, tool = as_call(call), self._tools.get(call["name"])
            if tool is None:
                continue
            try:
                decision = self._decide(
                    session.conversation, proposal, running, tool, session.refused.__getitem__
                )
            except GraphBubbleUp as interrupt:
                session.round.interrupt = interrupt
                raise
            session.round.decisions[str(call["id"])] = RoundEntry(proposal, decision)
            if not decision.refused:
                running.append(decision.judged)

    def leave(self, passage: Passage, answer: Any, error: BaseException | None) -> None:
        """Read the answer into the conversation's state."""
        session, decision = self._session(passage), passage.decision
        with session.lock:
            session.running.pop(passage.key, None)
            session.round.decisions.pop(passage.call_id, None)
            if decision is None or isinstance(error, GraphBubbleUp):
                return  # it waits for a person and will be repeated
            answers = [m for m in messages_in(answer) if m.tool_call_id == passage.call_id]
            ran = not decision.not_taken(error)
            for message in answers:
                decision.note(message, passage.proposal, ran)
            session.taken.add(passage.key)
            if ran:
                message = answers[0] if answers else _as_message(answer, error)
                session.conversation = self.tracker.take(
                    session.conversation, decision.judged, message
                )
                if later := session.changes[passage.started :]:
                    # They may have taken effect after this call read something.
                    session.conversation = self.tracker.redo(session.conversation, later)
                if self.tracker.changes(decision.judged.tool):
                    session.changes.append(decision.judged)
            if error is None:
                if passage.task != session.task:
                    session.task, session.answers = passage.task, {}
                session.answers[passage.call_id] = (passage.proposal, answer)

    def _session(self, passage: Passage) -> ToolSession:
        """The session of a thread, else of a graph's messages, else one for all calls."""
        messages = passage.messages
        name = passage.thread or (str(messages[0].id) if messages else "")
        with self._lock:
            if name not in self._sessions:
                self._sessions[name] = ToolSession(self.tracker.begin())
            return self._sessions[name]


def _as_message(answer: Any, error: BaseException | None) -> ToolMessage:
    if error is not None:
        return ToolMessage(f"Error: {error}", tool_call_id="", status="error")
    text = answer if isinstance(answer, str) else json.dumps(answer, default=str)
    return ToolMessage(text, tool_call_id="")
