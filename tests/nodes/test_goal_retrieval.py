from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from rpms.envs import get_environment
from rpms.memory_store import parse_entry, read_snapshot, save_to_store, write_snapshot
from rpms.nodes.context import RunContext
from rpms.nodes.goal_retrieval import goal_retrieval
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall

ENV = get_environment("alfworld")


def entry(name: str, goal: str) -> Any:
    return parse_entry(
        {"id": name, "type": "success", "goal_signature": goal, "state_signature": "holding=none",
         "sub_goal_type": "take_object", "actions": ["go to desk 1"]}
    )  # fmt: skip


def recall(sentence: str, store: InMemoryStore | None = None, **settings: Any) -> list[Recall]:
    runtime = SimpleNamespace(context=RunContext(**settings), store=store)
    state = EpisodeState(env="alfworld", goal=ENV.parse_goal(sentence))
    return goal_retrieval(state, runtime)["recalls"]  # type: ignore[arg-type]


def test_a_named_snapshot_is_searched_by_goal(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    near = entry("near", "pick_and_place_simple:pen:none:desk")
    write_snapshot(file, "alfworld", [near, entry("far", "pick_and_place_simple:egg:none:fridge")])
    found = recall("put a pen in desk", memory_file=str(file))
    assert [(r["entry"]["id"], r["score"]) for r in found] == [("near", 1.0)]
    assert recall("put a pen in desk", memory_file=str(file), k=0) == []


def test_a_store_with_memory_is_used_when_no_file_is_named(tmp_path: Path) -> None:
    store = InMemoryStore()
    save_to_store(store, "alfworld", [entry("stored", "pick_and_place_simple:pen:none:desk")])
    assert [r["entry"]["id"] for r in recall("put a pen in desk", store)] == ["stored"]
    file = tmp_path / "memory.jsonl"
    write_snapshot(file, "alfworld", [entry("filed", "pick_and_place_simple:pen:none:desk")])
    found = recall("put a pen in desk", store, memory_file=str(file))
    assert [r["entry"]["id"] for r in found] == ["filed"]


def test_an_empty_store_falls_back_to_the_shipped_memory() -> None:
    found = recall("put a hot apple in fridge", InMemoryStore())
    assert {r["entry"]["type"] for r in found} >= {"success", "schema"}


def test_schemas_come_for_the_actions_of_the_goals_procedure() -> None:
    found = recall("put a hot apple in fridge")
    verbs = {r["entry"]["action_type"] for r in found if r["entry"]["type"] == "schema"}
    assert verbs == {"take", "heat", "put"}


def test_the_shipped_memory_was_learned_in_generated_homes_alone() -> None:
    header, entries = read_snapshot(ENV.memory)
    assert header.env == "alfworld" and len(entries) > 100
    assert all("generated_seen" in source for source in header.sources)
    assert {e.type for e in entries} == {"success", "failure", "schema"}


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match="cannot read memory file"):
        recall("put a pen in desk", memory_file=str(tmp_path / "none.jsonl"))
