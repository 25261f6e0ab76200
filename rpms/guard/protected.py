"""Tools that carry the guard themselves: whoever calls them, in whatever graph, meets it.

A guarded tool stands before the tool that it wraps and reads its answers as they come. Calls belong
to the conversation of their thread id. In a graph, what happened before, perhaps in another
process, is read from the graph's messages; without a graph and without a thread id, all calls of
the tools that were protected together are one conversation.
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
    Conversations,
    ConversationState,
    as_call,
    before,
    pending,
)
from rpms.guard.decision import GUARD_FAILED, Judgement
from rpms.guard.tools import arguments_of
from rpms.vocabulary.calls import Call

LOG = logging.getLogger("rpms.guard")
RUNTIME = "runtime"
"""The argument by which a tool node gives a tool its state."""


class Passage:
    """One call on its way through a gate."""

    def __init__(self, call: Call, tool: BaseTool, call_id: str, runtime: Any, config: Any) -> None:
        self.call, self.tool, self.call_id = call, tool, call_id
        self.runtime, self.config = runtime, config
        self.proposal, self.key = call, ("", "")
        self.decided: Decided | None = None
        self.started = 0

    @property
    def messages(self) -> Sequence[AnyMessage]:
        """The conversation so far, where a graph has one."""
        state = getattr(self.runtime, "state", None)
        found = state if isinstance(state, list) else getattr(state, "messages", None)
        if isinstance(state, Mapping):
            found = state.get("messages")
        return found if isinstance(found, list) else []

    @property
    def run(self) -> Any:
        """The run of a graph's node that the call is part of; another one after an interrupt."""
        return getattr(self.runtime, "execution_info", None)

    @property
    def task(self) -> str:
        """The node's task, which stays the same when it runs again after an interrupt."""
        return str(getattr(self.run, "task_id", ""))

    @property
    def is_sent(self) -> bool:
        """Whether the call has a task of its own, without its siblings, as in ``create_agent``."""
        path = ((self.config or {}).get("metadata") or {}).get("langgraph_path") or ("",)
        return bool(path[0] == "__pregel_push")

    @property
    def thread(self) -> str:
        """The thread that a run belongs to."""
        configurable = (self.config or {}).get("configurable") or {}
        return str(configurable.get("thread_id") or "")


@dataclass
class Crossing:
    """What a tool behind a gate is given, and what comes back; a refused call is answered."""

    given: Any
    refused: bool = False
    answer: Any = None


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
        with self._through_gate(input, config) as crossing:
            if not crossing.refused:
                crossing.answer = self.wrapped.invoke(crossing.given, config, **kwargs)
        return crossing.answer

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same on an event loop."""
        with self._through_gate(input, config) as crossing:
            if not crossing.refused:
                crossing.answer = await self.wrapped.ainvoke(crossing.given, config, **kwargs)
        return crossing.answer

    @contextmanager
    def _through_gate(self, given: Any, config: RunnableConfig | None) -> Iterator[Crossing]:
        """What the tool is to be given, or the answer in its place; how it ends is noted."""
        passage, injected = self._open(given, config)
        refusal = self.gate.enter(passage)
        if refusal is not None:
            yield Crossing(None, refused=True, answer=self._instead(refusal, given))
            return
        crossing, error = Crossing(_with(given, passage, injected)), None
        try:
            yield crossing
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.gate.leave(passage, crossing.answer, error)

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
        if isinstance(answer, ToolMessage) and not _is_tool_call(given):
            return answer.content
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
        judged: the same as the tool takes it, with its defaults.
        judgement: the rule and the reason.
        valid: whether the tool takes the arguments at all.
    """

    call: Call
    judged: Call
    judgement: Judgement
    valid: bool = True

    @property
    def refused(self) -> bool:
        """Whether the call is answered in the tool's place."""
        return self.judgement.verdict not in ("allow", "warn")

    def refusal(self, call_id: str, proposal: Call, besides: Sequence[Call] = ()) -> ToolMessage:
        """The answer in the tool's place."""
        answer = ToolMessage(
            self.judgement.words(self.call),
            tool_call_id=call_id, name=self.call.tool, status="error",
        )  # fmt: skip
        return self.note(answer, proposal, False, besides)

    def note(
        self, message: ToolMessage, proposal: Call, ran: bool, besides: Sequence[Call] = ()
    ) -> ToolMessage:
        """Write into an answer what was decided about its call, and what else was carried out."""
        message.response_metadata[DECISION] = {
            **self.judgement._asdict(), "ran": ran, "proposal": str(proposal),
            "call": self.judged._asdict(), "besides": [call._asdict() for call in besides],
        }  # fmt: skip
        return message

    def not_taken(self, error: BaseException | None) -> bool:
        """Whether the tool rejected the arguments, before it did anything."""
        return isinstance(error, ValidationError) and not self.valid


