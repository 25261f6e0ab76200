"""Which memories the prompt shows, and what the stream says became of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from rpms.envs.base import Outcome
from rpms.graph import build_graph
from rpms.memory_store import parse_entry, write_snapshot
from rpms.nodes import memory_selection
from rpms.nodes.state import EpisodeState, knowledge_of
from rpms.prompts.blocks import knowledge_blocks, tokens
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.recall import Recall, surviving
from tests.memory_store.methods.test_recall_outcomes import GO, HEAT, OPEN, remembered
from tests.scripted_episode import SCRIPT, put_underneath, under

Play = Callable[..., list[EpisodeState]]
# The second says no more than the third.
ENTRIES = [
    remembered(1, GO, HEAT, success_count=9),
    remembered(2, GO, OPEN, HEAT),
    remembered(3, GO, OPEN, HEAT, "go to {destination}", "put {object} in/on {destination}"),
]


@pytest.fixture
def memory(tmp_path: Path) -> str:
    file = tmp_path / "memory.jsonl"
    write_snapshot(file, "alfworld", [parse_entry(entry) for entry in ENTRIES])
    return str(file)


@pytest.mark.parametrize(
    ("settings", "outcomes"),
    [
        ({"k": 3}, {"entry_1": "", "entry_2": "duplicate", "entry_3": ""}),
        ({"k": 1}, {"entry_1": "", "entry_2": "duplicate", "entry_3": "over top-k"}),
        (
            {"k": 3, "memory_tokens": 45},
            {"entry_1": "", "entry_2": "duplicate", "entry_3": "over token budget"},
        ),
        (
            {"k": 3, "memory_tokens": 1},
            {
                "entry_1": "over token budget",
                "entry_2": "duplicate",
                "entry_3": "over token budget",
            },
        ),
    ],
)
def test_the_stream_of_updates_says_what_was_left_out_and_why(
    settings: dict[str, Any], outcomes: dict[str, str], memory: str, play_script: Play,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Before the stage every candidate stands; after it each one left out has its outcome."""
    play_script("A", script=[])  # puts the recorded game underneath
    turns = [turn for turn in SCRIPT if turn[1]]
    answers = iter([Outcome(seen, False, False, 0.0) for _, seen in turns])
    put_underneath(monkeypatch, play=lambda *_: next(answers))
    replies = [AIMessage(reply) for reply, _ in turns]
    graph = build_graph(model=GenericFakeChatModel(messages=iter([*replies, AIMessage("Hm.")])))
    context = RunContext(memory_file=memory, theta=0.0, max_steps=len(turns) + 1, **settings)
    updates: dict[str, Any] = {}
    for part in graph.stream({"task": 0}, context=context, stream_mode="updates"):
        updates |= part
    assert {recall["dropped_by"] for recall in updates["arbitration"]["recalls"]} == {""}
    recalls = updates["memory_selection"]["recalls"]
    assert {recall["entry"]["id"]: recall["dropped_by"] for recall in recalls} == outcomes
    assert all(bool(recall["dropped_by"]) == bool(recall["reason"]) for recall in recalls)
    assert "recalls" not in updates["prompt_build"]
    printed = "[Past Experience" in str(updates["prompt_build"]["prompt"])
    assert printed == ("" in outcomes.values())


def test_the_budget_leaves_out_the_least_useful_first(play_script: Play) -> None:
    state = play_script("D")[-1]
    whole = len(surviving(memory_selection(under(state, RunContext(theta=0.0)))["recalls"]))
    counts = []
    for budget in range(200, 0, -20):  # 0 would be no limit
        context = RunContext(theta=0.0, memory_tokens=budget)
        recalls: list[Recall] = memory_selection(under(state, context))["recalls"]
        kept = [
            recall["dropped_by"]
            for recall in recalls
            if recall["dropped_by"] in ("", "over token budget")
        ]
        assert kept == sorted(kept), "from the end of the list"
        block = knowledge_blocks(knowledge_of({**under(state, context), "recalls": recalls})).memory
        assert tokens([block]) <= budget
        counts.append(kept.count(""))
    assert whole > 1 and counts == sorted(counts, reverse=True) and counts[-1] == 0
