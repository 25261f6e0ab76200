"""Tools that carry the guard themselves: whoever calls them, in whatever graph, meets it.

A guarded tool stands before the tool that it wraps and reads its answers as they come. Calls belong
to the conversation of their thread id. In a graph, what happened before, perhaps in another
process, is read from the graph's messages; without a graph and without a thread id, all calls of
the tools that were protected together are one conversation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from inspect import signature
from threading import RLock
from typing import Any, NamedTuple, Protocol, cast
from uuid import uuid4

from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolRuntime
from pydantic import ConfigDict, ValidationError

from rpms.guard.conversation import Desk, Memory, as_call, before, pending
from rpms.guard.decision import Judgement
from rpms.guard.tools import arguments_of
from rpms.vocabulary.calls import Call

RUNTIME = "runtime"
"""The argument by which a tool node gives a tool its state."""


class Passage:
    """One call on its way through a gate."""

    def __init__(self, call: Call, tool: BaseTool, call_id: str, runtime: Any, config: Any) -> None:
        self.call, self.tool, self.call_id = call, tool, call_id
        self.runtime, self.config = runtime, config
        self.key = ("", "")

    @property
    def messages(self) -> Sequence[AnyMessage]:
        """The conversation so far, where a graph has one."""
        state = getattr(self.runtime, "state", None)
        found = state if isinstance(state, list) else None
        if isinstance(state, Mapping):
            found = state.get("messages")
        return found if isinstance(found, list) else []

    @property
    def thread(self) -> str:
        """The thread that a run belongs to."""
        configurable = (self.config or {}).get("configurable") or {}
        return str(configurable.get("thread_id") or "")


class Gate(Protocol):
    """What stands before a tool."""

    def enter(self, passage: Passage) -> Any:
        """Let a call pass (None; the gate may have changed it), or answer in the tool's place."""

    def leave(self, passage: Passage, answer: Any, error: BaseException | None) -> None:
        """Note how the call ended."""


