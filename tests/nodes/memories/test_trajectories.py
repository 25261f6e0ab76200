"""Plain retrieval, from real episodes to a real episode."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpms import RunContext
from rpms.nodes.memories import find_method
from tests.nodes.memories.samples import frozen, played, prompts_of, record, request

METHOD = find_method("trajectories")


async def test_the_shortest_win_of_each_task_is_kept_without_what_was_refused() -> None:
    longer = record(turns=[("look", "You see nothing."), *record_turns()])
    learned = await METHOD.learn([longer, record(), record(success=False, task="two")], None)
    (note,) = learned.entries
    assert note.text.startswith("Task: put a hot mug in cabinet.\n> go to desk 1\n")
    assert "fridge" not in note.text and "take mug 1 from fridge 1" not in note.actions
    assert note.actions[-1] == "put mug 1 in/on cabinet 1" and learned.unread == 0


def record_turns() -> list[tuple[str, str]]:
    return [(turn["action"], turn["observation"]) for turn in record()["history"]]


async def test_the_k_most_similar_tasks_come_first(tmp_path: Path) -> None:
    goals = ["put a hot egg in cabinet.", "put a pen in desk.", "put a hot mug in cabinet."]
    records = [record(goal, task=goal) for goal in goals]
    file = frozen(METHOD, await METHOD.learn(records, None), tmp_path)
    found = METHOD.recall(request(memory_file=file, k=2))
    assert [one["entry"]["text"].split("\n")[0] for one in found] == [
        "Task: put a hot mug in cabinet.", "Task: put a hot egg in cabinet."
    ]  # fmt: skip
    assert found[0]["score"] == 1.0 > found[1]["score"] > 0
    assert METHOD.recall(request(memory_file=file, k=0)) == []


async def test_another_task_is_read_with_the_things_of_this_one(tmp_path: Path) -> None:
    file = frozen(METHOD, await METHOD.learn([record()], None), tmp_path)
    (one,) = METHOD.recall(request("put a hot egg in fridge.", memory_file=file))
    assert one["advice"]["actions"][-1] == "put egg 1 in/on fridge 1"
    assert "mug 1" in one["entry"]["text"]


@pytest.mark.engine
@pytest.mark.parametrize("condition", ["C", "D"])
async def test_real_episodes_teach_a_real_episode(tmp_path: Path, condition: str) -> None:
    records = played()
    learned = await METHOD.learn(records, None)
    assert len(learned.entries) == sum(one["success"] for one in records) > 0
    file = frozen(METHOD, learned, tmp_path)
    context = RunContext.for_condition(
        condition, memory_method="trajectories", memory_file=file, max_steps=4, k=1
    )
    seen = prompts_of(0, context)
    assert len(seen) == 4
    for prompt, recalls in seen:
        (one,) = recalls
        assert ("Solved Tasks" in prompt) is not bool(one["dropped_by"])


@pytest.mark.engine
async def test_a_higher_ceiling_makes_room_for_more(tmp_path: Path) -> None:
    file = frozen(METHOD, await METHOD.learn(played(12), None), tmp_path)
    run = RunContext(memory_method="trajectories", memory_file=file, max_steps=1, k=9)
    kept = []
    for ceiling in (0, 1200, 9000):
        ((_, recalls),) = prompts_of(0, run.with_(ceiling=ceiling))
        kept.append(sum(not one["dropped_by"] for one in recalls))
    assert kept[0] == 0 <= kept[1] < kept[2]
