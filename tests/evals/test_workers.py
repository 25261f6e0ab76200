"""Workers under load and in trouble: what they leave behind, strange replies, failing servers."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.analysis.step_analysis import analyses
from rpms.evals.records.run_folder import read_run, step_log_file
from rpms.evals.running import workers
from rpms.evals.running.plan import RunPlan
from rpms.evals.running.workers import drop
from rpms.models.retrying import FIRST_TRIES
from rpms.vocabulary.errors import RpmsError
from tests.evals.sample_runs import lines_of, play_short, short_plan
from tests.openai_server import Answer, OpenAIServer


async def test_what_a_dropped_episode_leaves_behind_is_waited_for() -> None:
    ended: list[str] = []

    async def farewell() -> None:
        await asyncio.sleep(0.05)
        ended.append("traced")

    async def episode() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            # As tracing does it: shielded, so that a cancelled run is still reported.
            await asyncio.shield(asyncio.create_task(farewell()))
            raise

    playing = [asyncio.create_task(episode()) for _ in range(3)]
    await asyncio.sleep(0)
    await drop(playing)
    assert ended == ["traced"] * 3
    assert all(task.cancelled() for task in playing)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_does_not_end_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "DROP_S", 0.1)
    enough = asyncio.Event()

    async def stubborn() -> None:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await drop([task])
    assert not task.done()
    enough.set()
    await task


STEPS = 4
TIMEOUT_S = 6.0
TRANSIENT = {
    "429": Answer(status=429, headers={"Retry-After": "0.01"}),
    "500": Answer(status=500),
    "half JSON": Answer(raw=b'{"id": "x", "object": "chat.completion", "choices": [{"mess'),
    "reset": Answer(reset=True),
}
UNREAD = {
    "empty": Answer(""),
    "very long": Answer("and then the agent said " * 2000 + "nothing", usage=(100, 10_000)),
    "wrong format": Answer('{"tool": "walk", "where": "anywhere"}'),
    "refusal": Answer("I'm sorry, but I can't help with that."),
}
FAULTS = {**TRANSIENT, **UNREAD, "timeout": Answer(wait=True)}


class Trouble:
    """A server that fails a share of its calls, which ones by a seed and how often it was asked.

    The order in which parallel episodes ask does not matter, so that every run meets the same.
    """

    def __init__(
        self, share: float, faults: dict[str, Answer], again: bool = True, spared: int = 0
    ) -> None:
        """``again``: asked again, the same question has another chance; ``spared``: first calls."""
        self._share, self._faults, self._again, self._spared = share, faults, again, spared
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.met: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any]) -> Answer:
        name = hashlib.sha256(json.dumps(request["messages"]).encode()).hexdigest()
        with self._lock:
            draw = random.Random(f"17 {name} {self.calls[name] if self._again else 0}")
            self.calls[name] += 1
            if draw.random() >= self._share or self.calls.total() <= self._spared:
                return Answer("Thought: On we go.\nAction: look")
            # The one met least so far: every kind is met, whatever the prompts are.
            fault = min(sorted(self._faults), key=lambda kind: self.met[kind])
            self.failed[name] += 1
            self.met[fault] += 1
            return self._faults[fault]


def plan(server: OpenAIServer, limit: int, conditions: str = "A", **settings: Any) -> RunPlan:
    usual = {"model": "openai:moody", "base_url": server.url, "max_steps": STEPS}
    return short_plan(conditions, limit, **{**usual, "timeout_s": TIMEOUT_S, **settings})


@pytest.mark.engine
def test_episodes_survive_a_server_that_fails_three_calls_in_ten(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    trouble = Trouble(0.3, FAULTS)
    openai_server.plays_by(trouble)
    run = play_short(plan(openai_server, 5, "ABD"), tmp_path, capacity=15)
    lines = lines_of(tmp_path)
    assert run.progress.done == len(lines) == 15
    assert len({(line["condition"], line["task"]) for line in lines}) == 15
    assert set(trouble.met) == set(FAULTS), "some fault was never met"
    # The server is outlasted: every episode is played to the end of its steps.
    assert {line["steps"] for line in lines} == {STEPS}
    assert {line["failure_mode"] for line in lines} <= {"timeout", "format"}
    # Every reply became a turn, every transient fault another request: none is lost or doubled.
    replies, served = sum(line["model_calls"] for line in lines), trouble.calls.total()
    unread = sum(trouble.met[name] for name in UNREAD)
    assert replies == sum(line["steps"] for line in lines)
    # A busy machine may let a good reply come too late, which looks like a timeout.
    late = served - replies - (trouble.met.total() - unread)
    assert 0 <= late <= served // 5
    finished = read_run(tmp_path)
    counts = analyses(finished, finished.episodes.values()).values()
    assert unread - late <= sum(each.format_errors for each in counts) <= unread
    assert sum(line["output_tokens"] for line in lines) > (trouble.met["very long"] - late) * 10_000
    for line in lines:
        packed = step_log_file(tmp_path, line["condition"], line["task"]).read_bytes()
        assert json.loads(gzip.decompress(packed))["steps"]


@pytest.mark.engine
def test_long_episodes_outlast_more_failures_than_the_first_tries(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    # A server that never answered is given up soon: it does, once for each episode.
    trouble = Trouble(0.4, TRANSIENT, spared=10)
    openai_server.plays_by(trouble)
    play_short(plan(openai_server, 10, max_steps=7), tmp_path, capacity=10)
    endings = {(line["failure_mode"], line["steps"]) for line in lines_of(tmp_path)}
    assert endings == {("timeout", 7)}
    # The question is only worth asking where four tries would not have been enough.
    assert max(trouble.failed.values()) >= FIRST_TRIES


@pytest.mark.engine
def test_a_few_refused_prompts_never_stop_a_run(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """A content filter refuses some prompts for good; the others are answered all the while."""
    refused = Answer(status=400, error="The response was filtered (request 1234)")
    trouble = Trouble(0.08, {"filter": refused}, again=False)
    openai_server.plays_by(trouble)
    play_short(plan(openai_server, 12, max_steps=12), tmp_path, capacity=6)
    endings = Counter(line["failure_mode"] for line in lines_of(tmp_path))
    assert endings.total() == 12
    assert endings["model_error"] >= 3 and endings["timeout"] >= 3, "else nothing was tried"
    assert trouble.failed.total() == endings["model_error"], "what is refused is not asked again"


LASTING = {
    "wrong key": Answer(status=401, error="wrong key (request req_NUMBER)"),
    "too long": Answer(
        status=400,
        error="This model's maximum context length is 2048 tokens, you sent NUMBER tokens.",
    ),
    "account empty": Answer(
        status=429, raw=b'{"error": {"message": "quota", "code": "insufficient_quota"}}'
    ),
}


SAME = r"3 episodes in a row ended with the same model error"


@pytest.mark.engine
@pytest.mark.parametrize("name", LASTING)
def test_what_fails_every_call_alike_stops_the_run_early(
    name: str, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Also where a server puts another number into each of its messages."""
    numbers = iter(range(1000, 9000))
    answer = LASTING[name]
    openai_server.plays_by(
        lambda request: answer._replace(error=answer.error.replace("NUMBER", str(next(numbers))))
    )
    with pytest.raises(RpmsError, match=SAME):
        play_short(plan(openai_server, 8), tmp_path, capacity=2)
    lines = lines_of(tmp_path)
    assert len(lines) == 3
    assert len(openai_server.requests) <= 5, "a lasting error is not asked for again"
    for line in lines:
        assert (line["failure_mode"], line["steps"]) == ("model_error", 0)
        assert str(answer.status) in line["error"]
        assert (answer.error.split("NUMBER")[0] in line["error"]) or "quota" in line["error"]
