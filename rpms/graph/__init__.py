"""The agent graph: its eleven stages, their edges, and the functions that run an episode."""

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
