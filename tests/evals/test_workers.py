"""Workers under load and in trouble: dying processes, strange replies."""

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

from rpms.evals import workers
from rpms.evals.conditions import letters
from rpms.evals.plan import RunPlan, make_plan
from rpms.evals.progress import RunProgress
from rpms.evals.run_folder import EPISODES, step_log_file
from rpms.evals.runner import Run, local_pool
from rpms.evals.workers import drop
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
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


EPISODES_WANTED = 60
STEPS = 4
FAULTS_OF_TEN = 3
TIMEOUT_S = 6.0
FAULTS = {
    "429": Answer(status=429, headers={"Retry-After": "0.3"}),
    "500": Answer(status=500),
    "timeout": Answer(wait=True),
    "half JSON": Answer(raw=b'{"id": "x", "object": "chat.completion", "choices": [{"mess'),
    "reset": Answer(reset=True),
    "empty": Answer(""),
    "very long": Answer("and then the agent said " * 2000 + "nothing", usage=(100, 10_000)),
    "wrong format": Answer('{"tool": "walk", "where": "anywhere"}'),
    "refusal": Answer("I'm sorry, but I can't help with that."),
}
TRANSIENT = {"429", "500", "timeout", "half JSON", "reset"}


class Trouble:
    """Which fault a call meets is settled by what is asked and how often it was asked before.

    The order in which parallel episodes ask does not matter, so that every run meets the same.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.met: Counter[str] = Counter()
        self.served = 0

    def __call__(self, request: dict[str, Any]) -> Answer:
        name = hashlib.sha256(json.dumps(request["messages"]).encode()).hexdigest()
        with self._lock:
            self._asked[name] += 1
            draw = random.Random(f"{self._seed} {name} {self._asked[name]}")
            self.served += 1
            if draw.randrange(10) >= FAULTS_OF_TEN:
                return Answer("Thought: On we go.\nAction: look")
            fault = draw.choice(sorted(FAULTS))
            self.met[fault] += 1
            return FAULTS[fault]


def plan(server: OpenAIServer, limit: int, conditions: str = "ABCD", **settings: Any) -> RunPlan:
    base = RunContext(
        model="openai:moody", base_url=server.url, max_steps=STEPS,
        **{"timeout_s": TIMEOUT_S, **settings},
    )  # fmt: skip
    return make_plan("alfworld", "generated_unseen", letters(list(conditions), base), limit)


def play(what: RunPlan, folder: Path, workers: int) -> RunProgress:
    run = Run(what, folder)
    try:
        run.play(local_pool(what, workers), 60, lambda progress: None)
    finally:
        run.close()
    return run.progress


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (folder / EPISODES).read_text().splitlines()]


@pytest.mark.engine
def test_sixty_episodes_survive_a_server_that_fails_three_calls_in_ten(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    trouble = Trouble(seed=7)
    openai_server.plays_by(trouble)
    what = plan(openai_server, EPISODES_WANTED // 4)
    progress = play(what, tmp_path, workers=1)
    found = lines(tmp_path)
    print(f"{trouble.served} calls, of which {dict(trouble.met)}")
    assert progress.done == len(found) == EPISODES_WANTED
    assert len({(line["condition"], line["task"]) for line in found}) == EPISODES_WANTED
    assert set(trouble.met) == set(FAULTS), "some fault was never met"
    assert 0.2 < trouble.met.total() / trouble.served < 0.4
    # The server is outlasted: every episode is played to the end of its steps.
    assert {line["steps"] for line in found} == {STEPS}
    assert {line["failure_mode"] for line in found} <= {"timeout", "format"}
    # Every reply became a turn, every transient fault another request: none is lost or doubled.
    replies = sum(line["model_calls"] for line in found)
    transient = sum(trouble.met[name] for name in TRANSIENT)
    assert replies == sum(line["steps"] for line in found)
    # A busy machine may let a good reply come too late, which looks like a timeout.
    late = trouble.served - replies - transient
    assert 0 <= late <= trouble.served // 5
    unread = trouble.met.total() - transient
    assert unread - late <= sum(line["format_errors"] for line in found) <= unread
    assert sum(line["output_tokens"] for line in found) > (trouble.met["very long"] - late) * 10_000
    for line in found:
        packed = step_log_file(tmp_path, line["condition"], line["task"]).read_bytes()
        assert json.loads(gzip.decompress(packed))["steps"]


LASTING = {
    "bad request": Answer(status=400, error="no such parameter (request req_NUMBER)"),
    "wrong key": Answer(status=401, error="wrong key (request req_NUMBER)"),
    "too long": Answer(
        status=400,
        error="This model's maximum context length is 2048 tokens, you sent NUMBER tokens.",
    ),
    "account empty": Answer(
        status=429, raw=b'{"error": {"message": "quota", "code": "insufficient_quota"}}'
    ),
}


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
    run = Run(plan(openai_server, 8, "A"), tmp_path)
    with pytest.raises(RpmsError, match=r"3 episodes in a row ended with the same model error"):
        run.play(local_pool(run.plan, 0), 2, lambda progress: None)
    run.close()
    found = lines(tmp_path)
    assert len(found) == 3
    assert len(openai_server.requests) <= 5, "a lasting error is not asked for again"
    for line in found:
        assert (line["failure_mode"], line["steps"]) == ("model_error", 0)
        assert str(answer.status) in line["error"]
        assert (answer.error.split("NUMBER")[0] in line["error"]) or "quota" in line["error"]


@pytest.mark.engine
def test_an_account_that_runs_empty_in_the_middle_stops_the_run_too(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(*[Answer()] * (4 * STEPS), LASTING["account empty"])
    run = Run(plan(openai_server, 24, "A"), tmp_path)
    with pytest.raises(RpmsError, match=r"3 episodes in a row ended with the same model error"):
        run.play(local_pool(run.plan, 0), 1, lambda progress: None)
    run.close()
    assert Counter(line["failure_mode"] for line in lines(tmp_path)) == {
        "timeout": 4, "model_error": 3
    }  # fmt: skip
