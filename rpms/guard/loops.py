"""A guard against loops: middleware that refuses a call which keeps getting the same answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal, get_args

from langchain.agents.middleware import AgentMiddleware, ModelRequest, hook_config
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest

from rpms.guard.conversation import before, turns_of

REFUSAL = "loop_guard"  # marks our refusals in response_metadata, which providers never see
log = logging.getLogger(__name__)
EXITS = Literal["continue", "error", "end"]


class LoopError(Exception):
    """A tool call that keeps getting the same answer, with ``exit_behavior="error"``."""


class LoopGuard(AgentMiddleware[Any, Any, Any]):
    """Refuses a tool call that was answered ``limit`` times with the same answer.

    The guard decides from the messages in the agent's state, so it holds after a resume. It counts
    the equal answers to a call since the last news. News is a user message, or an answer that the
    same call has not had since then: a new call may have changed something, so may a known call
    with a new answer. So A, B, A, B is a loop; a test that fails again after each new edit is not.
    Refusals are not answers: the call stays refused until there is news. Equal calls of one reply
    count one after the other, as if answered alike. Tools in ``exempt`` are never refused; a name
    that the agent has no tool of is an error. If the guard itself fails, it logs the error and lets
    the call through.

    ``exit_behavior`` is what LangChain's limits call it: ``continue`` refuses the call and goes on,
    ``end`` ends the run after the refusal, ``error`` raises ``LoopError`` instead.
    """

    def __init__(
        self,
        limit: int = 3,
        exempt: Collection[str] = (),
        exit_behavior: EXITS = "continue",
    ) -> None:
        super().__init__()
        if limit < 1:
            raise ValueError(f"LoopGuard: limit is {limit}; it must be 1 or more")
        if exit_behavior not in get_args(EXITS):
            choices = ", ".join(get_args(EXITS))
            raise ValueError(
                f"LoopGuard: exit_behavior is '{exit_behavior}'; choose from {choices}"
            )
        self.limit, self.exempt = limit, {exempt} if isinstance(exempt, str) else {*exempt}
        self.exit_behavior = exit_behavior

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Compare ``exempt`` with the agent's tools."""
        self._compare(request)
        return handler(request)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]
                               ) -> Any:  # fmt: skip
        """The same on an event loop."""
        self._compare(request)
        return await handler(request)

    def _compare(self, request: ModelRequest[Any]) -> None:
        names = {str(getattr(tool, "name", "")) for tool in request.tools}
        if unknown := self.exempt - names - {""}:
            raise ValueError(
                f"LoopGuard: exempt: the agent has no tool '{min(unknown)}'; it has "
                f"{', '.join(sorted(names))}"
            )

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """End the run after a refusal, with ``exit_behavior="end"``."""
        answers = turns_of(state["messages"])[-1].answers.values()
        refused = [answer for answer in answers if REFUSAL in answer.response_metadata]
        if self.exit_behavior != "end" or not refused:
            return None
        return {"jump_to": "end", "messages": [AIMessage(f"Ended: {refused[-1].text}")]}

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """Run the tool, or refuse a looping call."""
        return self._refuse(request) or handler(request)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """The same on an event loop."""
        return self._refuse(request) or await handler(request)

    def _refuse(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        try:
            answered, requested = count_repeats(request.state["messages"], call["id"])
            if call["name"] in self.exempt or answered + requested < self.limit:
                return None
            if self.exit_behavior == "error":
                raise LoopError(_explain(call, answered, requested))
            refusal: Any = {"name": call["name"], "tool_call_id": call["id"], "status": "error"}
            refusal["response_metadata"] = {REFUSAL: True}
            return ToolMessage(_explain(call, answered, requested), **refusal)
        except LoopError:
            raise
        except Exception:
            log.exception("LoopGuard failed and lets the call of %s through", call["name"])
            return None


def count_repeats(messages: Sequence[Any], call_id: str | None) -> tuple[int, int]:
    """Count a call's equal answers since the last news, and its equals before it in the reply."""
    seen, recent = set[tuple[str, str]](), list[tuple[str, str]]()  # calls with their answers
    waiting = list[ToolCall]()
    for turn in turns_of(messages):
        if isinstance(turn.message, HumanMessage):
            seen, recent = set(), []
            continue
        waiting = turn.open_calls
        for place, answer in turn.answers.items():
            event = _write_call(turn.calls[place]), _read(answer)
            if REFUSAL not in answer.response_metadata:
                recent = [*recent, event] if event in seen else [event]
                seen.add(event)
    call = next(_write_call(each) for each in waiting if each["id"] == call_id)
    seen_calls = {call, *dict(seen)}  # any other call in this reply is new
    answers = [answer for key, answer in reversed(recent) if key == call]
    answered, requested = len([*takewhile(lambda answer: answer == answers[0], answers)]), 0
    for key in map(_write_call, before(waiting, call_id)):
        answered, requested = (answered, requested + (key == call)) if key in seen_calls else (0, 0)
    return answered, requested


def _explain(call: ToolCall, answered: int, requested: int) -> str:
    args = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
    counts = {"it got the same answer": answered, "this reply already asks for it": requested}
    why = " and ".join(f"{what} {n} time{'s' * (n > 1)}" for what, n in counts.items() if n)
    line = f"{call['name']}({args:.200}) was not carried out: {why}."
    return f"{' '.join(line.split())} Use that answer or do something else."


def _write_call(call: ToolCall) -> str:
    return _write([call["name"], call["args"]])


def _read(message: ToolMessage) -> str:
    """Write an answer without the ids of its content blocks: LangChain gives each a new one."""
    blocks = [message.content] if isinstance(message.content, str) else message.content
    return _write([{**block, "id": 0} if isinstance(block, dict) else block for block in blocks])


def _write(value: Any) -> str:
    """Write equal data as equal text: key order is ignored, 1 is not "1", nan equals nan."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{_write(k)}: {_write(v)}' for k, v in value.items()))}}}"
    return f"[{', '.join(map(_write, value))}]" if isinstance(value, list | tuple) else repr(value)
