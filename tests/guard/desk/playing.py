"""Ways in which calls reach the desk's tools: agents, graphs of one's own, plain calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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


def agent_of(desk: Desk, replies: Any, *middleware: Any, **settings: Any) -> Any:
    """LangChain's agent, with the guard last unless it is among the middleware."""
    listed = [*middleware]
    if not any(isinstance(each, RulesGuard) for each in listed):
        listed.append(new_guard())
    return create_agent(script(replies), desk.tools(), middleware=listed, **settings)


def guarded(
    kind: str,
    guard: RulesGuard,
    tools: Sequence[BaseTool],
    replies: Any,
    *behind: Any,
    saver: Any = None,
    store: Any = None,
    carried: Sequence[BaseTool] = (),
    **node: Any,
) -> Any:
    """An agent with the guard and the middleware behind it, or one whose tools carry the guard.

    ``carried`` are tools that the guard protects already, where several agents share them.
    """
    model = replies if isinstance(replies, Scripted) else script(replies)
    if kind == "node":
        graph = graph_of(carried or guard.protect(tools), model, saver, store, **node)
    elif kind == "protected":
        graph = create_agent(
            model, carried or guard.protect(tools), checkpointer=saver, store=store
        )
    else:
        graph = create_agent(model, tools, middleware=[guard, *behind], checkpointer=saver)
    return graph.with_config(recursion_limit=200)


def in_place_of(desk: Desk, tool: BaseTool) -> list[BaseTool]:
    """The desk's tools, with another one under the name of its own."""
    return [*(each for each in desk.tools() if each.name != tool.name), tool]


def _invoke(kind: str, desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    return answers(guarded(kind, guard, desk.tools(), replies).invoke(ASKED))


def _saved(kind: str, desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    config = {"configurable": {"thread_id": f"thread-{next(NUMBERS)}"}}
    graph = guarded(kind, guard, desk.tools(), replies, saver=InMemorySaver())
    return answers(graph.invoke(ASKED, config))


def _ainvoke(kind: str, desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    return answers(asyncio.run(guarded(kind, guard, desk.tools(), replies).ainvoke(ASKED)))


def _plain(desk: Desk, guard: RulesGuard, replies: Sequence[Any]) -> list[str]:
    tools = {tool.name: tool for tool in guard.protect(desk.tools())}
    texts = []
    for reply in replies:
        for call in (reply if isinstance(reply, AIMessage) else as_message(reply)).tool_calls:
            if call["name"] in tools:
                texts.append(str(tools[call["name"]].invoke(call["args"])))
    return texts


WAYS: dict[str, Callable[[Desk, RulesGuard, Sequence[Any]], list[str]]] = {
    "agent": partial(_invoke, "agent"),
    "agent on an event loop": partial(_ainvoke, "agent"),
    "agent with protected tools": partial(_invoke, "protected"),
    "tool node": partial(_saved, "node"),
    "tool node on an event loop": partial(_ainvoke, "node"),
    "plain calls": _plain,
}
