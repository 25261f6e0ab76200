"""The agent graph: its eleven stages, their edges, and the functions that run an episode."""

from rpms.graph.build import STAGES, build_graph, make_builder
from rpms.graph.compiled import RpmsGraph
from rpms.graph.run import arun_episode, astream_episode, run_episode, stream_episode
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext

__all__ = [
    "STAGES",
    "EpisodeState",
    "RpmsGraph",
    "RunContext",
    "arun_episode",
    "astream_episode",
    "build_graph",
    "make_builder",
    "run_episode",
    "stream_episode",
]

if __name__ != "rpms.graph":
    raise ImportError("'graph' at the top of the clone is only a link: import rpms.graph")
