"""One environment worker: an event loop with many episodes in flight.

The simulators of a process share one thread, so more episodes per worker do not make the
simulator faster; they fill the time in which a model is thinking.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from rpms.envs import Task, live
from rpms.evals.budget import Meter
from rpms.evals.costs import Price, Spent, nothing_spent, price_by, spent_in
from rpms.evals.episode import EpisodeResult, Recorder, play_job
from rpms.evals.pacing import Pacing
from rpms.evals.plan import Job, RunPlan
from rpms.evals.variants import load_stages
from rpms.graph.build import RpmsGraph, Swapped, build_graph
from rpms.models.prices import Rates, rates_for
from rpms.nodes.chat import reply_cache
from rpms.nodes.context import RunContext
from rpms.nodes.memories import after_trial
from rpms.nodes.reset_env import find_task, make_reset_env
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.safe_text import redact, visible
from rpms.vocabulary.turn import EpisodeRecord

SWITCH_S = 0.001
"""The loop shares the interpreter with the simulator's thread; it should not wait long for it."""
THREADS = 16
"""For what may block: opening a client, the response cache, sending results."""
DROP_S = 2.0
"""How long dropped episodes may take to end; the parent waits a little longer for the process."""


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker must know besides its jobs."""

    contexts: dict[str, RunContext]
    truth: bool
    cache: str
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    rates: dict[str, Rates | None] = field(default_factory=dict)
    meter: Meter | None = None

    @classmethod
    def of(cls, plan: RunPlan, meter: Meter | None = None) -> WorkerSettings:
        """The part of a plan that workers need.

        Prices go with it: another machine may have no list, or another one. A meter can only be
        shared with processes of this machine.
        """
        rates = {
            label: rates_for(context.model, context.base_url)
            for label, context in plan.conditions.items()
        }
        return cls(plan.conditions, plan.truth, plan.cache, plan.nodes, rates, meter)


class Player:
    """Plays jobs on the running event loop, all of an arm through one graph."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Nothing heavy happens before the first job."""
        self._settings = settings
        self._pacing = Pacing()
        self._tasks: dict[tuple[str, str], Task] = {}
        self._graphs: dict[tuple[str, ...], RpmsGraph] = {}

    async def play(self, job: Job) -> EpisodeResult:
        """One episode, from its start to its line and its step log."""
        task = job.task
        if not await asyncio.to_thread(Path(task["source"]).exists):
            # Another machine keeps its games elsewhere; worlds without files resolve alike.
            task = await asyncio.to_thread(_here, task)
        self._tasks[task["split"], task["id"]] = task
        context = job.seeded(self._settings.contexts[job.condition])
        price = price_by(self._settings.rates.get(job.condition))
        truth, meter = self._settings.truth, self._settings.meter
        try:
            graph = self._graph(job.condition, context)
            taught = await self._lesson(job, context, price)
        except Exception as error:  # an arm that cannot be built is its own episodes' trouble
            recorder = Recorder(job, truth, price, meter)
            recorder.fail(error)
            return recorder.result()
        result = await play_job(
            graph, taught, context, truth, self._pacing, price=price, meter=meter
        )
        return _with_writing(result, job, taught, price) if taught.carried else result

    async def _lesson(self, job: Job, context: RunContext, price: Price) -> Job:
        """What the memory makes of the trial before, for the one that begins."""
        if job.before is None or not context.memory:
            return job
        meter = self._settings.meter
        if meter and meter.is_spent:
            await asyncio.Event().wait()  # as an episode does; the run is being stopped
        record = cast(EpisodeRecord, job.before)
        cache = reply_cache(context, self._settings.cache)
        carried = await after_trial(job.task["env"], context, job.carried, record, cache)
        taught = job._replace(carried=carried)
        if meter:
            written = _writing(job, taught)
            meter.add(written, price(written))
        return taught

    def _graph(self, label: str, context: RunContext) -> RpmsGraph:
        """The arm's graph; arms that swap nothing and keep replies alike share one."""
        paths = self._settings.nodes.get(label, {})
        cache = reply_cache(context, self._settings.cache)
        key = (cache, *(text for item in sorted(paths.items()) for text in item))
        if key not in self._graphs:
            nodes: dict[str, Swapped] = {"reset_env": make_reset_env(self._find)}
            self._graphs[key] = build_graph({**nodes, **load_stages(paths)}, reply_cache=cache)
        return self._graphs[key]

    def _find(self, state: EpisodeState) -> Task:
        return self._tasks[state["split"], str(state["task"])]


def _writing(before: Job, after: Job) -> Spent:
    """What the texts cost that were written between two trials."""
    told, earlier = after.carried.get("spent", {}), before.carried.get("spent", {})
    spent = {name: told.get(name, 0) - earlier.get(name, 0) for name in nothing_spent()}
    return cast(Spent, spent)


def _with_writing(result: EpisodeResult, before: Job, after: Job, price: Price) -> EpisodeResult:
    """The episode's line, with what the texts cost that its memory had written for it."""
    for name, count in _writing(before, after).items():
        result.line[f"spent_{name}"] += count
    result.line["cost_usd"] = price(spent_in(result.line))
    return result


def _here(task: Task) -> Task:
    try:
        return find_task(task["env"], task["split"], task["id"])
    except Exception:  # the episode itself will say what is wrong with its task
        return task


def serve(connection: Connection, settings: WorkerSettings) -> None:
    """The main function of a worker process: jobs come in, results go out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    sys.setswitchinterval(SWITCH_S)
    asyncio.run(_serve(connection, settings))
    live.close_all()
    sys.stdout.flush()
    # Clients that still hold connections would complain that the loop they belong to is gone.
    os._exit(0)


async def _serve(connection: Connection, settings: WorkerSettings) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    player = Player(settings)
    sending = threading.Lock()
    stopping = asyncio.Event()
    playing: set[asyncio.Task[None]] = set()

    def send(job: Job, result: EpisodeResult) -> None:
        with sending:
            connection.send((job.key, result))

    async def play(job: Job) -> None:
        result = await player.play(job)
        await asyncio.to_thread(send, job, result)

    def accept(job: Job | None) -> None:
        if job is None:
            stopping.set()
            return
        task = loop.create_task(play(job))
        playing.add(task)
        task.add_done_callback(finished)

    def finished(task: asyncio.Task[None]) -> None:
        playing.discard(task)
        if (
            not task.cancelled() and task.exception()
        ):  # a result that cannot be told is a worker that is lost
            print(visible(redact(f"rpms worker: {task.exception()!r}")), file=sys.stderr)
            os._exit(1)

    def read() -> None:
        while True:
            try:
                job = connection.recv()
            except (EOFError, OSError):
                os._exit(1)  # the parent is gone
            loop.call_soon_threadsafe(accept, job)
            if job is None:
                return

    threading.Thread(target=read, name="jobs", daemon=True).start()
    await stopping.wait()
    await drop(playing)


async def drop(playing: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel episodes, and wait for what they leave behind.

    Tracing runs tasks of its own while an episode is being cancelled; ended with the loop, each
    would complain that it was still pending.
    """
    for task in list(playing):
        task.cancel()
    until = asyncio.get_running_loop().time() + DROP_S
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        left = until - asyncio.get_running_loop().time()
        if left <= 0:
            return
        await asyncio.wait(others, timeout=left)
