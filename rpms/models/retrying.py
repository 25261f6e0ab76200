"""When a failed model call is made again, and how long to wait before it.

One policy for every client: LangGraph counts the tries and makes the pauses longer; what a server
says about the pause (``Retry-After``) is waited for on top of that, within reason. LangGraph knows
no deadline, so the stage itself says when that is over.
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
"""What every call gets, also at a server that has never answered: a wrong address is soon told."""
RETRY_DEADLINE_S = 300.0
"""Most servers are back within minutes, or not before a person looks."""
GIVEN_UP = "tried until the retry deadline"
"""A note on an error that is not to be tried again, whatever its kind."""
LONGEST_PAUSE_S = 60.0
"""A server that asks for more than this is asked again after this long, and told from its reply."""
TRANSIENT_STATUS = {408, 409, 425, 429}
TRANSIENT_NAMES = {
    "APIConnectionError", "APITimeoutError", "ConnectError", "ConnectTimeout", "ReadTimeout",
    "ReadError", "RemoteProtocolError", "PoolTimeout", "WriteTimeout",
}  # fmt: skip
LASTING_CODES = {"insufficient_quota", "billing_hard_limit_reached"}
"""Sent with status 429, but no waiting helps: the account is empty."""


def is_transient(error: Exception) -> bool:
    """Whether trying again may help: timeouts, 429, 5xx and torn replies, never 400 or 401."""
    if GIVEN_UP in getattr(error, "__notes__", ()):
        return False
    if getattr(error, "code", None) in LASTING_CODES:
        return False
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in TRANSIENT_STATUS or status >= 500
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, RuntimeError) and str(error) == "Event loop is closed":
        # A client keeps its connections between episodes; after a second asyncio.run() the old
        # ones belong to a loop that is gone, and the next attempt opens a new one.
        return True
    kinds = TimeoutError | ConnectionError | JSONDecodeError | UnicodeDecodeError
    return isinstance(error, kinds) or bool(names & TRANSIENT_NAMES)


# With three calls in ten failing, one in two million fails twelve times in a row.
RETRY = RetryPolicy(
    initial_interval=0.25, backoff_factor=2.0, max_interval=30.0, max_attempts=12,
    retry_on=is_transient,
)  # fmt: skip


def pause_before_retry(error: Exception, answered: bool) -> float:
    """Seconds the server asks to wait, if another try follows; else the error is marked.

    ``answered`` says whether this server ever did.
    """
    info = get_runtime().execution_info
    if info is None or not is_transient(error):
        return 0.0
    remaining = RETRY_DEADLINE_S - (time.time() - (info.node_first_attempt_time or 0.0))
    if not should_retry(info.node_attempt, remaining, answered):
        error.add_note(GIVEN_UP)
        return 0.0
    return asked_pause(error)


def should_retry(tries: int, remaining_s: float, answered: bool) -> bool:
    """Whether a call that failed this often, with so much time left, is made again."""
    return tries < FIRST_TRIES or (answered and remaining_s > 0 and tries < RETRY.max_attempts)


def wait_for(seconds: float, call: Callable[..., T], **arguments: Any) -> T:
    """The reply of a model, if it comes in time; for a run without an event loop."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call(**arguments))
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a server that never answers keeps no program from ending.
    Thread(target=copy_context().run, args=(work,), daemon=True).start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():  # the client's own
            raise
        raise TimeoutError(f"no reply in {seconds:g} s") from None


async def within(seconds: float, call: Awaitable[T]) -> T:
    """The reply of a model, if it comes in time."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        raise TimeoutError(f"no reply in {seconds:g} s") from None


async def retried(call: Callable[[], Awaitable[T]], call_s: float) -> T:
    """A call outside of the graph under the same policy, of a server that has answered before."""
    began, tries = time.monotonic(), 0
    while True:
        tries += 1
        try:
            return await within(call_s, call())
        except Exception as error:  # every client raises its own kinds
            remaining = RETRY_DEADLINE_S - (time.monotonic() - began)
            if not is_transient(error) or not should_retry(tries, remaining, answered=True):
                raise
            await asyncio.sleep(max(asked_pause(error), backoff(tries)))


def backoff(tries: int) -> float:
    """The pause after so many tries as LangGraph makes it."""
    longer = RETRY.initial_interval * RETRY.backoff_factor ** (tries - 1)
    return min(longer, RETRY.max_interval) + RETRY.jitter * random.uniform(0, 1)


def asked_pause(error: Exception) -> float:
    """Seconds the server asks to wait before the next attempt; 0 where it says nothing of use."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    try:
        seconds = float(headers["retry-after"])
    except (TypeError, KeyError, ValueError):
        return 0.0
    return min(seconds, LONGEST_PAUSE_S) if seconds > 0 else 0.0
