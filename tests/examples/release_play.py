"""The agent of examples/release, with a model that says what it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatResult

from examples.release.agent import TOOLS, Pipeline, make_agent

CALL_IDS = map(str, count())
WAY = ["lock api", "build api", "test api", "deploy api", "unlock api"]
TASK: dict[str, Any] = {"messages": [("user", "Release the api.")]}


class Scripted(GenericFakeChatModel):
    """Says what it is told to; keeps what it was sent."""

    model_name: Any = "scripted"
    temperature: Any = None
    sent: list[list[BaseMessage]]

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.sent.append(messages)
        return super()._generate(messages)


def script(*replies: str, **of_model: Any) -> Scripted:
    """Each reply has its calls by comma; the last says that it is over."""

    def calls(reply: str) -> Iterator[dict[str, Any]]:
        for tool, service in (call.split() for call in reply.split(", ")):
            yield {"name": tool, "args": {"service": service}, "id": next(CALL_IDS)}

    said = [AIMessage(f"I {reply}.", tool_calls=[*calls(reply)]) for reply in replies]
    return Scripted(messages=iter([*said, AIMessage("It is over.")]), sent=[], **of_model)


def answers(ended: dict[str, Any]) -> list[str]:
    return [m.text for m in ended["messages"] if isinstance(m, ToolMessage)]


def agent_of(model: Scripted, *middleware: Any, **more: Any) -> Any:
    """An agent with a pipeline of its own and this middleware alone."""
    return create_agent(model, [*map(Pipeline().tool, TOOLS)], middleware=middleware, **more)


def play(out: Path, *replies: str, task: str = "Release the api.", **more: Any) -> Scripted:
    """The example's agent, with everything."""
    model = script(*replies)
    make_agent(model, str(out), **more).invoke({"messages": [("user", task)]})
    return model
