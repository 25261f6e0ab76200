from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rpms.memory_store import merge_entries, parse_entry
from rpms.memory_store.entries import Entry, Use, confidence, effects, preconditions

words = st.sampled_from(["mug", "apple", "plate"])


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    thing, place = draw(words), draw(st.sampled_from(["fridge 1", "shelf 2"]))
    kind = draw(st.sampled_from(["success", "failure", "schema", "found"]))
    data: dict[str, Any] = {"id": "new", "type": kind}
    if kind in ("success", "failure"):
        data["goal_signature"] = f"pick_and_place_simple:{thing}:none:fridge"
        data["state_signature"] = draw(st.sampled_from(["holding=none", f"holding={thing} 1"]))
    if kind == "success":
        data |= {
            "sub_goal_type": "take_object",
            "actions": [f"take {thing} 1 from {place}"],
            "lifted": draw(st.sampled_from([[], ["take {object} from {object's place}"]])),
        }
    elif kind == "found":
        data |= {"place": place.split()[0], "looked": draw(st.integers(1, 5)),
                 "objects": draw(st.dictionaries(words, st.integers(1, 3)))}  # fmt: skip
    elif kind == "failure":
        data |= {"failed_action": f"open {place}", "failure_message": "Nothing happens.",
                 "corrective_rule": "be there"}  # fmt: skip
    else:
        use = {"before": {"at(place)": draw(st.booleans())}, "worked": draw(st.booleans()),
               "after": ["at(place)"], "count": draw(st.integers(1, 3))}  # fmt: skip
        data |= {"action_template": "take {object}", "action_type": "take", "uses": [use],
                 "kinds": {"object": {thing: 1}}, "success_count": use["count"] * use["worked"],
                 "failure_count": use["count"] * (not use["worked"]),
                 "confidence": 0.5}  # fmt: skip
    return parse_entry(data)


@settings(max_examples=30)
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


@settings(max_examples=30)
@given(st.lists(entries(), max_size=30))
def test_counts_are_preserved_and_ids_are_unique(items: list[Entry]) -> None:
    def total(rows: list[Entry]) -> int:
        return sum(
            getattr(row, "success_count", 0) + getattr(row, "occurrence_count", 0) for row in rows
        )

    merged = merge_entries(items)
    assert total(merged) == total(items)
    assert len({entry.id for entry in merged}) == len(merged)
    looked = [sum(e.looked for e in rows if e.type == "found") for rows in (merged, items)]
    assert looked[0] == looked[1]


def test_two_homes_that_teach_the_same_are_one_entry() -> None:
    def taken(name: str, place: str) -> Entry:
        return parse_entry(
            {"id": "new", "type": "success", "state_signature": f"holding=none|open={place}",
             "goal_signature": "pick_and_place_simple:mug:none:shelf",
             "sub_goal_type": "take_object", "actions": [f"take {name} from {place}"],
             "lifted": ["take {object} from {object's place}"]}
        )  # fmt: skip

    (entry,) = merge_entries([taken("mug 2", "desk 1"), taken("mug 1", "fridge 3")])
    assert entry.type == "success" and entry.success_count == 2
    assert entry.actions == ["take mug 1 from fridge 3"]


def use(worked: bool, count: int = 1, after: tuple[str, ...] = (), **before: bool) -> Use:
    named = {name.replace("_", "(") + ")": held for name, held in before.items()}
    return Use(before=named, worked=worked, after=list(after), count=count)


AFTERWARDS = ("holding(object)", "at(place)")
COOL = [
    use(True, 5, AFTERWARDS, holding_object=True, at_place=True, open_place=True),
    use(True, 2, AFTERWARDS, holding_object=True, at_place=True, open_place=False),
    use(False, 3, holding_object=True, at_place=False),
    use(False, 1, holding_object=False, at_place=True),
]


def test_needs_held_at_every_success_and_explain_the_refusals() -> None:
    """Schemas are told by uses alone: no manual is asked."""
    assert preconditions(COOL) == ["at(place)", "holding(object)"]
    assert preconditions(COOL[:2]) == []  # without refusals nothing is known to be needed
    assert preconditions([]) == [] and effects([]) == []
    odd = use(False, 9, holding_object=True, at_place=True)  # nothing explains it
    assert preconditions([*COOL, odd]) == ["at(place)", "holding(object)"]
    assert confidence([*COOL, odd]) == 0.55
    assert confidence(COOL) == 1.0


def test_effects() -> None:
    """The paper's headline: after cooling the object is still held."""
    assert effects(COOL) == ["holding(object)"]
    opened = [use(True, 2, ("open(place)", "here(place)"), open_place=False)]
    assert effects(opened) == ["open(place)"]
    assert effects([*opened, use(True, 1, (), open_place=False)]) == []
