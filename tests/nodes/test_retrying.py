from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import openai
import pytest
from langgraph.runtime import ExecutionInfo, Runtime

from rpms.models.openai_chat import GarbledReply
from rpms.nodes.retrying import (
    LONGEST_PAUSE_S,
    RETRY,
    asked_pause,
    backoff,
    is_transient,
    pause_before_retry,
)
from rpms.vocabulary.context import RunContext


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
    with pytest.raises(UnicodeDecodeError) as undecoded:
        b"\xff\xfe".decode()
    assert is_transient(undecoded.value)
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


def at(tries: int, seconds_ago: float = 0.0, **settings: Any) -> Runtime[RunContext]:
    info = ExecutionInfo(
        checkpoint_id="", checkpoint_ns="", task_id="", node_attempt=tries,
        node_first_attempt_time=time.time() - seconds_ago,
    )  # fmt: skip
    return Runtime(context=RunContext(**settings), execution_info=info)


def test_the_last_try_is_not_waited_after() -> None:
    told = limited(retry_after="2")
    pauses = [pause_before_retry(at(tries), told, answered=True) for tries in (1, 3, 4, 11)]
    assert pauses == [2.0] * 4 and is_transient(told)
    assert pause_before_retry(at(RETRY.max_attempts), told, answered=True) == 0
    assert not is_transient(told), "the error is marked, so that LangGraph does not go on either"
    assert pause_before_retry(at(1), ValueError("bug"), answered=True) == 0
    empty = limited({"code": "insufficient_quota"}, retry_after="2")
    assert pause_before_retry(at(1), empty, answered=True) == 0


@pytest.mark.parametrize(
    ("tries", "seconds_ago", "answered", "again"),
    [
        (3, 0, False, True), (4, 0, False, False),  # a wrong address is soon told
        (4, 0, True, True), (11, 9, True, True), (11, 11, True, False), (12, 0, True, False),
        (3, 11, True, True),  # slow calls get their four tries too
    ],
)  # fmt: skip
def test_patience_is_a_setting(tries: int, seconds_ago: int, answered: bool, again: bool) -> None:
    error = limited()
    pause_before_retry(at(tries, seconds_ago, patience_s=10.0), error, answered)
    assert is_transient(error) is again


def test_pauses_grow_up_to_a_limit() -> None:
    pauses = [backoff(tries) for tries in range(1, 13)]
    least = [min(0.25 * 2**n, RETRY.max_interval) for n in range(12)]
    assert all(low <= pause <= low + 1 for low, pause in zip(least, pauses, strict=True))
    assert len({backoff(1) for _ in range(5)}) > 1, "callers that failed together come back apart"
