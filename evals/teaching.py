"""Expert play on many processors, in an order that does not depend on how many there are."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
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
    pool = ProcessPoolExecutor(workers, mp_context=fresh, initializer=_leave_ctrl_c)
    left = iter(assignments)
    waiting: deque[Future[Lesson]] = deque()
    try:
        for one in islice(left, workers * AHEAD):
            waiting.append(pool.submit(play, one))
        while waiting:
            lesson = waiting.popleft().result()
            for one in islice(left, 1):
                waiting.append(pool.submit(play, one))
            yield lesson
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_ctrl_c() -> None:
    """Ctrl-C is for the process that writes; it ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
