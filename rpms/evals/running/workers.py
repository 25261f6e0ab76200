"""Pools of workers that run episodes: local processes, this process, or a Ray cluster.

A worker is an event loop with many episodes in flight. The simulators of a process share one
thread, so more episodes per worker do not make the simulator faster; they use the time in which a
model computes. A pool only carries jobs to workers and events back. The dispatcher assigns jobs,
replaces dead workers and writes files, so that all pools behave alike. On Ray a worker is an actor;
one that is killed (a lost node, the memory monitor) is replaced, and its episodes are run again.
"""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import os
import signal
import socket
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.globals import set_llm_cache

from rpms.envs import Task, live
from rpms.envs.registry import find_task
from rpms.evals.records.schema import JobKey
from rpms.evals.running.costs import Meter, Tokens, cost_of
from rpms.evals.running.episode import EpisodeResult, never_played, play_job
from rpms.evals.running.plan import Job, RunPlan
from rpms.graph.build import RpmsGraph, build_graph
from rpms.graph.compiled import open_graph
from rpms.memory_store.methods import after_trial
from rpms.models.prices import Rates, rates_for
from rpms.models.reply_cache import ReplyCache, cached_replies
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import redact, visible

SWITCH_S = 0.001
"""The interpreter's switch interval, short because the loop and the simulator's thread share it."""
THREADS = 16
"""Threads for blocking work: opening a client, the cache of replies, sending results."""
DROP_S = 2.0
"""The time that cancelled episodes may take to end; the parent waits a little longer."""


@dataclass(frozen=True)
class WorkerSettings:
    """The plan, the prices and the meter that a worker needs besides its jobs."""

    plan: RunPlan
    rates: dict[str, Rates | None]
    meter: Meter | None = None

    @classmethod
    def of(cls, plan: RunPlan, meter: Meter | None = None) -> WorkerSettings:
        """The settings without the plan's tasks, which come with the jobs.

        Prices are included because another machine may have another price list. A meter can only be
        shared with processes of this machine.
        """
        rates = {
            label: rates_for(context.model, context.base_url)
            for label, context in plan.conditions.items()
        }
        return cls(replace(plan, tasks=[]), rates, meter)


class EpisodeWorker:
    """Runs jobs on the running event loop, with one graph for each arm."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._plan, self._rates, self._meter = settings.plan, settings.rates, settings.meter
        self._graphs: dict[str, RpmsGraph] = {}

    async def play(self, job: Job) -> EpisodeResult:
        """Run one episode."""
        if not await asyncio.to_thread(Path(job.task["source"]).exists):
            # On another machine the game files may be in another folder.
            job = job._replace(task=await asyncio.to_thread(_local_task, job.task))
        context = job.seeded(self._plan.conditions[job.condition])
        rates, meter, truth = self._rates[job.condition], self._meter, self._plan.truth
        try:
            graph = self._graph(job.condition)
            job, written = await self._learn_from_trial(job, context, rates)
        except Exception as error:  # an arm that cannot be built fails its own episodes only
            return never_played(job, error, rates)
        return await play_job(graph, job, context, truth, rates, meter, written)

    async def _learn_from_trial(
        self, job: Job, context: RunContext, rates: Rates | None
    ) -> tuple[Job, Tokens]:
        """The job with the memory updated from the previous trial, and the tokens that this took.

        ``cross_trial_memory`` counts the tokens of all trials of the task.
        """
        if job.before is None or not context.memory:
            return job, Tokens()
        if self._meter and self._meter.is_spent:
            await asyncio.Event().wait()  # until the run is stopped, as in play_job
        cross_trial_memory = await after_trial(
            job.task["env"], context, job.cross_trial_memory, job.before.record()
        )
        earlier = Tokens.of(job.cross_trial_memory.get("spent", {}))
        written = Tokens.of(cross_trial_memory.get("spent", {})).plus(earlier, -1)
        if self._meter:
            self._meter.add(written, cost_of(written, rates))
        return job._replace(cross_trial_memory=cross_trial_memory), written

    def _graph(self, label: str) -> RpmsGraph:
        """The arm's own graph, or ours, which the other arms share."""
        source = self._plan.graphs.get(label)
        key = label if source else ""
        if key not in self._graphs:
            self._graphs[key] = open_graph(source) if source else build_graph()
        return self._graphs[key]


def _local_task(task: Task) -> Task:
    try:
        return find_task(task["env"], task["split"], task["id"])
    except Exception:  # the episode will report the error
        return task


