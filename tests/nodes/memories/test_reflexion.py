"""Reflexion: what goes from trial to trial, and what the prompt of the next one shows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.nodes.memories import after_trial, find_method
from rpms.nodes.memories.reflexion import read_plan
from rpms.vocabulary.errors import RpmsError
from tests.nodes.memories.samples import asked, context, prompts_of, record, request
from tests.openai_server import OpenAIServer

METHOD = find_method("reflexion")


async def test_a_lost_trial_gives_one_reflection_and_a_won_one_none(
    openai_server: OpenAIServer,
) -> None:
    openai_server.plays("Let me think.\nPlan: First go to desk 1.\n\nThen take mug 1 from desk 1.")
    run = context(openai_server, memory_method="reflexion")
    first = await after_trial("alfworld", run, {}, record(success=False))
    assert first["reflections"] == ["First go to desk 1.\nThen take mug 1 from desk 1."]
    assert first["method"] == "reflexion" and first["spent"]["model_calls"] == 1
    assert "take mug 1 from fridge 1" in asked(openai_server)[0]
    again = await after_trial("alfworld", run, first, record())
    assert again == first and len(openai_server.requests) == 1


async def test_the_last_three_are_shown_to_the_writer_and_to_the_agent(
    openai_server: OpenAIServer,
) -> None:
    run = context(openai_server, memory_method="reflexion")
    carried: dict[str, Any] = {}
    openai_server.plays(*(f"Plan: try way {number}" for number in range(1, 6)))
    for _ in range(5):
        carried = await after_trial("alfworld", run, carried, record(success=False))
    assert "try way 2" in asked(openai_server)[4] and "try way 1" not in asked(openai_server)[4]
    found = METHOD.recall(request(carried=carried))
    assert [one["entry"]["text"] for one in found] == [f"try way {n}" for n in (5, 4, 3)]
    assert all(one["entry"]["here"] for one in found)


@pytest.mark.engine
async def test_the_next_trial_reads_it(openai_server: OpenAIServer) -> None:
    openai_server.plays("Plan: look behind the moon")
    run = context(openai_server, memory_method="reflexion")
    carried = await after_trial("alfworld", run, {}, record(success=False))
    sim = run.with_(model="sim", max_steps=2)
    assert all(
        "REFLECTION: look behind the moon" in text for text, _ in prompts_of(0, sim, carried)
    )
    assert not any("Earlier Attempts" in text for text, _ in prompts_of(0, sim))


@pytest.mark.engine
def test_what_another_method_left_behind_is_refused(openai_server: OpenAIServer) -> None:
    run = context(openai_server, max_steps=2).with_(model="sim")
    with pytest.raises(RpmsError, match="'carried' comes from the memory method 'reflexion'"):
        prompts_of(0, run, {"method": "reflexion", "reflections": ["x"]})


async def test_nothing_is_learned_beforehand_and_no_file_is_read() -> None:
    with pytest.raises(RpmsError, match="earlier trials of the same task"):
        await METHOD.learn([record()], None)
    with pytest.raises(RpmsError, match="leave the memory file out"):
        METHOD.check("alfworld", request(memory_file="m.jsonl").context)


async def test_a_reply_without_a_word_is_counted(openai_server: OpenAIServer) -> None:
    openai_server.plays("Plan:   \n")
    run = context(openai_server, memory_method="reflexion")
    carried = await after_trial("alfworld", run, {}, record(success=False))
    assert carried["reflections"] == [] and carried["unread"] == 1


@given(st.text())
def test_any_reply_is_a_plan_without_empty_lines(reply: str) -> None:
    plan = read_plan(reply)
    assert all(line.strip() for line in plan.splitlines()) and len(plan) <= 2000
