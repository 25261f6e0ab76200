"""Running one episode: in one call, or step by step as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from typing_extensions import TypedDict

from graph.build import RpmsGraph, build_graph
from nodes.context import RunContext
from nodes.state import EpisodeInput, EpisodeOutput
from vocabulary.belief import Belief
from vocabulary.goal import SubGoal
from vocabulary.recall import Recall
from vocabulary.turn import Turn


class StepEvent(TypedDict):
    """One decision as it happens: what was believed, how much knowledge was used, what came."""

    turn: Turn
    belief: Belief
    sub_goal: SubGoal
    rules: int
    memories: int
    dropped: int
    recalls: list[Recall]
    knowledge_tokens: int


def run_episode(
    task: str | int = 0,
    *,
    env: str = "alfworld",
    split: str = "generated_unseen",
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    graph: RpmsGraph | None = None,
    config: dict[str, Any] | None = None,
) -> EpisodeOutput:
    """Play one episode to its end and return how it went."""
    app = graph or build_graph(model=model)
    result = app.invoke(
        _input(task, env, split), cast(Any, config), context=context or RunContext()
    )
    return cast(EpisodeOutput, result)


async def arun_episode(
    task: str | int = 0,
    *,
    env: str = "alfworld",
    split: str = "generated_unseen",
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    graph: RpmsGraph | None = None,
    config: dict[str, Any] | None = None,
) -> EpisodeOutput:
    """The same, for many episodes in flight on one event loop."""
    app = graph or build_graph(model=model)
    result = await app.ainvoke(
        _input(task, env, split), cast(Any, config), context=context or RunContext()
    )
    return cast(EpisodeOutput, result)


def stream_episode(
    task: str | int = 0,
    *,
    env: str = "alfworld",
    split: str = "generated_unseen",
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    graph: RpmsGraph | None = None,
    config: dict[str, Any] | None = None,
) -> Iterator[StepEvent | EpisodeOutput]:
    """Each step as a StepEvent, and at last the EpisodeOutput."""
    app = graph or build_graph(model=model)
    for mode, part in app.stream(
        _input(task, env, split),
        cast(Any, config),
        context=context or RunContext(),
        stream_mode=["custom", "values"],
        output_keys=list(EpisodeOutput.__annotations__),
    ):
        if mode == "custom":
            yield cast(StepEvent, part)
        else:
            final = part
    yield cast(EpisodeOutput, final)


async def astream_episode(
    task: str | int = 0,
    *,
    env: str = "alfworld",
    split: str = "generated_unseen",
    context: RunContext | None = None,
    model: BaseChatModel | None = None,
    graph: RpmsGraph | None = None,
    config: dict[str, Any] | None = None,
) -> AsyncIterator[StepEvent | EpisodeOutput]:
    """``stream_episode`` for an event loop."""
    app = graph or build_graph(model=model)
    async for mode, part in app.astream(
        _input(task, env, split),
        cast(Any, config),
        context=context or RunContext(),
        stream_mode=["custom", "values"],
        output_keys=list(EpisodeOutput.__annotations__),
    ):
        if mode == "custom":
            yield cast(StepEvent, part)
        else:
            final = part
    yield cast(EpisodeOutput, final)


def _input(task: str | int, env: str, split: str) -> EpisodeInput:
    return EpisodeInput(env=env, split=split, task=str(task))
