from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rpms.vocabulary.belief import (
    Belief,
    Event,
    copy_belief,
    empty_belief,
    kind_of,
    objects_at,
)  # fmt: skip

NAMES = st.sampled_from(["mug 1", "mug 2", "fridge 1", "drawer 10", "pen 3"])
LISTS = st.lists(NAMES, max_size=4)
BELIEFS = st.builds(
    Belief,
    location=st.none() | NAMES,
    reachable=LISTS,
    spots=st.dictionaries(NAMES, LISTS, max_size=3),
    holding=LISTS,
    containers=st.dictionaries(NAMES, st.sampled_from(["open", "closed"]), max_size=3),
    last_seen=st.dictionaries(NAMES, NAMES, max_size=3),
    also_at=st.dictionaries(NAMES, LISTS, max_size=3),
    places=LISTS,
    searched=LISTS,
    visible=LISTS,
    alike=st.dictionaries(NAMES, NAMES, max_size=2),
    flags=st.dictionaries(NAMES, st.sampled_from(["hot", "gas"]), max_size=3),
    events=st.lists(st.builds(Event, kind=st.just("focus"), thing=NAMES), max_size=3),
    disambiguation=st.dictionaries(st.sampled_from(["0", "1"]), NAMES, max_size=2),
    progress=st.integers(0, 5),
    records=st.dictionaries(NAMES, st.dictionaries(NAMES, NAMES, max_size=2), max_size=2),
    calls=st.lists(st.fixed_dictionaries({"tool": NAMES, "arguments": st.just({})}), max_size=2),
    owned=st.dictionaries(NAMES, LISTS, max_size=2),
)


def disturb(part: Any) -> None:
    """Change everything that can be changed inside a value."""
    if isinstance(part, list):
        for inner in part:
            disturb(inner)
        part.append("intruder 1")
    elif isinstance(part, dict):
        for inner in part.values():
            disturb(inner)
        part["intruder 1"] = "nowhere 1"


@given(BELIEFS)
def test_a_copy_is_equal_and_shares_nothing_but_past_calls(belief: Belief) -> None:
    before = copy.deepcopy(belief)
    twin = copy_belief(belief)
    assert twin == belief
    twin["calls"].clear()
    for part in twin.values():
        disturb(part)
    twin["location"], twin["progress"] = "intruder 1", 99
    assert belief == before == json.loads(json.dumps(belief))


def test_an_empty_belief_knows_nothing_and_is_new_each_time() -> None:
    first = empty_belief()
    assert first.keys() == Belief.__annotations__.keys() == copy_belief(first).keys()
    assert first["location"] is None and not any(first.values())
    for part in first.values():
        disturb(part)
    assert not any(empty_belief().values())


def test_kind_of() -> None:
    numbered = {"mug 2": "mug", "drawer 11": "drawer", "glass jar 3": "glass jar"}
    plain = ("mug", "glass jar", "unit b2", "2", " 2", "")
    assert {name: kind_of(name) for name in numbered} == numbered
    assert [kind_of(name) for name in plain] == [*plain]


def test_objects_at_keeps_the_order_of_sight() -> None:
    belief = empty_belief()
    belief["last_seen"] = {"pen 2": "desk 1", "mug 1": "shelf 1", "cd 1": "desk 1"}
    assert objects_at(belief, "desk 1") == ["pen 2", "cd 1"]
    assert objects_at(belief, "bed 1") == []
