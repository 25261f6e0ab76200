"""The conditions of the paper as ``langgraph dev`` serves them; ``langgraph.json`` names them.

A graph of your own is served in the same way: a line of ``langgraph.json`` with the file and the
name of a graph, or of a function that returns one. The server brings its checkpointer and store.
"""

from __future__ import annotations

from rpms.graph.build import RpmsGraph, build_graph
from rpms.vocabulary.context import RunContext


def _of(condition: str) -> RpmsGraph:
    return build_graph(context=RunContext.for_condition(condition), name=condition)


A, B, C, D, D_verify = map(_of, ("A", "B", "C", "D", "D+verify"))
