"""The graph as ``langgraph dev`` serves it; the server brings its own checkpointer and store."""

from __future__ import annotations

from langgraph_sdk.runtime import ServerRuntime

from rpms.graph.build import RpmsGraph, build_graph
from rpms.nodes.state import ServerOutput
from rpms.vocabulary.context import RunContext, refuse_unknown
from rpms.vocabulary.imports import only_installed

_graph = build_graph(output_schema=ServerOutput)


def graph(runtime: ServerRuntime[RunContext]) -> RpmsGraph:
    """Return the graph, after checking the run's settings.

    The server would drop a misspelt setting silently, so it is an error here. Environments given
    by an import path are an error too: clients must not choose what the server imports.
    """
    only_installed()
    execution = runtime.execution_runtime
    context = execution.context if execution else None
    if isinstance(context, dict):
        refuse_unknown({name: value for name, value in context.items() if name[:2] != "__"})
    return _graph