def messages_in(answer: Any) -> Iterator[ToolMessage]:
    """The tool messages of an answer, also of one that is a command."""
    for each in answer if isinstance(answer, list) else [answer]:
        if isinstance(each, Command) and isinstance(each.update, Mapping):
            yield from messages_in(each.update.get("messages") or [])
        elif isinstance(each, ToolMessage):
            yield each


def failure(call: Call, error: BaseException | str) -> Decided:
    """The guard itself could not decide: that refuses."""
    what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    reason = f"the guard itself failed ({what})"
    return Decided(call, call, Judgement("refuse", GUARD_FAILED, reason))


def doubled(calls: Sequence[ToolCall], call_id: str) -> str:
    """Why a call cannot be told from another of its reply; empty if it can."""
    if [str(call["id"]) for call in calls].count(call_id) > 1:
        return f"two calls of this reply have the id '{call_id}'"
    return ""


Decide = Callable[[ConversationState, Call, Sequence[Call], Any, Callable[[str], int]], Decided]


class InRound(NamedTuple):
    """A call as the model gave it, and what was decided about it."""

    proposal: Call
    decided: Decided


class Round:
    """The calls of a reply in one run of a node, decided in their order before any of them runs.

    A person is thus asked before anything happens: after the interrupt the node runs again as a
    whole, perhaps in another process, and nothing must have been carried out by then. And the
    answers of several people go to the calls that they are about.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.decided: dict[str, InRound] = {}
        self.interrupt: GraphBubbleUp | None = None


class ToolSession:
    """One conversation: what is known of it, and its calls."""

    def __init__(self, memory: ConversationState) -> None:
        self.memory, self.lock = memory, RLock()
        self.running: dict[tuple[str, str], Call] = {}
        # Of the node's last task, by the calls' ids; and all that are in the memory already.
        self.task, self.answers = "", dict[str, tuple[Call, Any]]()
        self.taken: set[tuple[str, str]] = set()
        self.round = Round(None)
        self.refused = Counter[str]()
        self.changes: list[Call] = []


class SessionGate:
    """Judges each call by the conversation that it belongs to."""

    def __init__(self, desk: Conversations, decide: Decide, tools: Sequence[BaseTool]) -> None:
        self.desk, self._decide, self._lock = desk, decide, RLock()
        self._tools = {tool.name: tool for tool in tools}
        self._sessions: dict[str, ToolSession] = {}

    def enter(self, passage: Passage) -> Any:
        """Let a call pass that is right, whether or not those that are running take effect."""
        session = self._session(passage)
        with session.lock:
            # A node that was interrupted runs again as a whole: its calls have their answers.
            if passage.task and passage.task == session.task:
                proposal, answer = session.answers.get(passage.call_id, (None, None))
                if proposal == passage.call:
                    return answer
            try:
                decided = self._judge(session, passage)
            except GraphBubbleUp:  # a person is asked
                raise
            except Exception as error:
                LOG.exception("the guard failed")
                decided = failure(passage.call, error)
            if decided.refused:
                session.refused[decided.judgement.rule] += 1
                return decided.refusal(passage.call_id, passage.proposal)
            passage.call, passage.decided = decided.call, decided
            session.running[passage.key] = decided.judged
            passage.started = len(session.changes)
            return None

    def _judge(self, session: ToolSession, passage: Passage) -> Decided:
        reply, calls = pending(passage.messages)
        passage.key = (reply, passage.call_id) if passage.call_id else ("", str(uuid4()))
        if why := doubled(calls, passage.call_id):
            return failure(passage.call, why)
        session.memory = self.desk.read(session.memory, passage.messages, session.taken)
        calls = [call for call in calls if (reply, str(call["id"])) not in session.taken]
        if passage.is_sent:  # its siblings ask for themselves
            earlier = [
                as_call(call)
                for call in before(calls, passage.call_id)
                if (reply, str(call["id"])) not in session.running
            ]
            return self._alone(session, passage, self.desk.passing(session.memory, earlier))
        if passage.run is None or passage.run is not session.round.run:
            session.round = Round(passage.run)
            self._decide_all(session, calls)
        if session.round.interrupt is not None:
            raise session.round.interrupt
        decided = session.round.decided
        found = decided.get(passage.call_id)
        if found is not None and found.proposal == passage.call:
            return found.decided
        beside = [
            each.decided.judged
            for key, each in decided.items()
            if key != passage.call_id
            and (reply, key) not in session.running
            and not each.decided.refused
        ]
        return self._alone(session, passage, beside)

    def _alone(self, session: ToolSession, passage: Passage, beside: Sequence[Call]) -> Decided:
        running = [call for key, call in session.running.items() if key != passage.key]
        refused = session.refused.__getitem__
        return self._decide(
            session.memory, passage.call, [*running, *beside], passage.tool, refused
        )

    def _decide_all(self, session: ToolSession, calls: Sequence[ToolCall]) -> None:
        running = [*session.running.values()]
        for call in calls:
            proposal, tool = as_call(call), self._tools.get(call["name"])
            if tool is None:
                continue
            try:
                decided = self._decide(
                    session.memory, proposal, running, tool, session.refused.__getitem__
                )
            except GraphBubbleUp as interrupt:
                session.round.interrupt = interrupt
                raise
            session.round.decided[str(call["id"])] = InRound(proposal, decided)
            if not decided.refused:
                running.append(decided.judged)

    def leave(self, passage: Passage, answer: Any, error: BaseException | None) -> None:
        """Read the answer into what is known."""
        session, decided = self._session(passage), passage.decided
        with session.lock:
            session.running.pop(passage.key, None)
            session.round.decided.pop(passage.call_id, None)
            if decided is None or isinstance(error, GraphBubbleUp):
                return  # it waits for a person, and comes again
            told = [m for m in messages_in(answer) if m.tool_call_id == passage.call_id]
            ran = not decided.not_taken(error)
            for message in told:
                decided.note(message, passage.proposal, ran)
            session.taken.add(passage.key)
            if ran:
                message = told[0] if told else _as_message(answer, error)
                session.memory = self.desk.take(session.memory, decided.judged, message)
                if later := session.changes[passage.started :]:
                    # They may have taken effect after this call looked something up.
                    session.memory = self.desk.redo(session.memory, later)
                if self.desk.changes(decided.judged.tool):
                    session.changes.append(decided.judged)
            if error is None:
                if passage.task != session.task:
                    session.task, session.answers = passage.task, {}
                session.answers[passage.call_id] = (passage.proposal, answer)

    def _session(self, passage: Passage) -> ToolSession:
        """The conversation of a thread, else of a graph's messages, else of all calls together."""
        messages = passage.messages
        name = passage.thread or (str(messages[0].id) if messages else "")
        with self._lock:
            if name not in self._sessions:
                self._sessions[name] = ToolSession(self.desk.begin())
            return self._sessions[name]


def _as_message(answer: Any, error: BaseException | None) -> ToolMessage:
    if error is not None:
        return ToolMessage(f"Error: {error}", tool_call_id="", status="error")
    text = answer if isinstance(answer, str) else json.dumps(answer, default=str)
    return ToolMessage(text, tool_call_id="")
