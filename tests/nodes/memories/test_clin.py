"""CLIN: abstractions of one task over its trials, and of a type of task for others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms.nodes.memories import after_trial, find_method
from rpms.nodes.memories.clin import is_negative, read_abstractions
from rpms.vocabulary.errors import RpmsError
from tests.nodes.memories.samples import (
    asked,
    context,
    frozen,
    played,
    prompts_of,
    record,
    request,
    writer,
)
from tests.openai_server import OpenAIServer

METHOD = find_method("clin")
LIST = "Here:\n1. go to desk 1 SHOULD BE NECESSARY to find the mug.\n2. Open doors.\n\
3) put mug 1 in/on shelf 1 DOES NOT CONTRIBUTE to the task."


def test_only_items_of_the_four_forms_are_kept() -> None:
    texts, formless = read_abstractions(LIST)
    assert texts == [
        "go to desk 1 SHOULD BE NECESSARY to find the mug.",
        "put mug 1 in/on shelf 1 DOES NOT CONTRIBUTE to the task.",
    ]
    assert formless == 1 and [is_negative(text) for text in texts] == [False, True]
    assert read_abstractions("no list") == ([], 1)
    for text in ("X may be neccessary to Y", "X is not necessary for Y", "X may contribute to Y"):
        assert read_abstractions(f"1. {text}") == ([text], 0)


@given(st.lists(st.text(max_size=40)), st.text())
def test_no_reply_breaks_the_reading(items: list[str], rest: str) -> None:
    reply = "\n".join(f"{number}. {text}" for number, text in enumerate(items, 1)) + rest
    texts, formless = read_abstractions(reply)
    assert formless >= 0 and all("\n\n" not in text and text for text in texts)


async def test_every_trial_rewrites_the_memory(openai_server: OpenAIServer) -> None:
    openai_server.plays(LIST, "1. heat mug 1 with microwave 1 MAY BE NECESSARY to win.")
    run = context(openai_server, memory_method="clin")
    first = await after_trial("alfworld", run, {}, record(success=False))
    second = await after_trial("alfworld", run, first, record())
    assert "SHOULD BE NECESSARY to find the mug" in asked(openai_server)[1]
    assert second["unread"] == 1 and second["spent"]["model_calls"] == 2
    assert json.loads(json.dumps(second)) == second
    (one,) = METHOD.recall(request(carried=second))
    assert one["advice"]["actions"] == ["heat mug 1 with microwave 1"] and one["entry"]["here"]
    denied = METHOD.recall(request(carried=first))[1]
    assert denied["advice"]["actions"] == []


@pytest.mark.engine
async def test_meta_summaries_help_the_first_trial_of_other_tasks(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    records = played()

    def rule(asked: dict[str, Any]) -> Any:
        from tests.openai_server import Answer

        meta = "several tasks of one type" in json.dumps(asked["messages"])
        return Answer(f"1. looking {'everywhere' if meta else 'here'} MAY CONTRIBUTE to success.")

    openai_server.plays_by(rule)
    learned = await METHOD.learn(records, writer(openai_server, "clin"))
    types = {note.goal_type for note in learned.entries}
    assert len(openai_server.requests) == len(records) + len(types) and len(types) > 1
    file = frozen(METHOD, learned, tmp_path)
    run = context(openai_server, memory_method="clin", memory_file=file, max_steps=2)
    own = {"method": "clin", "trials": [{"abstractions": ["X may be necessary to Y."]}]}
    goal = next(one["goal"] for one in records)
    assert [one["entry"]["text"] for one in METHOD.recall(request(goal, memory_file=file))] == [
        "looking everywhere MAY CONTRIBUTE to success."
    ]
    texts = [text for text, _ in prompts_of(0, run.with_(model="sim"), own)]
    assert len(texts) == 2 and all("X may be necessary to Y." in text for text in texts)


async def test_without_a_model_it_says_so() -> None:
    with pytest.raises(RpmsError, match="'clin' needs a language model"):
        await METHOD.learn([record()], None)
