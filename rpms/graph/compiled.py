"""The compiled graph as callers get it: settings are merged and inputs checked before a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from rpms.nodes.state import EpisodeInput, EpisodeOutput, EpisodeState
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.spelling import offer


class RpmsGraph(CompiledStateGraph[EpisodeState, RunContext, EpisodeInput, EpisodeOutput]):
    """What ``build_graph`` returns; every way of running a graph goes through these two."""

    def __init__(self, *, settings: RunContext | None = None, **attributes: Any) -> None:
        """A compiled graph's attributes, and settings for runs that name no others."""
        super().__init__(**attributes)
        self.settings = settings

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's own, for an input that makes sense."""
        return super().stream(input, **self._prepared(input, config, options))

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """As LangGraph's own, for an input that makes sense."""
        return super().astream(input, **self._prepared(input, config, options))

    def _prepared(
        self, input: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> dict[str, Any]:
        """LangGraph's options, with the settings of this run and what its traces are found by."""
        self._refuse_senseless(input, config)
        named, tracing = options.get("context"), dict[str, Any](config or {})
        context = settings(named)
        if self.settings is not None:
            context = context.over(self.settings.plain)
        elif named is None and "langgraph_node" in ensure_config(config)["metadata"]:
            return {**options, "config": config}  # the settings are those of the graph around it
        if isinstance(input, Mapping):  # of an episode taken up, its model calls alone know
            about = {"world": input.get("env"), "split": input.get("split")}
            about |= {"task": input.get("task"), "condition": context.name, "model": context.model}
            metadata = {name: value for name, value in about.items() if value is not None}
            tags = [context.name, *(tracing.get("tags") or ())]
            tracing |= {"tags": tags, "metadata": {**metadata, **(tracing.get("metadata") or {})}}
        return {**options, "context": context, "config": tracing}

    def _refuse_senseless(self, input: Any, config: RunnableConfig | None) -> None:
        """Refuse an input with keys that the graph does not have; it would play the first task.

        As a node of another graph it is handed the whole state of that one, where other keys are
        nobody's mistake; only a state that has none of ours is refused there.
        """
        keys = list(self.builder.schemas[self.builder.input_schema])
        within = "langgraph_node" in ((config or {}).get("metadata") or {})
        if isinstance(input, Mapping):
            unknown = [str(key) for key in input if key not in keys]
            if unknown and not (within and len(unknown) < len(input)):
                raise RpmsError(f"unknown input key '{unknown[0]}'; {offer(unknown[0], keys)}")
        elif not within and not isinstance(input, Command | None):
            raise RpmsError(
                f"the input must be a dictionary of {', '.join(keys)}, not {input!r:.80}"
            )
