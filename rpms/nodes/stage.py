"""One stage as LangGraph runs it: the same function for a plain run and for an event loop.

A stage is a function of the state and the runtime that returns the keys it changes: a plain one
where it only computes, a coroutine where it waits (for the simulator, for the model), so that other
episodes go on meanwhile. A plain run has its coroutines run by a loop of their own. LangGraph left
to itself would hand every plain stage to a thread, eight hand-overs per step, more than the stages
themselves take.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import cache
from inspect import iscoroutinefunction, signature
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.types import Command

from rpms.nodes.state import STATE_KEYS, Change, EpisodeState
from rpms.vocabulary.context import RunContext, settings
from rpms.vocabulary.errors import RpmsError

T = TypeVar("T")


def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, for whoever has no event loop, or may not wait on theirs."""

    async def outcome() -> tuple[T | None, Exception | None]:
        # Handed over by hand: of a TimeoutError asyncio makes another one, without its notes.
        try:
            return await work, None
        except Exception as error:
            return None, error

    result, error = asyncio.run_coroutine_threadsafe(outcome(), _loop()).result()
    if error is not None:
        raise error
    return cast(T, result)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="stages", daemon=True).start()
    return loop


def in_plain_run() -> bool:
    """Whether this coroutine was started by ``finish``: clients with a synchronous face use that.

    The connections of the other belong to whichever event loop opened them, and a program may
    play some episodes plainly and some on a loop of its own.
    """
    # Asked of the cache first: a process that only awaits never needs that loop's thread.
    return bool(_loop.cache_info().currsize) and asyncio.get_running_loop() is _loop()


os.register_at_fork(after_in_child=_loop.cache_clear)  # threads stay behind in the parent


class Stage(Runnable[EpisodeState, EpisodeState]):
    """A stage for plain runs and for an event loop.

    It also keeps the settings in the state, where the edges look for them. An episode that is
    taken up goes on under those it has; whoever names others changes them, and that is noted.
    """

    name: str

    def __init__(self, name: str, run: Callable[..., Any], keys: Collection[str] = STATE_KEYS):
        """``run`` may do without the runtime; a coroutine function where the stage waits."""
        self.name, self.run, self._keys = name, run, keys
        self._run: Callable[..., Any] = run
        if len(signature(run).parameters) < 2:
            self._run = lambda state, _: run(state)
        self._waits = iscoroutinefunction(run)

    def __call__(self, state: EpisodeState, runtime: Runtime[RunContext]) -> Any:
        """The stage as a function, for a stage that wraps it."""
        return self._run(state, runtime)

    def invoke(
        self, input: EpisodeState, config: RunnableConfig | None = None, **_: Any
    ) -> EpisodeState:
        """Run it here and now."""
        runtime = current(self.name, input)
        update = self._run(input, runtime)
        return self._noted(input, runtime.context, finish(update) if self._waits else update)

    async def ainvoke(
        self, input: EpisodeState, config: RunnableConfig | None = None, **_: Any
    ) -> EpisodeState:
        """Run it on an event loop."""
        runtime = current(self.name, input)
        if self._waits:
            update = await self._run(input, runtime)
        else:
            update = await compute(self._run, input, runtime)
        return self._noted(input, runtime.context, update)

    def _noted(
        self, state: EpisodeState, context: RunContext, update: EpisodeState
    ) -> EpisodeState:
        known(self.name, self._keys, update)
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
    try:
        context = settings(runtime.context).over(begun)
    except RpmsError as error:  # our own was looked at before the run began
        raise RpmsError(
            "within another graph, build this one with build_graph(context=RunContext(...)), or "
            f"give that one's context a field rpms with a RunContext: {error}"
        ) from None
    return runtime if context is runtime.context else runtime.override(context=context)


async def compute(
    run: Callable[[EpisodeState, Runtime[RunContext]], T],
    state: EpisodeState,
    runtime: Runtime[RunContext],
) -> T:
    """A computing stage on an event loop: in place, except where the loop belongs to others.

    Rules, memory and templates are read from files when they are first needed; LangGraph's server
    refuses that on its loop. So does an asynchronous store where memory is read from it.
    """
    if runtime.server_info is None and not isinstance(runtime.store, AsyncBatchedBaseStore):
        return run(state, runtime)
    return await asyncio.to_thread(run, state, runtime)


def known(stage: str, keys: Collection[str], update: Any) -> Any:
    """The update, if the state has all its keys; LangGraph would drop the others in silence."""
    changed = update.update if isinstance(update, Command) and not update.graph else update
    if isinstance(changed, Mapping) and (unknown := changed.keys() - keys):
        raise RpmsError(
            f"stage '{stage}' returned {', '.join(sorted(map(str, unknown)))}, which the state "
            f"does not have; "
            f"its keys are: {', '.join(sorted(keys))}"
        )
    return update
