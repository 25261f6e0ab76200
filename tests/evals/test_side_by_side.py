"""Episodes that wait for their model do not wait for each other."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from rpms.evals.running.plan import make_plan
from rpms.evals.running.plan_file import condition_contexts
from rpms.evals.running.runner import RunSession, local_pool
from rpms.vocabulary.context import RunContext
from tests.openai_server import Answer, OpenAIServer


@pytest.mark.engine
def test_many_episodes_wait_for_their_model_side_by_side(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """No reply comes before all six have asked, so that one by one they would wait forever."""
    everyone = threading.Barrier(6)

    def reply(request: dict[str, Any]) -> Answer:
        everyone.wait()
        return Answer()

    openai_server.plays_by(reply)
    context = RunContext(model="openai:m", base_url=openai_server.url, max_steps=2, timeout_s=500)
    plan = make_plan("alfworld", "generated_unseen", condition_contexts(["D"], context), 6)
    run = RunSession(plan, tmp_path)
    run.play(local_pool(plan, 2), 3, 6, lambda progress: None)
    run.close()
    assert len(openai_server.requests) == 12
    assert run.progress.done == 6
