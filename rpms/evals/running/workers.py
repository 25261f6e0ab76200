"""Where episodes are played: processes on this machine, this very process, or a Ray cluster.

A worker is an event loop with many episodes in flight. The simulators of a process share one
thread, so more episodes per worker do not make the simulator faster; they fill the time in which
a model is thinking. A pool only carries jobs to workers and events back. Which job goes where, what
happens after a worker died, and every file is the dispatcher's business, so that all pools behave
alike. On Ray a worker is an actor; one that is killed (by a node that goes away, by the memory
monitor) is replaced, and its episodes are played again.
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

from rpms.envs import Task, live
from rpms.evals.records.schema import JobKey
from rpms.evals.running.arms import load_stages
from rpms.evals.running.costs import Meter, Tokens, cost_of
from rpms.evals.running.episode import EpisodeResult, never_played, play_job
from rpms.evals.running.plan import Job, RunPlan
from rpms.graph.build import Node, RpmsGraph, build_graph
from rpms.memory_store.methods import after_trial
from rpms.models.chat import reply_cache
from rpms.models.prices import Rates, rates_for
from rpms.nodes.reset_env import find_task, make_reset_env
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.safe_text import redact, visible

SWITCH_S = 0.001
"""The loop shares the interpreter with the simulator's thread; it should not wait long for it."""
THREADS = 16
"""For what may block: opening a client, the response cache, sending results."""
DROP_S = 2.0
"""How long dropped episodes may take to end; the parent waits a little longer for the process."""


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker must know besides its jobs: the plan, what calls cost, and the budget."""

    plan: RunPlan
    rates: dict[str, Rates | None]
    meter: Meter | None = None

    @classmethod
    def of(cls, plan: RunPlan, meter: Meter | None = None) -> WorkerSettings:
        """The plan without its tasks, which come with the jobs.

        Prices go with it: another machine may have no list, or another one. A meter can only be
        shared with processes of this machine.
        """
        rates = {
            label: rates_for(context.model, context.base_url)
            for label, context in plan.conditions.items()
        }
        return cls(replace(plan, tasks=[]), rates, meter)


class EpisodeWorker:
    """Plays jobs on the running event loop, all of an arm through one graph."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Nothing heavy happens before the first job."""
        self._plan, self._rates, self._meter = settings.plan, settings.rates, settings.meter
        self._tasks: dict[tuple[str, str], Task] = {}
        self._graphs: dict[tuple[str, ...], RpmsGraph] = {}

    async def play(self, job: Job) -> EpisodeResult:
        """One episode, from its start to its line and its step log."""
        task = job.task
        if not await asyncio.to_thread(Path(task["source"]).exists):
            # Another machine keeps its games elsewhere; worlds without files resolve alike.
            task = await asyncio.to_thread(_here, task)
        self._tasks[task["split"], task["id"]] = task
        context = job.seeded(self._plan.conditions[job.condition])
        rates, meter, truth = self._rates[job.condition], self._meter, self._plan.truth
        try:
            graph = self._graph(job.condition, context)
            taught, written = await self._lesson(job, context, rates)
        except Exception as error:  # an arm that cannot be built is its own episodes' trouble
            return never_played(job, error, rates)
        return await play_job(graph, taught, context, truth, rates, meter, written)

    async def _lesson(
        self, job: Job, context: RunContext, rates: Rates | None
    ) -> tuple[Job, Tokens]:
        """What the memory makes of the trial before, for the one that begins; what it wrote cost.

        ``cross_trial_memory`` counts what all trials of the task spent on texts.
        """
        if job.before is None or not context.memory:
            return job, Tokens()
        if self._meter and self._meter.is_spent:
            await asyncio.Event().wait()  # as an episode does; the run is being stopped
        cache, record = reply_cache(context, self._plan.cache), job.before.record()
        cross_trial_memory = await after_trial(
            job.task["env"], context, job.cross_trial_memory, record, cache
        )
        earlier = Tokens.of(job.cross_trial_memory.get("spent", {}))
        written = Tokens.of(cross_trial_memory.get("spent", {})).plus(earlier, -1)
        if self._meter:
            self._meter.add(written, cost_of(written, rates))
        return job._replace(cross_trial_memory=cross_trial_memory), written

    def _graph(self, label: str, context: RunContext) -> RpmsGraph:
        """The arm's graph; arms that swap nothing and keep replies alike share one."""
        paths = self._plan.nodes.get(label, {})
        cache = reply_cache(context, self._plan.cache)
        key = (cache, *(text for item in sorted(paths.items()) for text in item))
        if key not in self._graphs:
            nodes: dict[str, Node] = {"reset_env": make_reset_env(find=self._find)}
            self._graphs[key] = build_graph({**nodes, **load_stages(paths)}, reply_cache=cache)
        return self._graphs[key]

    def _find(self, state: EpisodeState) -> Task:
        return self._tasks[state["split"], str(state["task"])]


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
    worker = EpisodeWorker(settings)
    sending = threading.Lock()
    stopping = asyncio.Event()
    playing: set[asyncio.Task[None]] = set()

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
        playing.add(task)
        task.add_done_callback(finished)

    def finished(task: asyncio.Task[None]) -> None:
        playing.discard(task)
        # A result that cannot be told is a worker that is lost.
        if not task.cancelled() and task.exception():
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
        patience = until - asyncio.get_running_loop().time()
        if patience <= 0:
            return
        await asyncio.wait(others, timeout=patience)


