"""A tool behind a gate: it hands each of its calls to the gate before and after it runs.

The mechanics of LangChain's tools stand here: inputs in their forms, arguments that a graph
injects, event loops. The gate decides (``rpms.guard.middleware``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Protocol, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.tracers.context import register_configure_hook
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import ConfigDict

from rpms.guard.tools import arguments_of
from rpms.vocabulary.calls import Call

RUNTIME = "runtime"
"""The argument by which a tool node passes its state to a tool."""


class PastTheGuard(Exception):
    """A tool was run past the guard, by its name."""


class Watch(BaseCallbackHandler):
    """Stops every tool that is run while a guarded call is on its way to its gate.

    ``allowed`` returns whether a tool needs no guard.
    """

    raise_error = True

    def __init__(self, allowed: Any) -> None:
        self.allowed = allowed

    def on_tool_start(self, serialized: dict[str, Any], input_str: str, **more: Any) -> None:
        """LangChain calls this before a tool runs; an exception keeps it from running."""
        name = str((serialized or {}).get("name"))
        if not self.allowed(name):
            raise PastTheGuard(name)


WATCH: ContextVar[Watch | None] = ContextVar("rpms_guard_watch", default=None)
register_configure_hook(WATCH, inheritable=False)
ENCLOSING: ContextVar[Any] = ContextVar("rpms_guard_thread", default=None)
"""The thread whose guarded tool is running: an agent inside it shares that thread."""


class Passage:
    """One call on its way through a gate."""

    def __init__(self, call: Call, tool: BaseTool, call_id: str, runtime: Any, config: Any) -> None:
        self.call, self.tool, self.call_id = call, tool, call_id
        self.runtime, self.config = runtime, config
        self.proposal = call
        self.state: Any = getattr(runtime, "state", None)
        self.decision: Any = None
        self.thread: Any = None
        self.run: Any = None

    @property
    def messages(self) -> Sequence[AnyMessage]:
        """The messages of the graph's state; empty without a graph."""
        state = self.state
        messages = state if isinstance(state, list) else getattr(state, "messages", None)
        if isinstance(state, Mapping):
            messages = state.get("messages")
        return messages if isinstance(messages, list) else []

    @property
    def node_run(self) -> Any:
        """The node run that the call belongs to; a new one after an interrupt."""
        return getattr(self.runtime, "execution_info", None)

    @property
    def task(self) -> str:
        """The id of the node's task, which stays the same after an interrupt."""
        return str(getattr(self.node_run, "task_id", ""))

    @property
    def is_sent(self) -> bool:
        """True if the call has its own task, apart from its siblings, as in ``create_agent``."""
        path = ((self.config or {}).get("metadata") or {}).get("langgraph_path") or ("",)
        return bool(path[0] == "__pregel_push")

    @property
    def thread_id(self) -> str:
        configurable = (self.config or {}).get("configurable") or {}
        return str(configurable.get("thread_id") or "")


@dataclass
class Invocation:
    """The input and the answer of a tool behind a gate; a refused call has an answer at once."""

    tool_input: Any
    refused: bool = False
    answer: Any = None


class CallHandler(Protocol):
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
    def around(cls, tool: BaseTool, gate: CallHandler) -> GuardedTool:
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
        watch, enclosing = WATCH.set(None), ENCLOSING.set(passage.thread)
        try:
            yield invocation
        except BaseException as raised:
            error = raised
            raise
        finally:
            WATCH.reset(watch)
            ENCLOSING.reset(enclosing)
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


def messages_in(answer: Any) -> Iterator[ToolMessage]:
    """The tool messages of an answer, which may be a command."""
    for each in answer if isinstance(answer, list) else [answer]:
        if isinstance(each, Command) and isinstance(each.update, Mapping):
            yield from messages_in(each.update.get("messages") or [])
        elif isinstance(each, ToolMessage):
            yield each
