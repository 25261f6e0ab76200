"""The retry policy of model calls.

One policy holds for every client. LangGraph counts the attempts and increases the pauses. The
``Retry-After`` of a server is added to them, up to a limit. LangGraph has no retry deadline, so the
stage marks an error that must not be retried any more.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from json import JSONDecodeError
from threading import Thread
from typing import Any, TypeVar

from langgraph.runtime import get_runtime
from langgraph.types import RetryPolicy

T = TypeVar("T")
FIRST_TRIES = 4
"""Attempts at a server that has never answered; few, so that a wrong address is reported soon."""
RETRY_DEADLINE_S = 300.0
"""Most servers are back within minutes, or need a person."""
GIVEN_UP = "tried until the retry deadline"
"""The note on an error that must not be retried, whatever its class."""
LONGEST_PAUSE_S = 60.0
"""The longest ``Retry-After`` that is respected."""
TRANSIENT_STATUS = {408, 409, 425, 429}
TRANSIENT_NAMES = {
    "APIConnectionError", "APITimeoutError", "ConnectError", "ConnectTimeout", "ReadTimeout",
    "ReadError", "RemoteProtocolError", "PoolTimeout", "WriteTimeout",
}  # fmt: skip
LASTING_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
"""Codes sent with status 429 for an empty account, where waiting does not help."""


def is_transient(error: Exception) -> bool:
    """Return True if a retry may help: for timeouts, 429, 5xx and broken replies."""
    if GIVEN_UP in getattr(error, "__notes__", ()):
        return False
    if getattr(error, "code", None) in LASTING_CODES:
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in TRANSIENT_STATUS or status >= 500
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, RuntimeError) and str(error) == "Event loop is closed":
        # LangChain's clients of other providers keep their connections between episodes. After a
        # second asyncio.run() they belong to a closed loop; the next attempt opens a new one.
        return True
    kinds = TimeoutError | ConnectionError | JSONDecodeError | UnicodeDecodeError
    return isinstance(error, kinds) or bool(names & TRANSIENT_NAMES)


# With three calls in ten failing, one in two million fails twelve times in a row.
RETRY = RetryPolicy(
    initial_interval=0.25, backoff_factor=2.0, max_interval=30.0, max_attempts=12,
    retry_on=is_transient,
)  # fmt: skip


def pause_before_retry(error: Exception, answered: bool) -> float:
    """Return the seconds that the server asks to wait; mark the error if no retry follows.

    ``answered`` is true if this server has answered before.
    """
    info = get_runtime().execution_info
    if info is None or not is_transient(error):
        return 0.0
    remaining = RETRY_DEADLINE_S - (time.time() - (info.node_first_attempt_time or 0.0))
    if not should_retry(info.node_attempt, remaining, answered):
        error.add_note(GIVEN_UP)
        return 0.0
    return requested_pause(error)


def should_retry(tries: int, remaining_s: float, answered: bool) -> bool:
    return tries < FIRST_TRIES or (answered and remaining_s > 0 and tries < RETRY.max_attempts)


def wait_for(seconds: float, call: Callable[..., T], **arguments: Any) -> T:
    """Call a model with a time limit, without an event loop."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call(**arguments))
        except BaseException as error:
            future.set_exception(error)

    # A daemon thread, so that a server that never answers does not keep the program running.
    Thread(target=copy_context().run, args=(work,), daemon=True).start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():  # the client itself timed out
            raise
        raise TimeoutError(f"no reply in {seconds:g} s") from None


async def within(seconds: float, call: Awaitable[T]) -> T:
    """Await a model's reply with a time limit."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        raise TimeoutError(f"no reply in {seconds:g} s") from None


async def retried(call: Callable[[], Awaitable[T]], call_s: float) -> T:
    """Make a call outside the graph under the same policy."""
    began, tries = time.monotonic(), 0
    while True:
        tries += 1
        try:
            return await within(call_s, call())
        except Exception as error:  # every client raises its own kinds
            remaining = RETRY_DEADLINE_S - (time.monotonic() - began)
            if not is_transient(error) or not should_retry(tries, remaining, answered=True):
                raise
            await asyncio.sleep(max(requested_pause(error), backoff(tries)))


def backoff(tries: int) -> float:
    """Return the pause after this many attempts, as LangGraph computes it."""
    longer = RETRY.initial_interval * RETRY.backoff_factor ** (tries - 1)
    return min(longer, RETRY.max_interval) + RETRY.jitter * random.uniform(0, 1)


def requested_pause(error: Exception) -> float:
    """Return the seconds of the server's ``Retry-After``; 0 if it sends none."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    try:
        seconds = float(headers["retry-after"])
    except (TypeError, KeyError, ValueError):
        return 0.0
    return min(seconds, LONGEST_PAUSE_S) if seconds > 0 else 0.0
