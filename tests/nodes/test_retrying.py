from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import openai
import pytest
from langgraph.runtime import ExecutionInfo, Runtime

from rpms.models.openai_chat import GarbledReply
from rpms.nodes.context import RunContext
from rpms.nodes.retrying import (
    LONGEST_PAUSE_S,
    RETRY,
    asked_pause,
    is_transient,
    pause_before_retry,
)


def limited(body: Any = None, **headers: str) -> openai.RateLimitError:
    request = httpx.Request("POST", "http://x")
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(429, request=request, headers=names)
    return openai.RateLimitError("slow down", response=response, body=body)


def test_torn_and_garbled_replies_are_worth_another_attempt() -> None:
    assert is_transient(GarbledReply("no choices"))
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads('{"choices": [')
    assert is_transient(caught.value)
    assert not is_transient(ValueError("bug"))


def test_an_empty_account_is_not() -> None:
    assert is_transient(limited({"code": "rate_limit_exceeded"}))
    assert not is_transient(limited({"code": "insufficient_quota"}))


@pytest.mark.parametrize(
    ("told", "pause"),
    [("2", 2.0), ("0.5", 0.5), ("86400", LONGEST_PAUSE_S), ("-3", 0.0), ("soon", 0.0), ("", 0.0),
     ("nan", 0.0)],
)  # fmt: skip
def test_the_pause_a_server_asks_for(told: str, pause: float) -> None:
    assert asked_pause(limited(retry_after=told)) == pause


def test_the_pause_may_be_a_date() -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    assert 15 < asked_pause(limited(retry_after=then)) <= 20
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    assert asked_pause(limited(retry_after=past)) == 0


def test_no_advice_is_no_pause() -> None:
    assert asked_pause(limited()) == asked_pause(TimeoutError()) == 0


def test_the_last_attempt_is_not_waited_after() -> None:
    def at(attempt: int) -> Runtime[RunContext]:
        info = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", node_attempt=attempt)
        return Runtime(context=RunContext(), execution_info=info)

    told = limited(retry_after="2")
    assert [pause_before_retry(at(attempt), told) for attempt in (1, 3)] == [2.0, 2.0]
    assert pause_before_retry(at(RETRY.max_attempts), told) == 0
    assert pause_before_retry(at(1), ValueError("bug")) == 0
    empty = limited({"code": "insufficient_quota"}, retry_after="2")
    assert pause_before_retry(at(1), empty) == 0
