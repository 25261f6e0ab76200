from __future__ import annotations

from typing import Any

import pytest

from rpms.envs import get_environment
from rpms.memory_store import MemoryIndex, parse_entry
from rpms.memory_store.entries import Entry
from rpms.vocabulary.goal import GoalSignature, hand_was_empty

KINDS = {"dishes": ["mug", "cup", "plate"], "containers": ["fridge", "cabinet"]}
HEAT = "pick_heat_then_place_in_recep"


def snippet(number: int, goal: str, count: int = 1, held: str = "none") -> Entry:
    return parse_entry(
        {"id": f"success_{number}", "type": "success", "goal_signature": goal,
         "state_signature": f"holding={held}", "sub_goal_type": "take_object",
         "actions": ["go to desk 1"], "success_count": count}
    )  # fmt: skip


def ids(index: MemoryIndex, goal: GoalSignature, theta: float = 0.6, k: int = 3) -> list[str]:
    return [candidate.entry["id"] for candidate in index.find(goal, theta, k).candidates]


def test_type_is_exact_and_the_rest_goes_by_meaning() -> None:
    index = MemoryIndex(
        [snippet(1, f"{HEAT}:mug:hot:cabinet"), snippet(2, f"{HEAT}:cup:hot:fridge"),
         snippet(3, f"{HEAT}:mug:hot:desk"), snippet(4, f"{HEAT}:apple:hot:cabinet"),
         snippet(5, "pick_and_place_simple:mug:none:cabinet")],
        KINDS,
    )  # fmt: skip
    goal = GoalSignature(HEAT, "mug", "cabinet")
    scores = {
        candidate.entry["id"]: round(candidate.score, 2)
        for candidate in index.find(goal, 0.6, 3).candidates
    }
    assert scores == {"success_1": 1.0, "success_2": 0.8, "success_3": 0.6}
    assert ids(index, goal, theta=0.9) == ["success_1"]
    other = GoalSignature("look_at_obj_in_light", "mug", "cabinet")
    assert all(ids(index, other, theta) == [] for theta in (0.0, 0.6))


@pytest.mark.parametrize(
    ("name", "other"), [("pot", "potato"), ("pan", "pen"), ("apple", "plate"), ("bed", "bread")]
)
def test_likeness_of_spelling_alone_counts_for_nothing(name: str, other: str) -> None:
    index = MemoryIndex([snippet(1, f"{HEAT}:{name}:hot:desk")])
    assert ids(index, GoalSignature(HEAT, other, "desk")) == []
    assert ids(index, GoalSignature(HEAT, f"{name}s", "desk")) == ["success_1"]


def test_there_is_a_choice_of_each_kind_and_counts_break_ties() -> None:
    index = MemoryIndex([snippet(n, f"{HEAT}:mug:hot:desk", count=n) for n in range(1, 9)])
    goal = GoalSignature(HEAT, "mug", "desk")
    assert ids(index, goal, k=1) == ["success_8", "success_7", "success_6"]
    assert ids(index, goal, k=0) == []


def test_both_states_of_the_hand_have_their_share() -> None:
    full = [snippet(n, f"{HEAT}:mug:hot:desk", count=9, held="mug 1") for n in range(5)]
    empty = [snippet(n, f"{HEAT}:mug:hot:desk", count=1) for n in range(5, 10)]
    candidates = (
        MemoryIndex([*full, *empty]).find(GoalSignature(HEAT, "mug", "desk"), 0.6, 1).candidates
    )
    hands = [hand_was_empty(candidate.entry["state_signature"]) for candidate in candidates]
    assert sorted(hands) == [False] * 3 + [True] * 3


def test_equal_advice_of_several_goals_is_one_with_all_counts() -> None:
    entries = []
    for number, goal in enumerate((f"{HEAT}:mug:hot:desk", f"{HEAT}:cup:hot:desk")):
        data = snippet(number, goal, count=2).model_dump()
        entries.append(parse_entry({**data, "lifted": ["go to {a desk}"]}))
    (candidate,) = (
        MemoryIndex(entries, KINDS).find(GoalSignature(HEAT, "mug", "desk"), 0.6, 3).candidates
    )
    assert (candidate.score, candidate.seen) == (1.0, 4)


def test_weight_counts_for_the_threshold_and_the_rank(paper_entries: list[dict[str, Any]]) -> None:
    critical = paper_entries[3]
    far = {**critical, "id": "far", "goal_signature": "F3:boil:water"}
    light = {**far, "id": "light", "retrieval_weight": 1.0}
    keys = get_environment("scienceworld").keys
    index = MemoryIndex([parse_entry(data) for data in (critical, far, light)], keys=keys)
    goal = keys.goal(critical["goal_signature"])
    scores = [
        (candidate.entry["id"], candidate.score)
        for candidate in index.find(goal, 0.7, 3).candidates
    ]
    assert scores == [(critical["id"], 2.0), ("far", 1.2)]


def test_schemas_are_asked_for_by_action(paper_entries: list[dict[str, Any]]) -> None:
    index = MemoryIndex([parse_entry(paper_entries[2])])
    assert [candidate.entry["id"] for candidate in index.schemas(["take", "cool"])] == [
        "schema_000222"
    ]
    assert index.schemas(["take", "heat"]) == []


def test_finds_are_counted_by_kind_of_place_and_fall_back_on_the_category() -> None:
    def finds(place: str, looked: int, **objects: int) -> Entry:
        data = {"id": place, "type": "found", "place": place, "looked": looked, "objects": objects}
        return parse_entry(data)

    index = MemoryIndex([finds("desk", 4, mug=1), finds("shelf", 9, mug=2, plate=3)], KINDS)
    assert index.places_of("mug") == {"desk": (1, 4), "shelf": (2, 9)}
    assert index.places_of("cup") == {
        "desk": (1, 4),
        "shelf": (3, 9),
    }  # at most as many
    assert index.places_of("cow") == {}
