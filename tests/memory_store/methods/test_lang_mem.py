"""LangMem as a memory method, with the real package: extraction, search, controls and rules."""

from __future__ import annotations

import json
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from rpms import RunContext
from rpms.memory_store import Note
from rpms.memory_store.methods import Learned, check_memory, find_method
from rpms.memory_store.methods.lang_mem import embed
from rpms.vocabulary.errors import RpmsError
from tests.memory_store.methods.samples import frozen, prompts_of, record, request, writer
from tests.openai_server import Answer, OpenAIServer

LANGMEM = find_method("langmem")
GOALS = (
    "put a hot mug in cabinet.",
    "put a cool egg in fridge.",
    "look at book under the desklamp.",
)
RECORDS = [record(goal, task=goal) for goal in GOALS]


needs_package = pytest.mark.skipif(
    not util.find_spec("langmem"), reason="LangMem is not installed (make bridges)"
)


async def kept(folder: Path) -> str:
    """A memory that was learned without a model."""
    return frozen(LANGMEM, await LANGMEM.learn([*RECORDS, record(success=False)], None), folder)


def likeness(one: str, other: str) -> float:
    first, second = embed([one, other])
    return sum(a * b for a, b in zip(first, second, strict=True))


def test_similar_words_are_near() -> None:
    assert likeness("two mugs", "two mugs") == pytest.approx(1)
    assert likeness("put two mugs in desk", "put two mug in desk") > 0.8
    assert abs(likeness("heat the egg", "examine a pillow")) < 0.4
    assert embed([""]) == [[0.0] * len(embed(["x"])[0])]


@needs_package
async def test_without_a_model_won_episodes_are_kept_and_found_by_task(tmp_path: Path) -> None:
    file = await kept(tmp_path)
    for goal in GOALS:
        first, second = LANGMEM.recall(request(goal, memory_file=file, k=2))
        assert first["entry"]["text"].startswith(f"Task: {goal}") and first["score"] > 0.999
        assert second["score"] < first["score"]
    (near,) = LANGMEM.recall(request("put some hot mugs in cabinets.", memory_file=file, k=1))
    assert "hot mug" in near["entry"]["text"] and near["advice"]["actions"]


def calls(*episodes: dict[str, str]) -> Answer:
    """A reply of the model that calls LangMem's tool, once for each memory."""
    tools = [
        {"id": f"call_{number}", "type": "function",
         "function": {"name": "EpisodicMemory", "arguments": json.dumps(episode)}}
        for number, episode in enumerate(episodes)
    ]  # fmt: skip
    message = {"role": "assistant", "content": None, "tool_calls": tools}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "writer",
            "choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 7,
                                           "total_tokens": 107}}  # fmt: skip
    return Answer(raw=json.dumps(body).encode())


@needs_package
async def test_with_a_model_langmem_extracts_the_memories(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    episode = {"observation": "A mug had to be hot.", "thoughts": "The microwave heats.",
               "action": "heat mug 1 with microwave 1", "result": "It worked."}  # fmt: skip
    openai_server.plays(calls(episode, {**episode, "result": "Do so again."}), "Nothing to say.")
    ask = writer(openai_server, "langmem")
    learned = await LANGMEM.learn([RECORDS[0], record(success=False)], ask)
    assert ask.spent["prompt_tokens"] == 200, "of the calls that the library makes"
    first, second = openai_server.requests
    assert first["tools"][0]["function"]["name"] == "EpisodicMemory"
    assert "heat mug 1 with microwave 1" in json.dumps(first["messages"])
    assert "did not reach its goal" in json.dumps(second["messages"])
    assert learned.unread == 1 and ask.replies == 2
    results = [note.text.splitlines()[-1] for note in learned.entries]
    assert results == ["It worked.", "Do so again."]
    file = frozen(LANGMEM, learned, tmp_path)
    recalls = LANGMEM.recall(request(memory_file=file))
    assert [recall["advice"]["actions"] for recall in recalls] == [[episode["action"]]] * 2


@needs_package
async def test_the_controls_apply(tmp_path: Path) -> None:
    file = await kept(tmp_path)

    def found(control: str) -> list[str]:
        settings: dict[str, Any] = {"memory_file": file, "memory_control": control, "k": 1}
        recalls = [LANGMEM.recall(request(goal, seed=3, **settings)) for goal in GOALS]
        return [recall["entry"]["text"].splitlines()[0] for (recall,) in filter(None, recalls)]

    own = [f"Task: {goal}" for goal in GOALS]
    assert found("none") == found("filler") == own
    assert found("empty") == []
    assert sorted(found("shuffled")) == sorted(own) and found("shuffled") != own
    others = found("irrelevant")
    assert others and not any(text == task for text, task in zip(others, own, strict=False))
    with pytest.raises(RpmsError, match="'corrupted' works with memory_method 'rpms' only"):
        found("corrupted")


@needs_package
@pytest.mark.engine
def test_rules_and_state_judge_its_memories_in_an_episode(tmp_path: Path) -> None:
    """The advice of one memory can never work; rules first, it is printed with a warning."""
    wrong = Note(id="w", kind="episode", text="Heat the mug with the fridge.")
    file = frozen(LANGMEM, Learned([wrong]), tmp_path)
    settings: dict[str, Any] = {"memory_method": "langmem", "memory_file": file, "max_steps": 1}
    ((text, (recall,)),) = prompts_of(1, RunContext(**settings))
    assert "[Past Experience - Memories]" in text and "Heat the mug with the fridge." in text
    assert recall["warning"] and recall["warning"] in text
    ((_, (recall,)),) = prompts_of(1, RunContext(arbitration="none", **settings))
    assert not recall["warning"]
    ((text, recalls),) = prompts_of(1, RunContext(memory_control="empty", **settings))
    assert not recalls and "Past Experience" not in text


def test_a_missing_package_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    find = util.find_spec
    monkeypatch.setattr(
        "rpms.memory_store.methods.lang_mem.find_spec",
        lambda name: None if name == "langmem" else find(name),
    )
    with pytest.raises(RpmsError, match="needs the package langmem: run 'make bridges'") as error:
        check_memory("alfworld", RunContext(memory_method="langmem"))
    assert "\n" not in str(error.value)
