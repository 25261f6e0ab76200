"""Expert play on many processors, in an order that does not depend on how many there are."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice

from rpms.evals.distilling import Assignment, Lesson, play

AHEAD = 4
"""Lessons that each process may be ahead of the one that is written: memory stays bounded."""


def taught(assignments: Iterable[Assignment], workers: int) -> Iterator[Lesson]:
    """The lessons in the order of their assignments; without workers they are played here."""
    if workers < 1:
        yield from map(play, assignments)
        return
    # A fresh interpreter: forking would copy the locks of this process's threads.
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=fresh, initializer=_end_with_parent)
    left = iter(assignments)
    waiting: deque[Future[Lesson]] = deque()

    def submit(count: int) -> None:
        with _deaf_children():
            waiting.extend(pool.submit(play, one) for one in islice(left, count))

    try:
        submit(workers * AHEAD)
        while waiting:
            lesson = waiting.popleft().result()
            submit(1)
            yield lesson
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Ctrl-C is for the process that writes, which ends the others; here it comes a little later.

    A process that is started inherits which signals are held back.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """Nobody plays on for a writer that is gone, not even one who had not begun by then.

    What is waited for is a pipe that only the parent holds open. A signal at its death would not
    come to a process that asks for it too late.
    """
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()
