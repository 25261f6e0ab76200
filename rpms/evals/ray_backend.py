"""The same episodes on a Ray cluster: actors instead of worker processes, the same files.

The driver keeps every file and every decision; an actor only plays. One that is killed (by a
node that goes away, by the memory monitor) is replaced, and its episodes are played again.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from rpms.evals.plan import Job, RunPlan
from rpms.evals.records import JobKey
from rpms.evals.workers import Event, Player, Pool, WorkerSettings
from rpms.vocabulary.errors import RpmsError

READY_S = 180.0
"""How long the cluster may take to start the first worker."""
KNOCK_S = 5.0
LOCAL = "local"


class RayWorker(Player):
    """What an actor runs: the same player that a worker process has."""

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

    def poll(self, timeout: float) -> list[Event]:
        """Collect answers; an actor that cannot answer any more is reported once."""
        if not self._pending:
            return []
        ready, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        events = []
        for ref in ready:
            worker, key = self._pending.pop(ref)
            try:
                events.append(Event(worker, key, self._ray.get(ref)))
            except self._ray.exceptions.RayError as error:
                self._forget(worker)
                events.append(Event(worker, reason=f"Ray worker died: {_first(error)}"))
        return events

    def _forget(self, worker: int) -> None:
        self._pending = {ref: at for ref, at in self._pending.items() if at[0] != worker}
        with suppress(Exception):  # it may be half alive
            self._ray.kill(self._actors.pop(worker))

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
