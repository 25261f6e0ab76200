"""Somebody else's graph, with ours as a node of it."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class Parent(TypedDict, total=False):
    """Its state: some of our keys, and one of its own."""

    env: str
    split: str
    task: int | str
    steps: int
    condition: str
    success: bool
    mood: str


def around(node: Any, schema: Any = None, **options: Any) -> Any:
    builder = StateGraph(Parent, context_schema=schema)
    builder.add_node("play", node)
    builder.add_edge(START, "play")
    return builder.compile(**options)
