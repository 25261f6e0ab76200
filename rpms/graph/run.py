"""Run one episode: in one call, or as a stream of steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from typing_extensions import TypedDict, Unpack

from rpms.graph.build import RpmsGraph, build_graph
from rpms.nodes.env_step import StepEvent
from rpms.nodes.state import EpisodeOutput
from rpms.vocabulary.context import RunContext, merged_settings
from rpms.vocabulary.errors import RpmsError


class Options(TypedDict, total=False):
    """The keyword arguments of ``run_episode`` and its siblings.

    Attributes:
        env: the environment's name; the first one by default.
        split: the list of tasks to choose from; the environment's first by default.
        context: the settings of the run. A dictionary changes those that ``graph`` was built with.
        model: a chat model object, instead of the one that the context names.
        graph: a custom graph from ``build_graph``; pass its model to ``build_graph``.
        config: LangGraph's config, e.g. a thread id for a checkpointer.
    """

    env: str
    split: str
    context: RunContext | Mapping[str, Any] | None
    model: BaseChatModel | None
    graph: RpmsGraph | None
    config: dict[str, Any]


def run_episode(task: str | int = 0, **options: Unpack[Options]) -> EpisodeOutput:
    """Run one episode to its end and return its output."""
    app, arguments = _prepare(task, options)
    return cast(EpisodeOutput, app.invoke(**arguments))


async def arun_episode(task: str | int = 0, **options: Unpack[Options]) -> EpisodeOutput:
    """Run one episode on an event loop, where many can run at once."""
    app, arguments = _prepare(task, options)
    return cast(EpisodeOutput, await app.ainvoke(**arguments))


def stream_episode(
    task: str | int = 0, **options: Unpack[Options]
) -> Iterator[StepEvent | EpisodeOutput]:
    """Yield a ``StepEvent`` for each step, then the ``EpisodeOutput``."""
    app, arguments = _prepare(task, options)  # not in the generator: errors are raised at the call

    def events() -> Iterator[StepEvent | EpisodeOutput]:
        final: Any = None
        for mode, part in app.stream(**arguments, **_STREAM):
            if mode == "custom":
                yield cast(StepEvent, part)
            else:
                final = part
        yield cast(EpisodeOutput, final)

    return events()


def astream_episode(
    task: str | int = 0, **options: Unpack[Options]
) -> AsyncIterator[StepEvent | EpisodeOutput]:
    """Stream an episode like ``stream_episode``, on an event loop."""
    app, arguments = _prepare(task, options)

    async def events() -> AsyncIterator[StepEvent | EpisodeOutput]:
        final: Any = None
        async for mode, part in app.astream(**arguments, **_STREAM):
            if mode == "custom":
                yield cast(StepEvent, part)
            else:
                final = part
        yield cast(EpisodeOutput, final)

    return events()


_STREAM: dict[str, Any] = {
    "stream_mode": ["custom", "values"],
    "output_keys": list(EpisodeOutput.__annotations__),
}


def _prepare(task: str | int, options: Options) -> tuple[RpmsGraph, dict[str, Any]]:
    """Check the options; return the graph and the arguments of its call."""
    if unknown := sorted(set(options) - set(Options.__annotations__)):
        names = ", ".join(Options.__annotations__)
        raise RpmsError(f"no option called {', '.join(unknown)}; the options are {names}")
    model, graph, argument = (options.get(name) for name in ("model", "graph", "context"))
    if graph is not None and model is not None:
        raise RpmsError("graph= brings its own model: give model= to build_graph instead")
    if not isinstance(graph, RpmsGraph | None):
        raise RpmsError(f"graph= takes what build_graph returns, not a {type(graph).__name__}")
    values = cast(dict[str, Any], options)
    episode = {key: values[key] for key in ("env", "split") if key in values} | {"task": task}
    app = graph or build_graph(model=cast(Any, model))
    context = merged_settings(app.defaults, argument)
    labels = {"condition": context.name, "model": context.model}
    config = dict[str, Any](options.get("config") or {})
    # Tags and metadata make the episode searchable among traces.
    config["tags"] = [context.name, *(config.get("tags") or ())]
    config["metadata"] = {**labels, **episode, **(config.get("metadata") or {})}
    # A custom graph without a context takes its own, or that of the graph around it.
    settings = None if graph and argument is None else context
    return app, {"input": episode, "config": config, "context": settings}
