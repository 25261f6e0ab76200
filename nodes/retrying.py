"""When a failed model call is made again, and how long to wait before it.

One policy for every client: LangGraph counts the attempts and backs off; what a server says
about the pause (``Retry-After``) is waited for on top of that, within reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy

from rpms.nodes.context import RunContext

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
    kinds = TimeoutError | ConnectionError | JSONDecodeError
    return isinstance(error, kinds) or bool(names & TRANSIENT_NAMES)


RETRY = RetryPolicy(
    initial_interval=0.5, backoff_factor=2.0, max_interval=30.0, max_attempts=4,
    retry_on=is_transient,
)  # fmt: skip


def pause_before_retry(runtime: Runtime[RunContext], error: Exception) -> float:
    """Seconds the server asks to wait, if the policy makes another attempt after this error."""
    info = runtime.execution_info
    again = is_transient(error) and (info is None or info.node_attempt < RETRY.max_attempts)
    return asked_pause(error) if again else 0.0


def asked_pause(error: Exception) -> float:
    """Seconds the server asks to wait before the next attempt; 0 where it says nothing."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return 0.0
    return min(max(0.0, _seconds(str(headers.get("retry-after") or ""))), LONGEST_PAUSE_S)


def _seconds(told: str) -> float:
    """``Retry-After`` holds seconds or a date; anything else is no advice."""
    try:
        return float(told)
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(told)
    except ValueError:
        return 0.0
    return (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
