"""Where episodes are played: worker processes on this machine, or this very process.

A pool only carries jobs to workers and events back. Which job goes where, what happens after a
worker died, and every file is the dispatcher's business, so that all pools behave alike.
"""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple, Protocol

from rpms.evals.episode import EpisodeResult
from rpms.evals.plan import Job
from rpms.evals.run_layout import JobKey
from rpms.evals.worker import Player, WorkerSettings, drop, serve

STOP_S = 5.0


class Event(NamedTuple):
    """What a worker has to tell: a finished episode, or (with no result) its own death."""

    worker: int
    key: JobKey | None = None
    result: EpisodeResult | None = None
    reason: str = ""


class Pool(Protocol):
    """Workers that can play several episodes each."""

    @property
    def size(self) -> int:
        """How many workers there are."""

    def start(self) -> Sequence[int]:
        """Start all workers; their numbers."""

    def submit(self, worker: int, job: Job) -> None:
        """Hand a job to a worker; a dead worker is reported by ``poll``, not here."""

    def poll(self, timeout: float) -> list[Event]:
        """Wait for events, at most this many seconds."""

    def replace(self, worker: int) -> None:
        """Start a new worker in place of one that died."""

    def close(self) -> None:
        """End every worker now, with whatever it is doing."""


class ProcessPool:
    """Worker processes on this machine; none outlives this one."""

    def __init__(self, settings: WorkerSettings, workers: int) -> None:
        """Remember what to start."""
        self._settings = settings
        self._count = workers
        # A fresh interpreter: forking would copy the locks of this process's threads.
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, tuple[BaseProcess, Connection]] = {}

    def start(self) -> Sequence[int]:
        """Start all worker processes."""
        for number in range(self._count):
            self.replace(number)
        return range(self._count)

    def submit(self, worker: int, job: Job) -> None:
        """Send the job down the worker's pipe."""
        with suppress(OSError):  # it died; the closed pipe is found by poll
            self._workers[worker][1].send(job)

    def poll(self, timeout: float) -> list[Event]:
        """Read whatever has arrived; a pipe that ends is a worker that died."""
        numbers = {id(connection): number for number, (_, connection) in self._workers.items()}
        ready = wait([connection for _, connection in self._workers.values()], timeout)
        return [self._read(numbers[id(connection)]) for connection in ready]

    def _read(self, worker: int) -> Event:
        process, connection = self._workers[worker]
        try:
            key, result = connection.recv()
        except Exception:  # also half a result: whatever it is, this worker cannot go on
            del self._workers[worker]
            connection.close()
            process.kill()
            process.join()
            return Event(worker, reason=f"worker process ended with exit code {process.exitcode}")
        return Event(worker, key, result)

    def replace(self, worker: int) -> None:
        """Start a worker process under this number."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=serve, args=(theirs, self._settings), name=f"rpms-worker-{worker}", daemon=True
        )
        process.start()
        theirs.close()
        self._workers[worker] = (process, ours)

    @property
    def size(self) -> int:
        """How many processes were asked for."""
        return self._count

    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [process.pid for process, _ in self._workers.values() if process.pid]

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


class InlinePool:
    """Episodes in this process, for debugging: breakpoints and profilers see everything."""

    size = 1

    def __init__(self, settings: WorkerSettings) -> None:
        """The loop only runs while the pool is polled."""
        self._loop = _own_loop()
        self._player = Player(settings)
        self._playing: dict[asyncio.Task[EpisodeResult], JobKey] = {}

    def start(self) -> Sequence[int]:
        """There is one worker: this process."""
        return [0]

    def submit(self, worker: int, job: Job) -> None:
        """Begin the episode at the next poll."""
        self._playing[self._loop.create_task(self._player.play(job))] = job.key

    def poll(self, timeout: float) -> list[Event]:
        """Play on until an episode ends or the time is over."""
        if not self._playing:
            return []
        done, _ = self._loop.run_until_complete(
            asyncio.wait(self._playing, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        )
        return [Event(0, self._playing.pop(task), task.result()) for task in done]

    def replace(self, worker: int) -> None:
        """This process does not die and go on."""

    def close(self) -> None:
        """Drop what is in flight."""
        self._loop.run_until_complete(drop(self._playing))
