from __future__ import annotations

from typing import Any

from rpms.envs import get_environment
from rpms.memory_store import MemoryIndex, parse_entry
from rpms.memory_store.entries import Entry
from rpms.vocabulary.signature import GoalSignature, hand_was_empty

KINDS = {"dishes": ["mug", "cup", "plate"], "containers": ["fridge", "cabinet"]}
HEAT = "pick_heat_then_place_in_recep"


def snippet(number: int, goal: str, count: int = 1, held: str = "none") -> Entry:
    return parse_entry(
        {"id": f"success_{number}", "type": "success", "goal_signature": goal,
         "state_signature": f"holding={held}", "sub_goal_type": "take_object",
         "actions": ["go to desk 1"], "success_count": count}
    )  # fmt: skip


def ids(index: MemoryIndex, goal: GoalSignature, theta: float = 0.6, k: int = 3) -> list[str]:
    return [recall["entry"]["id"] for recall in index.recall(goal, theta, k)]


def test_type_is_exact_and_object_and_destination_are_fuzzy() -> None:
    index = MemoryIndex.of(
        [snippet(1, f"{HEAT}:mug:hot:cabinet"), snippet(2, f"{HEAT}:cup:hot:fridge"),
         snippet(3, f"{HEAT}:apple:hot:desk"),
         snippet(4, "pick_and_place_simple:mug:none:cabinet")],
        KINDS,
    )  # fmt: skip
    goal = GoalSignature(HEAT, "mug", "cabinet")
    assert ids(index, goal) == ["success_1", "success_2"]
    scores = [recall["score"] for recall in index.recall(goal, 0.6, 3)]
    assert scores == [1.0, 0.8]
    assert ids(index, goal, theta=0.9) == ["success_1"]
    assert ids(index, GoalSignature("look_at_obj_in_light", "mug", "cabinet")) == []


def test_k_limits_each_type_and_counts_break_ties() -> None:
    index = MemoryIndex.of([snippet(n, f"{HEAT}:mug:hot:desk", count=n) for n in range(1, 9)])
    goal = GoalSignature(HEAT, "mug", "desk")
    assert ids(index, goal, k=3) == ["success_8", "success_7", "success_6"]
    assert ids(index, goal, k=0) == []


def test_both_states_of_the_hand_have_their_share() -> None:
    full = [snippet(n, f"{HEAT}:mug:hot:desk", count=9, held="mug 1") for n in range(5)]
    empty = [snippet(n, f"{HEAT}:mug:hot:desk", count=1) for n in range(5, 10)]
    recalls = MemoryIndex.of([*full, *empty]).recall(GoalSignature(HEAT, "mug", "desk"), 0.6, 2)
    hands = [hand_was_empty(recall["entry"]["state_signature"]) for recall in recalls]
    assert sorted(hands) == [False, False, True, True]


def test_weights_lift_critical_failures(paper_entries: list[dict[str, Any]]) -> None:
    world = get_environment("scienceworld")
    index = MemoryIndex.of((parse_entry(data) for data in paper_entries), keys=world.keys)
    recalls = index.recall(GoalSignature("F3", "water", "melt"), 0.6, 3)
    assert [(r["entry"]["type"], r["score"]) for r in recalls] == [("critical_failure", 2.0)]


def test_schemas_are_recalled_for_the_actions_of_the_procedure(
    paper_entries: list[dict[str, Any]],
) -> None:
    index = MemoryIndex.of([parse_entry(paper_entries[2])])
    goal = GoalSignature("pick_cool_then_place_in_recep", "mug", "desk")
    assert [r["entry"]["id"] for r in index.recall(goal, 0.6, 3, ("take", "cool"))] == [
        "schema_000222"
    ]
    assert index.recall(goal, 0.6, 3, ("take", "heat")) == []


def test_a_recall_is_a_copy_that_a_stage_may_mark() -> None:
    index = MemoryIndex.of([snippet(1, f"{HEAT}:mug:hot:desk")])
    goal = GoalSignature(HEAT, "mug", "desk")
    index.recall(goal, 0.6, 3)[0]["dropped_by"] = "scf"
    assert index.recall(goal, 0.6, 3)[0]["dropped_by"] == ""
