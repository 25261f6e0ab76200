"""ReasoningBank: items from wins and losses, recalled with the tasks they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms import RunContext
from rpms.nodes.memories import find_method
from rpms.nodes.memories.reasoning_bank import MOST, read_items
from rpms.vocabulary.errors import RpmsError
from tests.nodes.memories.samples import asked, frozen, played, prompts_of, record, request, writer
from tests.openai_server import OpenAIServer

METHOD = find_method("reasoningbank")


def item(number: int, title: str = "Look first") -> str:
    return (
        f"# Memory Item {number}\n## Title {title} {number}\n## Description Before acting.\n"
        "## Content Look around.\n\n"
    )


def test_items_have_three_parts_and_are_at_most_three() -> None:
    assert read_items(item(1)) == (["Look first 1: Before acting. Look around."], 0)
    found, unread = read_items(f"```\n{item(1)}{item(2)}```")
    assert len(found) == 2 and unread == 0 and "`" not in "".join(found)
    assert len(read_items("".join(map(item, range(1, 6))))[0]) == MOST
    assert read_items("# Memory Item 1\n## Title only") == ([], 1)
    assert read_items("Nothing to say.") == ([], 1)


@given(st.lists(st.sampled_from(["# Memory Item 1", "## Title x", "## Content\ny", "## Descri"])),
       st.text())  # fmt: skip
def test_no_reply_breaks_the_reading(lines: list[str], rest: str) -> None:
    found, unread = read_items("\n".join([*lines, rest]))
    assert unread >= 0 and len(found) <= MOST and all("\n" not in text for text in found)


async def test_wins_and_losses_are_asked_about_differently(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(item(1, "Win"), item(1, "Loss"), "Hm.")
    records = [record(), record("put a pen in desk.", success=False, task="two"),
               record("put a cool egg in desk.", task="three")]  # fmt: skip
    learned = await METHOD.learn(records, writer(openai_server, "reasoningbank"))
    won, lost, _ = asked(openai_server)
    assert "why it worked" in won and "why it did not work" in lost
    assert [note.goal for note in learned.entries] == [one["goal"] for one in records[:2]]
    assert learned.unread == 1
    file = frozen(METHOD, learned, tmp_path)
    (one,) = METHOD.recall(request(memory_file=file, k=1))
    assert one["entry"]["text"].startswith("Win 1: ") and one["score"] == 1.0
    assert len(METHOD.recall(request(memory_file=file, k=2))) == 2


@pytest.mark.engine
async def test_real_episodes_teach_a_real_episode(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays(item(1))
    learned = await METHOD.learn(played(), writer(openai_server, "reasoningbank"))
    assert len(learned.entries) == len(played()) == len(openai_server.requests)
    file = frozen(METHOD, learned, tmp_path)
    run = RunContext.for_condition(
        "C", memory_method="reasoningbank", memory_file=file, max_steps=2
    )
    assert all("STRATEGY: Look first 1" in text for text, _ in prompts_of(0, run))


async def test_without_a_model_it_says_so() -> None:
    with pytest.raises(RpmsError, match="'reasoningbank' needs a language model"):
        await METHOD.learn([record()], None)