def serve(connection: Connection, settings: WorkerSettings) -> None:
    """The main function of a worker process: receives jobs and sends results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    sys.setswitchinterval(SWITCH_S)
    with cached_replies(settings.plan.cache):
        asyncio.run(_serve(connection, settings))
    live.close_all()
    sys.stdout.flush()
    # A normal exit would print warnings of clients whose event loop is closed.
    os._exit(0)


async def _serve(connection: Connection, settings: WorkerSettings) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(THREADS))
    worker = EpisodeWorker(settings)
    sending = threading.Lock()
    stopping = asyncio.Event()
    running: set[asyncio.Task[None]] = set()

    def send(job: Job, result: EpisodeResult) -> None:
        with sending:
            connection.send((job.key, result))

    async def play(job: Job) -> None:
        result = await worker.play(job)
        await asyncio.to_thread(send, job, result)

    def accept(job: Job | None) -> None:
        if job is None:
            stopping.set()
            return
        task = loop.create_task(play(job))
        running.add(task)
        task.add_done_callback(finished)

    def finished(task: asyncio.Task[None]) -> None:
        running.discard(task)
        # A worker that cannot send a result is lost.
        if not task.cancelled() and task.exception():
            print(visible(redact(f"rpms worker: {task.exception()!r}")), file=sys.stderr)
            os._exit(1)

    def receive() -> None:
        while True:
            try:
                job = connection.recv()
            except (EOFError, OSError):
                os._exit(1)  # the parent has ended
            loop.call_soon_threadsafe(accept, job)
            if job is None:
                return

    threading.Thread(target=receive, name="jobs", daemon=True).start()
    await stopping.wait()
    await drop(running)


async def drop(running: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel episodes, and wait for the tasks that they started.

    Tracing starts tasks while an episode is cancelled; asyncio would warn of each that is pending
    when the loop ends.
    """
    for task in list(running):
        task.cancel()
    deadline = asyncio.get_running_loop().time() + DROP_S
    while pending := asyncio.all_tasks() - {asyncio.current_task()}:
        seconds = deadline - asyncio.get_running_loop().time()
        if seconds <= 0:
            return
        await asyncio.wait(pending, timeout=seconds)


STOP_S = 5.0


class WorkerEvent(NamedTuple):
    """A finished episode, or without a result the death of the worker."""

    worker: int
    key: JobKey | None = None
    result: EpisodeResult | None = None
    reason: str = ""


class Pool(ABC):
    """Workers that can run several episodes each."""

    def __init__(self, settings: WorkerSettings, size: int) -> None:
        self.settings = settings
        self.size = size

    def start(self) -> Sequence[int]:
        """Start all workers and return their numbers."""
        for number in range(self.size):
            self.replace(number)
        return range(self.size)

    @abstractmethod
    def submit(self, worker: int, job: Job) -> None:
        """Send a job to a worker; ``poll`` reports a dead worker."""

    @abstractmethod
    def poll(self, timeout: float) -> list[WorkerEvent]:
        """Wait for events, at most ``timeout`` seconds."""

    @abstractmethod
    def replace(self, worker: int) -> None:
        """Start a worker under this number."""

    @abstractmethod
    def close(self) -> None:
        """End every worker at once."""


class ProcessPool(Pool):
    """Worker processes on this machine, which end with this process."""

    def __init__(self, settings: WorkerSettings, size: int) -> None:
        super().__init__(settings, size)
        # Forking would copy the locks of this process's threads.
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, tuple[BaseProcess, Connection]] = {}

    def submit(self, worker: int, job: Job) -> None:
        with suppress(OSError):  # poll finds the closed pipe of a dead worker
            self._workers[worker][1].send(job)

    def poll(self, timeout: float) -> list[WorkerEvent]:
        numbers = {id(connection): number for number, (_, connection) in self._workers.items()}
        ready = wait([connection for _, connection in self._workers.values()], timeout)
        return [self._receive(numbers[id(connection)]) for connection in ready]

    def _receive(self, worker: int) -> WorkerEvent:
        process, connection = self._workers[worker]
        try:
            key, result = connection.recv()
        except Exception:  # a closed pipe or an incomplete result: the worker is lost
            del self._workers[worker]
            connection.close()
            process.kill()
            process.join()
            return WorkerEvent(
                worker, reason=f"worker process ended with exit code {process.exitcode}"
            )
        return WorkerEvent(worker, key, result)

    def replace(self, worker: int) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=serve, args=(theirs, self.settings), name=f"rpms-worker-{worker}", daemon=True
        )
        process.start()
        theirs.close()
        self._workers[worker] = (process, ours)

    def close(self) -> None:
        """Ask every worker to stop, and kill those that do not."""
        for _, connection in self._workers.values():
            with suppress(OSError):
                connection.send(None)
        for process, connection in self._workers.values():
            process.join(STOP_S)
            if process.is_alive():
                process.kill()
                process.join()
            connection.close()
        self._workers.clear()


