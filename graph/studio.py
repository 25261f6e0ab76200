"""The graph as ``langgraph dev`` serves it; the server brings its own checkpointer and store."""

from rpms.graph.build import build_graph

graph = build_graph()
