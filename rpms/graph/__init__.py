"""The agent workflow: nine stages, their edges, and how to run them."""

from rpms.graph.build import STAGES, build_graph, make_builder
from rpms.graph.run import arun_episode, astream_episode, run_episode, stream_episode

__all__ = [
    "STAGES",
    "arun_episode",
    "astream_episode",
    "build_graph",
    "make_builder",
    "run_episode",
    "stream_episode",
]