class GuardedTool(BaseTool):
    """A tool behind a gate."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    wrapped: BaseTool
    gate: Any

    @classmethod
    def around(cls, tool: BaseTool, gate: Gate) -> GuardedTool:
        """The same tool, with a gate before it."""
        return cls(
            wrapped=tool, gate=gate, name=tool.name, description=tool.description,
            args_schema=tool.args_schema, return_direct=tool.return_direct, tags=tool.tags,
            metadata=tool.metadata, response_format=tool.response_format, extras=tool.extras,
        )  # fmt: skip

    def func(self, runtime: ToolRuntime, **arguments: Any) -> Any:
        """Call it with a runtime; by this signature a tool node sees that it has to give one."""
        return self.invoke({**arguments, RUNTIME: runtime})

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self.invoke({k: v for k, v in kwargs.items() if k not in ("config", "run_manager")})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Judge the call, then let the tool answer it."""
        passage, injected = self._open(input, config)
        refusal = self.gate.enter(passage)
        if refusal is not None:
            return self._instead(refusal, input)
        answer, error = None, None
        try:
            answer = self.wrapped.invoke(_with(input, passage, injected), config, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.gate.leave(passage, answer, error)
        return answer

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same on an event loop."""
        passage, injected = self._open(input, config)
        refusal = self.gate.enter(passage)
        if refusal is not None:
            return self._instead(refusal, input)
        answer, error = None, None
        try:
            answer = await self.wrapped.ainvoke(_with(input, passage, injected), config, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.gate.leave(passage, answer, error)
        return answer

    @cached_property
    def _injected(self) -> frozenset[str]:
        """The arguments that a graph gives the tool, and no model."""
        function = getattr(self.wrapped, "func", None) or getattr(self.wrapped, "coroutine", None)
        named = {*signature(function).parameters} & {RUNTIME} if function else set()
        fields = {*cast(Any, self.wrapped.get_input_schema()).model_fields}
        return frozenset((fields | named) - {*self._arguments})

    @cached_property
    def _arguments(self) -> tuple[str, ...]:
        return tuple(arguments_of(self.wrapped))

    def _open(self, given: Any, config: Any) -> tuple[Passage, dict[str, Any]]:
        """The call that an input is, and what a graph has injected into it."""
        named = given["args"] if _is_tool_call(given) else given
        if not isinstance(named, Mapping):  # a tool with one argument takes it without its name
            named = dict.fromkeys(self._arguments[:1], named)
        arguments = dict(named)
        runtime = None if RUNTIME in self._arguments else arguments.get(RUNTIME)
        injected = {k: arguments.pop(k) for k in self._injected if k in arguments}
        if RUNTIME not in self._arguments:
            arguments.pop(RUNTIME, None)
        call_id = str(given["id"]) if _is_tool_call(given) else ""
        call = Call(self.name, arguments)
        return Passage(call, self.wrapped, call_id, runtime, config), injected

    def _instead(self, answer: Any, given: Any) -> Any:
        """A refusal as the caller expects an answer: a message for a tool call, else text."""
        if isinstance(answer, str) and _is_tool_call(given):
            return ToolMessage(answer, tool_call_id=given["id"], name=self.name, status="error")
        return answer


def _is_tool_call(given: Any) -> bool:
    return isinstance(given, dict) and given.get("type") == "tool_call"


def _with(given: Any, passage: Passage, injected: Mapping[str, Any]) -> Any:
    """The input with the arguments that were judged."""
    arguments = {**passage.call.arguments, **injected}
    return {**given, "args": arguments} if _is_tool_call(given) else arguments


class Decided(NamedTuple):
    """What was decided about a call.

    Attributes:
        call: as it is to be carried out; a person may have changed it.
        judged: the same with the tool's defaults for what it leaves out.
        judgement: the rule and the reason.
    """

    call: Call
    judged: Call
    judgement: Judgement

    @property
    def refusal(self) -> str | None:
        """The answer in the tool's place; None where the tool is to be called."""
        if self.judgement.verdict in ("allow", "warn"):
            return None
        return self.judgement.words(self.call)


Decide = Callable[[Memory, Call, Sequence[Call], BaseTool], Decided]


class Session:
    """One conversation: what is known of it, and its calls by reply and id."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.lock = memory, RLock()
        self.running: dict[tuple[str, str], Call] = {}
        self.answers: dict[tuple[str, str], Any] = {}


class SessionGate:
    """Judges each call by the conversation that it belongs to."""

    def __init__(self, desk: Desk, decide: Decide) -> None:
        self.desk, self._decide, self._lock = desk, decide, RLock()
        self._sessions: dict[str, Session] = {}

    def enter(self, passage: Passage) -> Any:
        """Let a call pass that is right, whether or not those that are running take effect."""
        session = self._session(passage)
        reply, open_calls = pending(passage.messages)
        key = (reply, passage.call_id) if passage.call_id else ("", str(uuid4()))
        with session.lock:
            # A node that was interrupted runs again as a whole: its calls have their answers.
            if reply and key in session.answers:
                return session.answers[key]
            session.memory = self.desk.read(session.memory, passage.messages, session.answers)
            earlier = [
                call
                for call in before(open_calls, passage.call_id)
                if (reply, call["id"]) not in session.answers
            ]
            running = [call for other, call in session.running.items() if other != key]
            running += self.desk.passing(session.memory, map(as_call, earlier))
            decided = self._decide(session.memory, passage.call, running, passage.tool)
            if decided.refusal is not None:
                return decided.refusal
            passage.call, passage.key = decided.call, key
            session.running[key] = decided.judged
            return None

    def leave(self, passage: Passage, answer: Any, error: BaseException | None) -> None:
        """Read the answer into what is known."""
        session = self._session(passage)
        with session.lock:
            call = session.running.pop(passage.key)
            if isinstance(error, GraphBubbleUp | ValidationError):
                return  # it waits for a person, or the tool did not take its arguments
            told = answer if isinstance(answer, ToolMessage) else _as_message(answer, error)
            session.memory = self.desk.take(session.memory, call, told)
            if error is None:
                session.answers[passage.key] = answer

    def _session(self, passage: Passage) -> Session:
        """The conversation of a thread, else of a graph's messages, else of all calls together."""
        messages = passage.messages
        name = passage.thread or (str(messages[0].id) if messages else "")
        with self._lock:
            if name not in self._sessions:
                self._sessions[name] = Session(self.desk.begin())
            return self._sessions[name]


def _as_message(answer: Any, error: BaseException | None) -> ToolMessage:
    if error is not None:
        return ToolMessage(f"Error: {error}", tool_call_id="", status="error")
    text = answer if isinstance(answer, str) else json.dumps(answer, default=str)
    return ToolMessage(text, tool_call_id="")
