"""Whole runs against servers that fail some calls: how many does not decide who finishes."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rpms.graph.build
from rpms.evals.conditions import letters
from rpms.evals.plan import RunPlan, make_plan
from rpms.evals.run_folder import EPISODES
from rpms.evals.runner import Run, local_pool
from rpms.nodes.retrying import FIRST_TRIES, RETRY
from rpms.vocabulary.context import RunContext
from tests.openai_server import Answer, OpenAIServer

pytestmark = pytest.mark.engine
WANTED = 40
STEPS = 25


class Failing:
    """A server that fails a share of its calls, which ones by a seed and how often it was asked.

    The order in which parallel episodes ask does not matter.
    """

    def __init__(self, share: float, *faults: Answer, again: bool = True) -> None:
        """``again``: asked again, the same question has another chance."""
        self._share, self._faults, self._again = share, faults, again
        self._lock = threading.Lock()
        self.asked: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any]) -> Answer:
        name = hashlib.sha256(json.dumps(request["messages"]).encode()).hexdigest()
        with self._lock:
            draw = random.Random(f"17 {name} {self.asked[name] if self._again else 0}")
            self.asked[name] += 1
            if draw.random() >= self._share:
                return Answer("Action: look")
            self.failed[name] += 1
            return draw.choice(self._faults)


def plan(server: OpenAIServer, **settings: Any) -> RunPlan:
    base = RunContext(model="openai:failing", base_url=server.url, max_steps=STEPS, **settings)
    return make_plan("alfworld", "generated_unseen", letters(["A"], base), WANTED)


def play(what: RunPlan, folder: Path) -> list[dict[str, Any]]:
    run = Run(what, folder)
    try:
        run.play(local_pool(what, 0, run.meter), 16, lambda progress: None, metered=True)
    finally:
        run.close()
    return [json.loads(text) for text in (folder / EPISODES).read_text().splitlines()]


def test_three_calls_in_ten_may_fail_and_every_long_episode_is_finished(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = RETRY._replace(initial_interval=0.01, max_interval=0.02, jitter=False)
    monkeypatch.setattr(rpms.graph.build, "RETRY", quick)
    busy = Answer(status=429, headers={"Retry-After": "0.01"})
    broken = (Answer(status=500), Answer(status=503), Answer(reset=True), Answer(raw=b"\xff\xfe"))
    server = Failing(0.3, busy, *broken)
    openai_server.plays_by(server)
    found = play(plan(openai_server), tmp_path)
    assert len(found) == WANTED
    assert {(line["failure_mode"], line["steps"]) for line in found} == {("timeout", STEPS)}
    # The question is only worth asking where four tries would not have been enough.
    assert max(server.failed.values()) >= FIRST_TRIES
    share = server.failed.total() / server.asked.total()
    assert 0.25 < share < 0.35


def test_a_few_refused_prompts_never_stop_a_run(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """A content filter refuses some prompts for good; the others are answered all the while."""
    refused = Answer(status=400, error="The response was filtered (request 1234)")
    server = Failing(0.05, refused, again=False)
    openai_server.plays_by(server)
    found = play(plan(openai_server), tmp_path)
    endings = Counter(line["failure_mode"] for line in found)
    assert len(found) == WANTED == endings.total()
    assert endings["model_error"] >= 3 and endings["timeout"] >= 3, "else nothing was tried"
    assert server.failed.total() == endings["model_error"], "what is refused is not asked again"
