from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from rpms.envs import get_environment
from rpms.memory_store import parse_entry, read_snapshot, save_to_store, write_snapshot
from rpms.nodes.goal_retrieval import goal_retrieval
from rpms.nodes.state import EpisodeState
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall
from tests.scripted_episode import under

ENV = get_environment("alfworld")


HOME = "You are in the middle of a room. Looking quickly around you, you see a desk 1, a drawer 2, \
a drawer 1, a fridge 1, a microwave 1, and a shelf 1."


def entry(name: str, goal: str) -> Any:
    return parse_entry(
        {"id": name, "type": "success", "goal_signature": goal, "state_signature": "holding=none",
         "sub_goal_type": "take_object", "actions": ["open drawer 3", "take pen 2 from drawer 3"]}
    )  # fmt: skip


def recall(
    sentence: str, store: InMemoryStore | None = None, *, seen: bool = True, **settings: Any
) -> list[Recall]:
    goal = ENV.parse_goal(sentence)
    belief = ENV.first_belief(HOME)
    if seen:
        text = f"On the shelf 1, you see a {goal['object']} 1."
        belief = ENV.update_belief(belief, "go to shelf 1", text)
    state = EpisodeState(
        env="alfworld", goal=goal, belief=belief, sub_goal=ENV.sub_goal(goal, belief, [])
    )
    return goal_retrieval(under(state, RunContext(**settings)), Runtime(store=store))["recalls"]


def test_a_named_snapshot_is_searched_by_goal(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    near = entry("near", "pick_and_place_simple:pen:none:desk")
    write_snapshot(file, "alfworld", [near, entry("far", "pick_and_place_simple:egg:none:fridge")])
    recalls = recall("put a pen in desk", memory_file=str(file))
    assert [(r["entry"]["id"], r["score"]) for r in recalls] == [("near", 1.0)]
    assert recalls[0]["advice"]["actions"][-1] == "take pen 1 from shelf 1"
    (unseen,) = recall("put a pen in desk", memory_file=str(file), seen=False)
    assert (unseen["dropped_by"], bool(unseen["reason"])) == ("not groundable", True)
    assert recall("put a pen in desk", memory_file=str(file), k=0) == []
    write_snapshot(file, "elsewhere", [])
    for name, why in ((file, "learned in elsewhere"), (tmp_path / "x", "cannot read memory file")):
        with pytest.raises(RpmsError, match=why):
            recall("put a pen in desk", memory_file=str(name), memory_control="shuffled")


def test_a_store_with_memory_is_used_when_no_file_is_named(tmp_path: Path) -> None:
    store = InMemoryStore()
    save_to_store(store, "alfworld", [entry("stored", "pick_and_place_simple:pen:none:desk")])
    assert [r["entry"]["id"] for r in recall("put a pen in desk", store)] == ["stored"]
    shipped = recall("put a hot apple in fridge", InMemoryStore())
    assert {r["entry"]["type"] for r in shipped} >= {"success", "schema"}
    file = tmp_path / "memory.jsonl"
    write_snapshot(file, "alfworld", [entry("filed", "pick_and_place_simple:pen:none:desk")])
    recalls = recall("put a pen in desk", store, memory_file=str(file))
    assert [r["entry"]["id"] for r in recalls] == ["filed"]


def test_a_control_spoils_the_memory_wherever_it_lies(tmp_path: Path) -> None:
    own, other = "pick_and_place_simple:pen:none:desk", "pick_two_obj_and_place:pen:none:desk"
    entries = [entry("own", own), entry("other", other)]
    store = InMemoryStore()
    save_to_store(store, "alfworld", entries)
    file = tmp_path / "memory.jsonl"
    write_snapshot(file, "alfworld", entries)
    for where in ({"store": store}, {"memory_file": str(file)}):
        names = {
            control: [r["entry"]["id"] for r in recall("put a pen in desk", **where, **setting)]
            for control in ("none", "empty", "irrelevant", "filler")
            for setting in [{"memory_control": control}]
        }  # fmt: skip
        assert names == {"none": ["own"], "empty": [], "irrelevant": ["other"], "filler": ["own"]}


def test_a_store_that_grows_is_seen_by_the_next_episode() -> None:
    store = InMemoryStore()
    goal = "pick_and_place_simple:pen:none:desk"
    save_to_store(store, "alfworld", [entry("one", goal)])
    assert [r["entry"]["id"] for r in recall("put a pen in desk", store)] == ["one"]
    other = {
        **entry("two", goal).model_dump(),
        "actions": ["take pen 1 from drawer 1", "go to desk 1", "put pen 1 in/on desk 1"],
        "state_signature": "holding=pen 1",
    }
    save_to_store(store, "alfworld", [entry("one", goal), parse_entry(other)])
    assert len(recall("put a pen in desk", store)) == 2


def test_schemas_come_for_what_completes_the_steps_of_such_goals() -> None:
    recalls = recall("put a hot apple in fridge")
    actions = [r["advice"]["actions"][0] for r in recalls if r["entry"]["type"] == "schema"]
    assert sorted(text.split()[0] for text in actions) == ["heat", "put", "take"]
    assert "heat apple 1 with microwave 1" in actions


def test_what_nobody_has_seen_yet_is_looked_for_where_it_was_found_before() -> None:
    (finds,) = [r for r in recall("put a pen in desk", seen=False) if r["entry"]["type"] == "found"]
    assert finds["entry"]["object"] == "pen" and finds["advice"]["actions"] == []
    named = " ".join(finds["advice"]["places"])
    assert re.search(r"\bdesk \(\d+ of \d+ searched held one; here: desk 1\)", named)
    assert "countertop" not in named  # this home has none
    assert all(r["entry"]["type"] != "found" for r in recall("put a pen in desk"))


def test_the_shipped_memory_was_learned_in_generated_homes_alone() -> None:
    header, entries = read_snapshot(ENV.memory)
    assert header.env == "alfworld" and len(entries) > 100
    assert all("generated_seen" in source for source in header.sources)
    assert {e.type for e in entries} == {"success", "failure", "schema", "found"}
