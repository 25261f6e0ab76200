"""One stage as LangGraph runs it: the same function for a plain run and for an event loop.

A stage is a function of the state and the runtime that returns the keys it changes. Those that
only compute have one form; those that wait (for the simulator, for the model) bring a coroutine
too, so that other episodes go on meanwhile. LangGraph left to itself would hand every synchronous
stage to a thread, eight hand-overs per step, more than the stages themselves take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import signature
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import Runtime, get_runtime

from rpms.nodes.context import RunContext, settings
from rpms.nodes.state import STATE_KEYS, Change, EpisodeState
from rpms.vocabulary.errors import RpmsError

Run = Callable[[EpisodeState, Runtime[RunContext]], EpisodeState]
Found = TypeVar("Found")
ARun = Callable[[EpisodeState, Runtime[RunContext]], Awaitable[EpisodeState]]


class Stage(Runnable[EpisodeState, EpisodeState]):
    """A stage both ways.

    It also keeps the settings in the state, where the edges look for them. An episode that is
    taken up goes on under those it has; whoever names others changes them, and that is noted.
    """

    name: str

    def __init__(self, name: str, run: Callable[..., EpisodeState], arun: ARun | None = None):
        """``run`` may do without the runtime; ``arun`` where the stage waits for something."""
        self.name = name
        self._run: Run = run if len(signature(run).parameters) > 1 else lambda state, _: run(state)
        self._arun = arun

    def invoke(
        self, input: EpisodeState, config: RunnableConfig | None = None, **_: Any
    ) -> EpisodeState:
        """Run it here and now."""
        runtime = current(self.name, input)
        return self._noted(input, runtime.context, self._run(input, runtime))

    async def ainvoke(
        self, input: EpisodeState, config: RunnableConfig | None = None, **_: Any
    ) -> EpisodeState:
        """Run it on an event loop."""
        runtime = current(self.name, input)
        if self._arun:
            update = await self._arun(input, runtime)
        else:
            update = await compute(self._run, input, runtime)
        return self._noted(input, runtime.context, update)

    def _noted(
        self, state: EpisodeState, context: RunContext, update: EpisodeState
    ) -> EpisodeState:
        known(self.name, update)
        before, now = state.get("settings") or {}, context.plain
        if before is now or before == now or "settings" in update:
            return update
        changes = [
            Change(step=state["steps"] + 1, setting=name, before=before[name], now=now[name])
            for name in now
            if name in before and before[name] != now[name]
        ]
        noted = EpisodeState(settings=now, condition=context.condition)
        return {**update, **noted, "changes": [*state.get("changes", []), *changes]}


def current(stage: str, state: EpisodeState) -> Runtime[RunContext]:
    """LangGraph's runtime, with the settings the episode began with but for those now named."""
    runtime = get_runtime(RunContext)
    # A thread may have played another episode before the one that begins.
    begun = None if stage == "reset_env" else state.get("settings")
    context = settings(runtime.context).over(begun)
    return runtime if context is runtime.context else runtime.override(context=context)


async def compute(
    run: Callable[[EpisodeState, Runtime[RunContext]], Found],
    state: EpisodeState,
    runtime: Runtime[RunContext],
) -> Found:
    """A computing stage on an event loop: in place, except where the loop belongs to a server.

    Rules, memory and templates are read from files when they are first needed; LangGraph's server
    refuses that on its loop.
    """
    if runtime.server_info is None:
        return run(state, runtime)
    return await asyncio.to_thread(run, state, runtime)


def known(stage: str, update: Any) -> Any:
    """The update, if the state has all its keys; LangGraph would drop the others in silence."""
    if isinstance(update, Mapping) and not update.keys() <= STATE_KEYS:
        unknown = ", ".join(sorted(map(str, update.keys() - STATE_KEYS)))
        raise RpmsError(
            f"stage '{stage}' returned {unknown}, which the state does not have; "
            f"its keys are: {', '.join(sorted(STATE_KEYS))}"
        )
    return update
