"""Controls spoil a memory in exactly one way each, and always the same way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from langchain_core.messages.utils import count_tokens_approximately

from rpms.memory_store import (
    Entry,
    MemoryIndex,
    Note,
    controlled,
    controlled_notes,
    read_snapshot,
)
from rpms.memory_store.controls import CONTROLS, Control, filler
from rpms.memory_store.entries import CriticalFailure, Failure, Finds, Schema, Success
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.goal import read_signature

SNAPSHOT = Path(__file__).parents[2] / "rpms" / "memory_store" / "snapshots" / "alfworld.jsonl"


@pytest.fixture(scope="module")
def memory() -> list[Entry]:
    return read_snapshot(SNAPSHOT)[1]


def of_goals(entries: list[Entry]) -> dict[str, Success | Failure | CriticalFailure]:
    return {entry.id: entry for entry in entries if not isinstance(entry, Schema | Finds)}


@pytest.mark.parametrize("control", CONTROLS)
def test_controls_are_pure_and_seeded(memory: list[Entry], control: Control) -> None:
    before = [entry.model_dump_json() for entry in memory]
    first = controlled(memory, control, seed=3)
    assert first == controlled(memory, control, seed=3)
    assert [entry.model_dump_json() for entry in memory] == before
    if control in ("shuffled", "irrelevant", "corrupted", "conflict"):
        assert first != controlled(memory, control, seed=4)
        assert first != memory
    else:
        assert first == ([] if control == "empty" else memory)


def test_shuffled_keeps_every_entry_and_every_goal_but_not_together(memory: list[Entry]) -> None:
    spoiled = controlled(memory, "shuffled")
    before, after = of_goals(memory), of_goals(spoiled)
    assert list(before) == list(after) and len(spoiled) == len(memory)
    goals = [[entry.goal_signature for entry in side.values()] for side in (before, after)]
    assert Counter(goals[0]) == Counter(goals[1])
    moved = sum(
        entry.goal_signature != after[name].goal_signature for name, entry in before.items()
    )
    assert moved > 0.9 * len(before)
    for name, entry in before.items():
        same = after[name].model_copy(update={"goal_signature": entry.goal_signature})
        assert same == entry
    schemas = [[entry for entry in side if isinstance(entry, Schema)] for side in (memory, spoiled)]
    assert schemas[0] == schemas[1] != []


def test_shuffled_finds_tell_of_other_things(memory: list[Entry]) -> None:
    before, after = (MemoryIndex(side) for side in (memory, controlled(memory, "shuffled")))
    kinds = {kind for entry in memory if isinstance(entry, Finds) for kind in entry.objects}
    places = [[index.places_of(kind) for kind in sorted(kinds)] for index in (before, after)]
    assert sorted(map(str, places[0])) == sorted(map(str, places[1]))
    assert sum(mine != other for mine, other in zip(*places, strict=True)) > 0.8 * len(kinds)


def test_irrelevant_answers_every_goal_with_other_types_alone(memory: list[Entry]) -> None:
    before = of_goals(memory)
    spoiled = controlled(memory, "irrelevant")
    after = of_goals(spoiled)
    assert len(after) == len(spoiled) > 0.9 * len(before)
    index = MemoryIndex(spoiled)
    answered = 0
    for signature in {entry.goal_signature for entry in before.values()}:
        goal = read_signature(signature)
        for candidate in index.find(goal, 0.6, 3).candidates:
            recorded = before[candidate.entry["id"]].goal_signature
            assert read_signature(recorded).type != goal.type
            answered += 1
    assert answered > 100


def test_irrelevant_of_one_type_is_nothing(memory: list[Entry]) -> None:
    kind = next(iter(of_goals(memory).values())).goal_signature.split(":")[0]
    mine = [entry for entry in of_goals(memory).values() if entry.goal_signature.startswith(kind)]
    assert len(mine) > 3 and controlled(mine, "irrelevant") == []


def test_corrupted_is_wrong_in_every_entry(memory: list[Entry]) -> None:
    """Success told as failure and back; the wrong tool and place; effects where needs are."""
    spoiled = controlled(memory, "corrupted")
    tools = {"heat": "microwave", "cool": "fridge", "clean": "sinkbasin"}
    turned, snippets, tools_seen, finds = 0, 0, 0, []
    for entry, other in zip(memory, spoiled, strict=True):
        assert entry.id == other.id
        if isinstance(entry, Finds) and isinstance(other, Finds):
            finds.append(other.place)
            assert entry.place != other.place
        elif isinstance(entry, Schema) and isinstance(other, Schema):
            assert (other.preconditions, other.effects) == (entry.effects, entry.preconditions)
        elif isinstance(entry, Success) and isinstance(other, Success):
            snippets += 1
            for step, wrong in zip(entry.lifted, other.lifted, strict=True):
                assert step.split()[0] == wrong.split()[0]
                if tool := tools.get(step.split()[0]):
                    tools_seen += 1
                    assert f"{{a {tool}}}" in step and f"{{a {tool}}}" not in wrong
        elif isinstance(entry, Success):
            snippets, turned = snippets + 1, turned + 1
            assert isinstance(other, Failure) and other.failed_action == entry.actions[-1]
            assert other.lifted == entry.lifted[-1]
        else:
            assert isinstance(entry, Failure | CriticalFailure)
            assert isinstance(other, Success) and other.actions == [entry.failed_action]
            assert other.goal_signature == entry.goal_signature
            assert other.state_signature == entry.state_signature
    assert 0.35 < turned / snippets < 0.65 and tools_seen > 20
    assert len(finds) == len(set(finds)) > 10


def test_controls_of_notes() -> None:
    """Free text cannot be made wrong by rule."""
    notes = [
        Note(id=f"n{n}", kind="insight", text=f"text {n}", goal=f"goal {n}", goal_type=f"{n % 3}")
        for n in range(9)
    ]
    assert controlled_notes(notes, "none") == controlled_notes(notes, "filler") == notes
    assert controlled_notes(notes, "empty") == []
    shuffled = controlled_notes(notes, "shuffled", 1)
    assert shuffled != notes and shuffled == controlled_notes(notes, "shuffled", 1)
    assert sorted(note.goal for note in shuffled) == sorted(note.goal for note in notes)
    types = {note.id: note.goal_type for note in notes}
    wrong = controlled_notes(notes, "irrelevant", 1)
    assert wrong and all(note.goal_type != types[note.id] for note in wrong)
    texts = {note.id: note.text for note in notes}
    assert all(note.text == texts[note.id] for note in [*shuffled, *wrong])
    refused: tuple[Control, ...] = ("corrupted", "conflict")
    for control in refused:
        with pytest.raises(RpmsError, match=f"'{control}' works with memory_method 'rpms' only"):
            controlled_notes(notes, control)


NEUTRAL = "The quick brown fox jumps over nothing."


@pytest.mark.parametrize(
    "text",
    ["", "a", "[Past Experience]\n  OK: go to desk 1 -> take mug 1 from desk 1\n\nx", "l\nm"],
)
def test_filler_has_as_many_lines_letters_and_tokens(text: str) -> None:
    spoiled = filler(text, NEUTRAL)
    assert [len(line) for line in spoiled.split("\n")] == [len(line) for line in text.split("\n")]
    counts = [
        count_tokens_approximately([{"role": "user", "content": text}]) for text in (text, spoiled)
    ]
    assert counts[0] == counts[1]
    words = set(spoiled.replace(".", " ").split())
    assert words <= set(NEUTRAL.replace(".", " ").split())