@cache
def _shared_loop() -> asyncio.AbstractEventLoop:
    """One event loop for all runs in this process, because a client's connections belong to it.

    If the first run closed it, the first call of the next run would fail.
    """
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop


class InlinePool(Pool):
    """Episodes in this process, for debugging: breakpoints and profilers see everything."""

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__(settings, 1)
        self._loop = _shared_loop()
        self._worker = EpisodeWorker(settings)
        self._running: dict[asyncio.Task[EpisodeResult], JobKey] = {}

    def submit(self, worker: int, job: Job) -> None:
        self._running[self._loop.create_task(self._worker.play(job))] = job.key

    def poll(self, timeout: float) -> list[WorkerEvent]:
        """Run the loop until an episode ends or the time is over."""
        if not self._running:
            return []
        done, _ = self._loop.run_until_complete(
            asyncio.wait(self._running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        )
        return [WorkerEvent(0, self._running.pop(task), task.result()) for task in done]

    def replace(self, worker: int) -> None:
        """There is nothing to replace: the worker is this process."""

    def close(self) -> None:
        self._loop.run_until_complete(drop(self._running))


READY_S = 180.0
"""The time that the cluster may take to start the first worker."""
CONNECT_S = 5.0
LOCAL = "local"


class RayWorker(EpisodeWorker):
    """The worker of an actor, the same as in a worker process."""

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__(settings)
        if settings.plan.cache:
            set_llm_cache(ReplyCache(settings.plan.cache))

    async def pid(self) -> int:
        """The process id; the answer shows that the worker is up."""
        return os.getpid()


class RayPool(Pool):
    """Actors on a Ray cluster."""

    def __init__(self, plan: RunPlan, size: int, address: str) -> None:
        """Connect to the cluster at ``address``; ``local`` starts one on this machine."""
        super().__init__(WorkerSettings.of(plan), size)
        self._ray = _connect(address, size)
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0)(RayWorker)
        self._actors: dict[int, Any] = {}
        self._pending: dict[Any, tuple[int, JobKey]] = {}

    def start(self) -> Sequence[int]:
        """Start as many actors as the cluster has room for."""
        super().start()
        refs = {actor.pid.remote(): number for number, actor in self._actors.items()}
        ready, _ = self._ray.wait(list(refs), num_returns=1, timeout=READY_S)
        if ready:
            ready, _ = self._ray.wait(list(refs), num_returns=len(refs), timeout=READY_S / 6)
        if not ready:
            raise RpmsError(f"the Ray cluster started no worker within {READY_S:g} s")
        up = {refs[ref] for ref in ready}
        for number in set(self._actors) - up:
            self._ray.kill(self._actors.pop(number))
        return sorted(up)

    def submit(self, worker: int, job: Job) -> None:
        self._pending[self._actors[worker].play.remote(job)] = (worker, job.key)

    def poll(self, timeout: float) -> list[WorkerEvent]:
        """Collect results; a dead actor is reported once."""
        if not self._pending:
            return []
        ready, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        events = []
        for ref in ready:
            worker, key = self._pending.pop(ref)
            try:
                events.append(WorkerEvent(worker, key, self._ray.get(ref)))
            except self._ray.exceptions.RayError as error:
                self._pending = {r: at for r, at in self._pending.items() if at[0] != worker}
                with suppress(Exception):  # it may be dead already
                    self._ray.kill(self._actors.pop(worker))
                events.append(WorkerEvent(worker, reason=f"Ray worker died: {_first_line(error)}"))
        return events

    def replace(self, worker: int) -> None:
        self._actors[worker] = self._actor.remote(self.settings)

    def close(self) -> None:
        for actor in self._actors.values():
            with suppress(Exception):
                self._ray.kill(actor)
        self._ray.shutdown()


def _connect(address: str, workers: int) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise RpmsError("Ray is not installed: pip install -e '.[ray]' in a clone") from error
    _try_connection(address)
    options: dict[str, Any] = {
        "logging_level": "ERROR",
        "log_to_driver": False,
        "configure_logging": False,
        "include_dashboard": None,
    }
    if address == LOCAL:
        options |= {"num_cpus": workers, "include_dashboard": False}
    try:
        ray.init(address, **options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise RpmsError(
            f"cannot connect to a Ray cluster at '{address}': {_first_line(error)}"
        ) from error
    return ray


def _try_connection(address: str) -> None:
    """Raise an error early: Ray itself tries for more than a minute."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()) or "/" in host:
        return  # 'auto', 'local' or an address with a scheme
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except OSError as error:
        raise RpmsError(f"no Ray cluster answers at '{address}': {error.strerror}") from error


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