STOP_S = 5.0


class WorkerEvent(NamedTuple):
    """What a worker has to tell: a finished episode, or (with no result) its own death."""

    worker: int
    key: JobKey | None = None
    result: EpisodeResult | None = None
    reason: str = ""


class Pool(ABC):
    """Workers that can play several episodes each."""

    def __init__(self, settings: WorkerSettings, size: int) -> None:
        """Remember what to start."""
        self.settings = settings
        self.size = size

    def start(self) -> Sequence[int]:
        """Start all workers; their numbers."""
        for number in range(self.size):
            self.replace(number)
        return range(self.size)

    @abstractmethod
    def submit(self, worker: int, job: Job) -> None:
        """Hand a job to a worker; a dead worker is reported by ``poll``, not here."""

    @abstractmethod
    def poll(self, timeout: float) -> list[WorkerEvent]:
        """Wait for events, at most this many seconds."""

    @abstractmethod
    def replace(self, worker: int) -> None:
        """Start a worker under this number, perhaps in place of one that died."""

    @abstractmethod
    def close(self) -> None:
        """End every worker now, with whatever it is doing."""


class ProcessPool(Pool):
    """Worker processes on this machine; none outlives this one."""

    def __init__(self, settings: WorkerSettings, size: int) -> None:
        """Nothing is started yet."""
        super().__init__(settings, size)
        # A fresh interpreter: forking would copy the locks of this process's threads.
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, tuple[BaseProcess, Connection]] = {}

    def submit(self, worker: int, job: Job) -> None:
        """Send the job down the worker's pipe."""
        with suppress(OSError):  # it died; the closed pipe is found by poll
            self._workers[worker][1].send(job)

    def poll(self, timeout: float) -> list[WorkerEvent]:
        """Read whatever has arrived; a pipe that ends is a worker that died."""
        numbers = {id(connection): number for number, (_, connection) in self._workers.items()}
        ready = wait([connection for _, connection in self._workers.values()], timeout)
        return [self._read(numbers[id(connection)]) for connection in ready]

    def _read(self, worker: int) -> WorkerEvent:
        process, connection = self._workers[worker]
        try:
            key, result = connection.recv()
        except Exception:  # also half a result: whatever it is, this worker cannot go on
            del self._workers[worker]
            connection.close()
            process.kill()
            process.join()
            return WorkerEvent(
                worker, reason=f"worker process ended with exit code {process.exitcode}"
            )
        return WorkerEvent(worker, key, result)

    def replace(self, worker: int) -> None:
        """Start a worker process under this number."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=serve, args=(theirs, self.settings), name=f"rpms-worker-{worker}", daemon=True
        )
        process.start()
        theirs.close()
        self._workers[worker] = (process, ours)

    def close(self) -> None:
        """Ask every worker to stop, and end those that do not."""
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
def _own_loop() -> asyncio.AbstractEventLoop:
    """One loop for all runs in this process: a model's client keeps connections that belong to it.

    Closed with the first run, it would cost the next one its first call.
    """
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop


class InlinePool(Pool):
    """Episodes in this process, for debugging: breakpoints and profilers see everything."""

    def __init__(self, settings: WorkerSettings) -> None:
        """The loop only runs while the pool is polled."""
        super().__init__(settings, 1)
        self._loop = _own_loop()
        self._player = EpisodeWorker(settings)
        self._playing: dict[asyncio.Task[EpisodeResult], JobKey] = {}

    def submit(self, worker: int, job: Job) -> None:
        """Begin the episode at the next poll."""
        self._playing[self._loop.create_task(self._player.play(job))] = job.key

    def poll(self, timeout: float) -> list[WorkerEvent]:
        """Play on until an episode ends or the time is over."""
        if not self._playing:
            return []
        done, _ = self._loop.run_until_complete(
            asyncio.wait(self._playing, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        )
        return [WorkerEvent(0, self._playing.pop(task), task.result()) for task in done]

    def replace(self, worker: int) -> None:
        """This process does not die and go on."""

    def close(self) -> None:
        """Drop what is in flight."""
        self._loop.run_until_complete(drop(self._playing))


READY_S = 180.0
"""How long the cluster may take to start the first worker."""
KNOCK_S = 5.0
LOCAL = "local"


class RayWorker(EpisodeWorker):
    """What an actor runs: the same worker that a worker process has."""

    async def pid(self) -> int:
        """Answers as soon as the worker is up."""
        return os.getpid()


class RayPool(Pool):
    """Actors on a Ray cluster; those that die are replaced under the same number."""

    def __init__(self, plan: RunPlan, size: int, address: str) -> None:
        """Connect to the cluster at ``address``; ``local`` starts one on this machine."""
        super().__init__(WorkerSettings.of(plan), size)
        self._ray = _connect(address, size)
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0)(RayWorker)
        self._actors: dict[int, Any] = {}
        self._pending: dict[Any, tuple[int, JobKey]] = {}

    def start(self) -> Sequence[int]:
        """Start the actors; those the cluster has no room for are left out."""
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
        """Ask the actor; its answer is waited for in ``poll``."""
        self._pending[self._actors[worker].play.remote(job)] = (worker, job.key)

    def poll(self, timeout: float) -> list[WorkerEvent]:
        """Collect answers; an actor that cannot answer any more is reported once."""
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
                with suppress(Exception):  # it may be half alive
                    self._ray.kill(self._actors.pop(worker))
                events.append(WorkerEvent(worker, reason=f"Ray worker died: {_first(error)}"))
        return events

    def replace(self, worker: int) -> None:
        """A new actor under this number."""
        self._actors[worker] = self._actor.remote(self.settings)

    def close(self) -> None:
        """End the actors and leave the cluster."""
        for actor in self._actors.values():
            with suppress(Exception):
                self._ray.kill(actor)
        self._ray.shutdown()


def _connect(address: str, workers: int) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise RpmsError("Ray is not installed: pip install 'rpms[ray]'") from error
    _knock(address)
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
        raise RpmsError(f"cannot reach a Ray cluster at '{address}': {_first(error)}") from error
    return ray


def _knock(address: str) -> None:
    """Ray itself tries for more than a minute before it says that nobody answers."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()) or "/" in host:
        return  # 'auto', 'local' or an address with a scheme
    try:
        socket.create_connection((host, int(port)), timeout=KNOCK_S).close()
    except OSError as error:
        raise RpmsError(f"no Ray cluster answers at '{address}': {error.strerror}") from error


def _first(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
