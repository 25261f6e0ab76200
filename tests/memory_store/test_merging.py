from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rpms.memory_store import merge_entries, parse_entry
from rpms.memory_store.entries import Entry

words = st.sampled_from(["mug", "apple", "plate"])


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    thing, place = draw(words), draw(st.sampled_from(["fridge 1", "shelf 2"]))
    kind = draw(st.sampled_from(["success", "failure", "schema"]))
    data: dict[str, Any] = {"id": "new", "type": kind}
    if kind != "schema":
        data["goal_signature"] = f"pick_and_place_simple:{thing}:none:fridge"
        data["state_signature"] = draw(st.sampled_from(["holding=none", f"holding={thing} 1"]))
    if kind == "success":
        data |= {"sub_goal_type": "take_object", "actions": [f"take {thing} 1 from {place}"]}
    elif kind == "failure":
        data |= {"failed_action": f"open {place}", "failure_message": "Nothing happens.",
                 "corrective_rule": "be there"}  # fmt: skip
    else:
        good, bad = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        data |= {"action_template": f"take {thing}", "action_type": "take", "preconditions": [],
                 "effects": [], "success_count": good, "failure_count": bad,
                 "confidence": 0.5}  # fmt: skip
    return parse_entry(data)


@given(st.lists(entries(), max_size=30), st.randoms(use_true_random=False))
def test_order_and_grouping_do_not_matter(items: list[Entry], rng: random.Random) -> None:
    expected = merge_entries(items)
    shuffled = list(items)
    rng.shuffle(shuffled)
    cut = rng.randint(0, len(items))
    assert merge_entries(shuffled) == expected
    assert (
        merge_entries([*merge_entries(shuffled[:cut]), *merge_entries(shuffled[cut:])]) == expected
    )


@given(st.lists(entries(), max_size=30))
def test_counts_are_preserved_and_ids_are_unique(items: list[Entry]) -> None:
    def total(rows: list[Entry]) -> int:
        return sum(
            getattr(row, "success_count", 0) + getattr(row, "occurrence_count", 0) for row in rows
        )

    merged = merge_entries(items)
    assert total(merged) == total(items)
    assert len({entry.id for entry in merged}) == len(merged)
    for entry in merged:
        if entry.type == "schema" and entry.success_count + entry.failure_count:
            share = entry.success_count / (entry.success_count + entry.failure_count)
            assert abs(entry.confidence - share) < 1e-4
