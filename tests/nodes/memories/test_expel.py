"""ExpeL: the votes, the comparisons and the two kinds of notes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpms import RunContext
from rpms.nodes.memories import find_method
from rpms.nodes.memories.expel import FULL, Insight, comparisons, vote
from rpms.vocabulary.errors import RpmsError
from tests.nodes.memories.samples import asked, frozen, played, prompts_of, record, request, writer
from tests.openai_server import OpenAIServer

METHOD = find_method("expel")


def test_operations_change_the_list_as_the_original_has_it() -> None:
    before = [Insight("a", 2), Insight("b", 1), Insight("c", 2)]
    after, unread = vote(
        before, "AGREE 1: a\nDISAGREE 2: b\nEDIT 3: c, better\nADD: d\n- ADD 9: e\n"
    )
    assert after == [
        Insight("a", 3), Insight("c, better", 3), Insight("d", 2), Insight("e", 2)
    ]  # fmt: skip
    assert unread == 0


def test_what_makes_no_sense_is_counted_and_left_out() -> None:
    before = [Insight("a", 2)]
    assert vote(before, "I agree with everything.") == (before, 1)
    assert vote(before, "AGREE 7: x\nEDIT 1:\nADD: a\nADD:") == (before, 4)


def test_in_a_full_list_disagreeing_weighs_more() -> None:
    before = [Insight(f"insight {number}", 3) for number in range(FULL)]
    after, _ = vote(before, "REMOVE 1: insight 0")
    assert len(after) == FULL - 1 and Insight("insight 0", 3) not in after


operation = st.tuples(
    st.sampled_from(["ADD", "EDIT", "AGREE", "DISAGREE", "REMOVE", "add", "NOTE"]),
    st.sampled_from(["", " 1", " 2", " 99", "#3"]),
    st.text(max_size=20),
)


@given(st.lists(operation), st.text())
def test_no_reply_breaks_the_list(operations: list[tuple[str, str, str]], rest: str) -> None:
    reply = "\n".join(f"{name}{number}: {text}" for name, number, text in operations) + rest
    after, unread = vote([Insight("a", 2), Insight("b", 1)], reply)
    assert unread >= 0 and len(after) <= FULL
    assert all(one.votes > 0 and one.text.strip() for one in after)
    assert [one.votes for one in after] == sorted((one.votes for one in after), reverse=True)


def test_a_loss_is_compared_with_a_win_of_its_own_task_first() -> None:
    lost = record(success=False, task="one")
    own, other = record("put a pen in desk.", task="one"), record(task="two")
    near = record("put a hot mug in cabinet.", success=False, task="three")
    pairs = list(comparisons([lost, other, own, near]))
    assert pairs == [([own], lost), ([other], near), ([own, other], None)]


@pytest.mark.engine
async def test_learned_from_real_episodes_and_shown_in_one(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    records = played()
    openai_server.plays("ADD: Search closed places before open ones.", "AGREE 1: yes", "Well.")
    learned = await METHOD.learn(records, writer(openai_server, "expel"))
    lost = sum(not one["success"] for one in records)
    assert len(openai_server.requests) == lost + 1 and lost > 0
    assert "not completed" in asked(openai_server)[0]
    assert "Search closed places" in asked(openai_server)[1]
    insights = [note for note in learned.entries if note.kind == "insight"]
    assert [(note.text, note.votes) for note in insights] == [
        ("Search closed places before open ones.", 3)
    ]
    assert learned.unread == lost - 1
    file = frozen(METHOD, learned, tmp_path)
    found = METHOD.recall(request(memory_file=file, k=1))
    assert [one["entry"]["kind"] for one in found] == ["insight", "trajectory"]
    run = RunContext(memory_method="expel", memory_file=file, max_steps=2)
    assert all("INSIGHT: Search closed places" in text for text, _ in prompts_of(0, run))


async def test_without_a_model_it_says_so() -> None:
    with pytest.raises(RpmsError, match="'expel' needs a language model"):
        await METHOD.learn([record()], None)
