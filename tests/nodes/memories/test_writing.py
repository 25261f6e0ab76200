"""Asking the run's model for texts: what it costs, and what happens when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms import RunContext
from rpms.nodes.memories import Writer, after_trial, can_write
from rpms.nodes.memories.writing import list_items, tidy
from rpms.nodes.retrying import FIRST_TRIES
from rpms.vocabulary.errors import RpmsError
from tests.nodes.memories.samples import context, record
from tests.openai_server import Answer, OpenAIServer


async def test_what_is_written_is_counted_over_the_trials(openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer("Plan: a", usage=(50, 5)))
    run = context(openai_server, memory_method="reflexion", guard="policy", temperature=0.3)
    first = await after_trial("alfworld", run, {}, record(success=False))
    second = await after_trial("alfworld", run, first, record(success=False))
    assert second["spent"] == {"model_calls": 2, "prompt_tokens": 100, "output_tokens": 10}
    sent = openai_server.requests[0]
    assert sent["temperature"] == 0.3 and "response_format" not in sent
    assert max(sent.get("max_tokens") or 0, sent.get("max_completion_tokens") or 0) == 1024


async def test_errors_that_may_pass_are_tried_again_and_others_are_raised(
    openai_server: OpenAIServer,
) -> None:
    run = context(openai_server, memory_method="reflexion")
    openai_server.plays(Answer(status=503), "Plan: a")
    carried = await after_trial("alfworld", run, {}, record(success=False))
    assert carried["reflections"] == ["a"] and len(openai_server.requests) == 2
    openai_server.plays(Answer(status=400, error="no such thing"))
    with pytest.raises(Exception, match="no such thing"):
        await after_trial("alfworld", run, {}, record(success=False))
    assert len(openai_server.requests) == 1


async def test_no_reply_in_time_is_an_error(openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer(wait=True))
    run = context(openai_server, memory_method="reflexion", timeout_s=0.05, patience_s=0.0)
    with pytest.raises(Exception, match=r"no reply|timed out"):
        await after_trial("alfworld", run, {}, record(success=False))
    assert 1 <= len(openai_server.requests) <= FIRST_TRIES


async def test_a_reply_from_the_cache_costs_nothing(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays("Plan: a")
    run, cache = context(openai_server, memory_method="reflexion"), str(tmp_path / "replies")
    for calls in (1, 0):
        found = await after_trial("alfworld", run, {}, record(success=False), cache)
        assert found["reflections"] == ["a"] and found["spent"]["model_calls"] == calls


async def test_the_planner_writes_nothing_and_says_so() -> None:
    assert not can_write("sim") and not can_write("random") and can_write("openai:x")
    with pytest.raises(RpmsError, match=r"'reflexion' has its texts written .* 'sim' writes none"):
        await after_trial(
            "alfworld", RunContext(memory_method="reflexion"), {}, record(success=False)
        )
    with pytest.raises(RpmsError, match="give --model PROVIDER:NAME"):
        Writer("alfworld", RunContext(), "expel")


@pytest.mark.parametrize("name", ["trajectories", "awm"])
async def test_a_frozen_method_carries_nothing_and_asks_nobody(name: str) -> None:
    run = RunContext(memory_method=name)
    assert await after_trial("alfworld", run, {"method": name}, record(success=False)) == {}
    off = RunContext(memory_method="reflexion", memory=False)
    assert await after_trial("alfworld", off, {}, record(success=False)) == {}


def test_lists_and_texts_are_tidied() -> None:
    assert list_items("Hi\n1. a\n2) b\n- c\n* \n3: d\n4.e") == ["a", "b", "c", "d"]
    assert tidy("\n a \n\n\nb\n") == "a\nb" and len(tidy("x" * 9999)) == 2000
