"""Agent Workflow Memory: by a model, and by rule without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms import RunContext
from rpms.nodes.memories import find_method
from rpms.nodes.memories.workflows import by_rule, read_workflows
from tests.nodes.memories.samples import asked, frozen, played, prompts_of, record, request, writer
from tests.openai_server import OpenAIServer

METHOD = find_method("awm")
REPLY = """Sure.
Workflow 1: find it
go to {place}
take {object} from {place}

## Workflow 2: too short
look
"""


def test_by_rule_routines_begin_where_the_hand_changes() -> None:
    first, second = by_rule([record(), record(task="again")])
    assert first.text == "go to {object's place}\ntake {object} from {object's place}"
    assert second.text.splitlines()[:2] == [
        "go to {a microwave}", "heat {object} with {a microwave}"
    ]  # fmt: skip
    assert first.state_signature == "holding=none" and first.votes == second.votes == 2
    assert second.state_signature and "mug 1" in second.state_signature


def test_only_workflows_of_two_steps_and_more_are_kept() -> None:
    assert read_workflows(REPLY) == (["find it\ngo to {place}\ntake {object} from {place}"], 1)
    assert read_workflows("none") == ([], 1)


@given(st.lists(st.text(max_size=30)), st.text())
def test_no_reply_breaks_the_reading(bodies: list[str], rest: str) -> None:
    reply = rest + "\n".join(f"Workflow {n}: {text}" for n, text in enumerate(bodies, 1))
    found, unread = read_workflows(reply)
    assert unread >= 0 and all(len(text.splitlines()) > 2 for text in found)


async def test_the_model_is_shown_one_win_of_each_type(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(REPLY)
    records = [record(), record(task="two"), record("put a pen in desk.", task="three"),
               record("put a cool egg in desk.", task="four", success=False)]  # fmt: skip
    learned = await METHOD.learn(records, writer(openai_server, "awm"))
    (prompt,) = asked(openai_server)
    assert prompt.count("put a hot mug in cabinet") == 1 == prompt.count("put a pen in desk")
    assert "cool egg" not in prompt and "{object} or {place}" in prompt
    assert [note.text.splitlines()[0] for note in learned.entries] == ["find it"]
    assert learned.unread == 1
    (one,) = METHOD.recall(request(memory_file=frozen(METHOD, learned, tmp_path)))
    assert one["advice"]["actions"] == ["go to place", "take mug from place"]


@pytest.mark.engine
async def test_real_episodes_teach_a_real_episode_and_the_hand_decides_which(
    tmp_path: Path,
) -> None:
    learned = await METHOD.learn(played(12), None)
    file = frozen(METHOD, learned, tmp_path)
    run = RunContext(memory_method="awm", memory_file=file, max_steps=12)
    prompts = prompts_of(0, run)
    dropped = {one["dropped_by"] for _, recalls in prompts for one in recalls}
    assert {"", "scf"} <= dropped
    assert all("WORKFLOW: go to {" in text for text, _ in prompts)
    open_to_all = prompts_of(0, run.with_(scf="off"))
    assert "scf" not in {one["dropped_by"] for _, recalls in open_to_all for one in recalls}
