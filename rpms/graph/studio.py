"""The graph as ``langgraph dev`` serves it; the server brings its own checkpointer and store."""

from __future__ import annotations

from langgraph_sdk.runtime import ServerRuntime

from rpms.graph.build import RpmsGraph, build_graph
from rpms.vocabulary.context import RunContext, refuse_unknown
from rpms.vocabulary.imports import only_installed

_graph = build_graph()


def graph(runtime: ServerRuntime[RunContext]) -> RpmsGraph:
    """The one graph, after a look at what the run asks for.

    The server drops a misspelt setting before the graph could see it, so it is refused here. So
    is a world by its import path: a client may choose among the worlds, not what is imported.
    """
    only_installed()
    running = runtime.execution_runtime
    context = running.context if running else None
    if isinstance(context, dict):
        refuse_unknown({name: value for name, value in context.items() if name[:2] != "__"})
    return _graph
