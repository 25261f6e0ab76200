"""Running one episode: in one call, or step by step as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict, Unpack

from rpms.graph.build import RpmsGraph, build_graph
from rpms.nodes.state import EpisodeOutput
from rpms.vocabulary.belief import Belief
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import SubGoal
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import Decision, Turn


class StepEvent(TypedDict):
    """One decision as it happens: what was believed, how much knowledge was used, what came."""

    turn: Turn
    belief: Belief
    sub_goal: SubGoal
    rules: int
    memories: int
    dropped: int
    recalls: list[Recall]
    truncated: dict[str, int]
    knowledge_tokens: int
    decisions: list[Decision]


class Options(TypedDict, total=False):
    """What every way of running an episode takes besides the task.

    Attributes:
        env: the environment's name; the first one by default.
        split: which list of tasks; the environment's first by default.
        context: toggles and decoding; those of ``graph`` by default, where it has any.
        model: a chat model object, instead of the one the context names.
        graph: a graph of your own, e.g. with a swapped stage; its model is given to
            ``build_graph``.
        config: LangGraph's config, e.g. a thread id for a checkpointer.
    """

    env: str
    split: str
    context: RunContext
    model: BaseChatModel | None
    graph: RpmsGraph | None
    config: dict[str, Any]


def run_episode(task: str | int = 0, **options: Unpack[Options]) -> EpisodeOutput:
    """Play one episode to its end and return how it went."""
    app, arguments = _prepare(task, options)
    return cast(EpisodeOutput, app.invoke(**arguments))


async def arun_episode(task: str | int = 0, **options: Unpack[Options]) -> EpisodeOutput:
    """The same, for many episodes in flight on one event loop."""
    app, arguments = _prepare(task, options)
    return cast(EpisodeOutput, await app.ainvoke(**arguments))


def stream_episode(
    task: str | int = 0, **options: Unpack[Options]
) -> Iterator[StepEvent | EpisodeOutput]:
    """Each step as a StepEvent, and at last the EpisodeOutput."""
    app, arguments = _prepare(task, options)  # a mistake is told now, not at the first step

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
    """``stream_episode`` for an event loop."""
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
    """The graph to run and what to call it with; what makes no sense is refused."""
    if unknown := sorted(set(options) - set(Options.__annotations__)):
        names = ", ".join(Options.__annotations__)
        raise RpmsError(f"no option called {', '.join(unknown)}; the options are {names}")
    model, app = options.get("model"), options.get("graph")
    if app is not None and model is not None:
        raise RpmsError("graph= brings its own model: give model= to build_graph instead")
    if not isinstance(app, CompiledStateGraph | None):
        raise RpmsError(f"graph= takes what build_graph returns, not a {type(app).__name__}")
    values = cast(dict[str, Any], options)
    world: dict[str, Any] = {key: values[key] for key in ("env", "split") if key in values}
    # Without a context of the call, a graph plays under the one it was built with.
    given = options.get("context")
    context = None if app is not None and given is None else settings(given)
    labels: dict[str, Any] = {"condition": context.name, "model": context.model} if context else {}
    config: dict[str, Any] = {**(options.get("config") or {})}
    # Traces are found by these.
    config["tags"] = [*([context.name] if context else ()), *(config.get("tags") or ())]
    labels |= {"task": task, **world}
    config["metadata"] = labels | dict[str, Any](config.get("metadata") or {})
    return app or build_graph(model=model), {
        "input": {"task": task, **world},
        "config": config,
        "context": context,
    }
