"""The compiled graph, with a look at what comes in: LangGraph drops keys that it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from rpms.nodes.context import RunContext, settings
from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import offer

KEYS = list(EpisodeInput.__annotations__)


class RpmsGraph(CompiledStateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]):
    """What ``build_graph`` returns; every way of running a graph goes through these two."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's own, for an input that makes sense."""
        check(input, config, options.get("context"))
        return super().stream(input, config, **options)

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's own, for an input that makes sense."""
        check(input, config, options.get("context"))
        return super().astream(input, config, **options)


def check(given: Any, config: RunnableConfig | None, context: Any) -> None:
    """Refuse an input with keys that the graph does not have; it would play the first task.

    As a node of another graph it is handed the whole state of that one, where other keys are
    nobody's mistake; only a state that has none of ours is refused there.
    """
    settings(context)
    within = "langgraph_node" in ((config or {}).get("metadata") or {})
    if isinstance(given, Mapping):
        unknown = [str(key) for key in given if key not in KEYS]
        if unknown and not (within and len(unknown) < len(given)):
            raise RpmsError(f"unknown input key '{unknown[0]}'; {offer(unknown[0], KEYS)}")
    elif not within and not isinstance(given, Command | None):
        raise RpmsError(f"the input must be a dictionary of {', '.join(KEYS)}, not {given!r:.80}")
