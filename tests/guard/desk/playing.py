"""Ways in which calls reach the desk's tools: agents, graphs of one's own, plain calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from rpms.guard import RulesGuard
from tests.guard.desk.world import Desk, DeskWorld

NUMBERS = count()
ASKED: dict[str, Any] = {"messages": [("user", "I want my money back.")]}
Proposal = tuple[str, dict[str, Any]]
Reply = Sequence[Proposal]
IDENTIFY: list[Reply] = [
    [("get_customer", {"customer_id": "C1"})],
    [("verify_customer", {"customer_id": "C1", "code": "1111"})],
]


def look(*orders: str) -> list[Reply]:
    return [[("get_order", {"order_id": name})] for name in orders]


KNOWN = [*IDENTIFY, *look("O1", "O2", "O3")]
"""The customer is identified, and three orders were looked up."""
COUNT = len(KNOWN)
KINDS = ["agent", "protected", "node"]
"""Ways in which a guard stands in front of the tools."""


def refund(order: Any, usd: Any, **more: Any) -> Proposal:
    return "refund", {"customer_id": "C1", "order_id": order, "usd": usd, **more}


class Scripted(GenericFakeChatModel):
    """Says what it is told to."""

    disable_streaming: bool = True

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self


def as_message(reply: Reply, ids: Sequence[str] = ()) -> AIMessage:
    names = ids or [f"call-{next(NUMBERS)}" for _ in reply]
    calls = [{"name": tool, "args": arguments, "id": name}
             for (tool, arguments), name in zip(reply, names, strict=True)]  # fmt: skip
    return AIMessage("", tool_calls=calls)


def script(replies: Sequence[Reply | AIMessage]) -> Scripted:
    messages = [each if isinstance(each, AIMessage) else as_message(each) for each in replies]
    return Scripted(messages=iter([*messages, AIMessage("That is all.")]))


def answers(ended: Mapping[str, Any]) -> list[str]:
    return [m.text for m in ended["messages"] if isinstance(m, ToolMessage)]


def refused(texts: Sequence[str]) -> list[bool]:
    return [" was not carried out [" in text for text in texts]


def new_guard(folder: Path | None = None, **rules: Any) -> RulesGuard:
    """The desk's guard, with changes of its rules laid over them."""
    settings = rules.pop("settings", {})
    if folder is None:
        return RulesGuard(DeskWorld(), **settings)
    folder.mkdir(exist_ok=True)
    (folder / "environment.yaml").write_text(yaml.safe_dump({"tier": "environment", **rules}))
    return RulesGuard(DeskWorld(), rules=folder, **settings)


def graph_of(
    tools: Sequence[BaseTool], model: Any, saver: Any = None, store: Any = None, **node: Any
) -> Any:
    """A graph of one's own with LangGraph's tool node."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools, **node))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver, store=store)


def _agent(desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    agent: Any = create_agent(script(replies), desk.tools(), middleware=[guard])
    return answers(agent.invoke(ASKED))


def _async_agent(desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    agent: Any = create_agent(script(replies), desk.tools(), middleware=[guard])
    return answers(asyncio.run(agent.ainvoke(ASKED)))


def _agent_with_protected_tools(desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    agent: Any = create_agent(script(replies), guard.protect(desk.tools()))
    return answers(agent.invoke(ASKED))


def _tool_node(desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    graph = graph_of(guard.protect(desk.tools()), script(replies), InMemorySaver())
    config = {"configurable": {"thread_id": f"thread-{next(NUMBERS)}"}, "recursion_limit": 200}
    return answers(graph.invoke(ASKED, config))


def _async_tool_node(desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    graph = graph_of(guard.protect(desk.tools()), script(replies))
    return answers(asyncio.run(graph.ainvoke(ASKED, {"recursion_limit": 200})))


def _plain(desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    tools = {tool.name: tool for tool in guard.protect(desk.tools())}
    texts = []
    for reply in replies:
        for call in (reply if isinstance(reply, AIMessage) else as_message(reply)).tool_calls:
            if call["name"] in tools:
                texts.append(str(tools[call["name"]].invoke(call["args"])))
    return texts


WAYS: dict[str, Callable[[Desk, RulesGuard, Sequence[Any]], list[str]]] = {
    "agent": _agent,
    "agent on an event loop": _async_agent,
    "agent with protected tools": _agent_with_protected_tools,
    "tool node": _tool_node,
    "tool node on an event loop": _async_tool_node,
    "plain calls": _plain,
}
