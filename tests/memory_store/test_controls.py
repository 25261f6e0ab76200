"""Controls spoil a memory in exactly one way each, and always the same way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from langchain_core.messages.utils import count_tokens_approximately

from rpms.memory_store import Entry, MemoryIndex, read_snapshot
from rpms.memory_store.controls import CONTROLS, Control, controlled, filler
from rpms.memory_store.entries import CriticalFailure, Failure, Found, Schema, Success
from rpms.nodes.context import RunContext
from rpms.vocabulary.goal import read_signature

SNAPSHOT = Path(__file__).parents[2] / "rpms" / "memory_store" / "snapshots" / "alfworld.jsonl"


@pytest.fixture(scope="module")
def memory() -> list[Entry]:
    return read_snapshot(SNAPSHOT)[1]


def of_goals(entries: list[Entry]) -> dict[str, Success | Failure | CriticalFailure]:
    return {one.id: one for one in entries if not isinstance(one, Schema | Found)}


def test_the_setting_knows_every_control() -> None:
    assert CONTROLS == ("none", "empty", "shuffled", "irrelevant", "corrupted", "filler")
    for control in CONTROLS:
        assert RunContext().with_(memory_control=control).memory_control == control


@pytest.mark.parametrize("control", CONTROLS)
def test_controls_are_pure_and_seeded(memory: list[Entry], control: Control) -> None:
    before = [one.model_dump_json() for one in memory]
    first = controlled(memory, control, seed=3)
    assert first == controlled(memory, control, seed=3)
    assert [one.model_dump_json() for one in memory] == before
    if control in ("shuffled", "irrelevant", "corrupted"):
        assert first != controlled(memory, control, seed=4)
        assert first != memory


def test_empty_has_nothing_and_filler_looks_in_the_memory_itself(memory: list[Entry]) -> None:
    assert controlled(memory, "empty") == []
    assert controlled(memory, "none") == controlled(memory, "filler") == memory


def test_shuffled_keeps_every_entry_and_every_goal_but_not_together(memory: list[Entry]) -> None:
    found = controlled(memory, "shuffled")
    before, after = of_goals(memory), of_goals(found)
    assert list(before) == list(after) and len(found) == len(memory)
    goals = [[one.goal_signature for one in side.values()] for side in (before, after)]
    assert Counter(goals[0]) == Counter(goals[1])
    moved = sum(one.goal_signature != after[name].goal_signature for name, one in before.items())
    assert moved > 0.9 * len(before)
    for name, one in before.items():
        same = after[name].model_copy(update={"goal_signature": one.goal_signature})
        assert same == one
    schemas = [[one for one in side if isinstance(one, Schema)] for side in (memory, found)]
    assert schemas[0] == schemas[1] != []


def test_shuffled_finds_tell_of_other_things(memory: list[Entry]) -> None:
    before, after = (MemoryIndex.of(side) for side in (memory, controlled(memory, "shuffled")))
    kinds = {kind for one in memory if isinstance(one, Found) for kind in one.objects}
    places = [[index.places_of(kind) for kind in sorted(kinds)] for index in (before, after)]
    assert sorted(map(str, places[0])) == sorted(map(str, places[1]))
    assert sum(one != other for one, other in zip(*places, strict=True)) > 0.8 * len(kinds)


def test_irrelevant_answers_every_goal_with_other_types_alone(memory: list[Entry]) -> None:
    before = of_goals(memory)
    found = controlled(memory, "irrelevant")
    after = of_goals(found)
    assert len(after) == len(found) > 0.9 * len(before)
    index = MemoryIndex.of(found)
    answered = 0
    for signature in {one.goal_signature for one in before.values()}:
        goal = read_signature(signature)
        for candidate in index.recall(goal, 0.6, 3):
            recorded = before[candidate.entry["id"]].goal_signature
            assert read_signature(recorded).type != goal.type
            answered += 1
    assert answered > 100


def test_irrelevant_of_one_type_is_nothing(memory: list[Entry]) -> None:
    kind = next(iter(of_goals(memory).values())).goal_signature.split(":")[0]
    mine = [one for one in of_goals(memory).values() if one.goal_signature.startswith(kind)]
    assert len(mine) > 3 and controlled(mine, "irrelevant") == []


def test_corrupted_tells_success_as_failure_and_back(memory: list[Entry]) -> None:
    after = of_goals(controlled(memory, "corrupted"))
    turned = []
    for name, one in of_goals(memory).items():
        other = after[name]
        assert (other.goal_signature, other.state_signature) == (
            one.goal_signature, one.state_signature
        )  # fmt: skip
        if not isinstance(one, Success):
            assert isinstance(other, Success) and other.actions == [one.failed_action]
        elif isinstance(other, Failure):
            turned.append(one)
            assert other.failed_action == one.actions[-1] and other.lifted == one.lifted[-1]
    snippets = sum(isinstance(one, Success) for one in of_goals(memory).values())
    assert 0.35 < len(turned) / snippets < 0.65


def test_corrupted_sends_to_the_wrong_tool_and_place(memory: list[Entry]) -> None:
    found = controlled(memory, "corrupted")
    after = of_goals(found)
    tools = {"heat": "microwave", "cool": "fridge", "clean": "sinkbasin"}
    seen = 0
    for one in of_goals(memory).values():
        other = after[one.id]
        if not (isinstance(one, Success) and isinstance(other, Success)):
            continue
        for step, wrong in zip(one.lifted, other.lifted, strict=True):
            assert step.split()[0] == wrong.split()[0]
            tool = tools.get(step.split()[0])
            if tool:
                seen += 1
                assert f"{{a {tool}}}" in step and f"{{a {tool}}}" not in wrong
    assert seen > 20
    places = [[one.place for one in side if isinstance(one, Found)] for side in (memory, found)]
    assert len(places[0]) == len(set(places[1])) > 10
    assert all(one != other for one, other in zip(*places, strict=True))


def test_corrupted_schemas_say_the_effect_where_the_need_is(memory: list[Entry]) -> None:
    after = {one.id: one for one in controlled(memory, "corrupted") if isinstance(one, Schema)}
    before = [one for one in memory if isinstance(one, Schema)]
    assert before and any(one.effects for one in before)
    for one in before:
        assert after[one.id].preconditions == one.effects
        assert after[one.id].effects == one.preconditions


NEUTRAL = "The quick brown fox jumps over nothing."


@pytest.mark.parametrize(
    "text",
    ["", "a", "[Past Experience]\n  OK: go to desk 1 -> take mug 1 from desk 1\n\nx", "l\nm"],
)
def test_filler_has_as_many_lines_letters_and_tokens(text: str) -> None:
    found = filler(text, NEUTRAL)
    assert [len(line) for line in found.split("\n")] == [len(line) for line in text.split("\n")]
    told = [count_tokens_approximately([{"role": "user", "content": one}]) for one in (text, found)]
    assert told[0] == told[1]
    words = set(found.replace(".", " ").split())
    assert words <= set(NEUTRAL.replace(".", " ").split())
