"""Methods by name and by path, and what is refused before the first step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rpms import RunContext
from rpms.envs import get_environment
from rpms.memory_store import Note
from rpms.nodes.memories import (
    METHODS,
    Ask,
    Learned,
    RecallRequest,
    check_memory,
    file_of,
    find_method,
)
from rpms.nodes.memories.note_method import NoteMethod, candidate
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord
from tests.nodes.memories.samples import frozen, prompts_of, record


class Slogan(NoteMethod):
    """A method of one's own, in ten lines."""

    name = "slogan"
    needs_file = False

    def recall(self, request: RecallRequest) -> list[Recall]:
        return [candidate(Note(id="s", kind="slogan", text="Keep calm."), request)]

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        return Learned([])


HERE = "tests.nodes.memories.test_registry:Slogan"


def test_who_carries_and_who_is_frozen() -> None:
    assert list(METHODS) == [
        "rpms", "trajectories", "reflexion", "expel", "clin", "awm", "reasoningbank"
    ]  # fmt: skip
    assert [name for name, one in METHODS.items() if one.cumulative] == [
        "rpms", "reflexion", "clin"
    ]  # fmt: skip
    assert [name for name, one in METHODS.items() if not one.needs_file] == [
        "rpms", "reflexion", "clin"
    ]  # fmt: skip
    assert find_method("expel") is find_method("expel")


@pytest.mark.engine
def test_a_method_of_ones_own_plays() -> None:
    for text, recalls in prompts_of(0, RunContext(memory_method=HERE, max_steps=2)):
        assert "[Past Experience]\n  SLOGAN: Keep calm." in text and len(recalls) == 1


def test_wrong_names_are_answered_in_one_line() -> None:
    for name, told in (
        ("exple", "unknown memory method 'exple'; choose from rpms, "),
        ("no.such:Thing", "cannot load memory method 'no.such:Thing'"),
        ("json:dumps", "is no subclass of"),
    ):
        with pytest.raises(RpmsError, match=told) as error:
            find_method(name)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["expel", "awm", "trajectories", "reasoningbank"])
def test_a_frozen_method_asks_for_its_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(RpmsError, match=f"'rpms learn --method {name} --out FILE'"):
        check_memory("alfworld", RunContext(memory_method=name))
    shipped = str(get_environment("alfworld").memory)
    with pytest.raises(RpmsError, match="a memory of the method 'rpms', not of"):
        check_memory("alfworld", RunContext(memory_method=name, memory_file=shipped))
    with pytest.raises(RpmsError, match="cannot read memory file"):
        check_memory("alfworld", RunContext(memory_method=name, memory_file=str(tmp_path / "x")))
    check_memory("alfworld", RunContext(memory_method=name, memory=False))


async def test_our_own_refuses_the_others_file(tmp_path: Path) -> None:
    other = find_method("trajectories")
    file = frozen(other, await other.learn([record()], None), tmp_path)
    check_memory("alfworld", RunContext(memory_method="trajectories", memory_file=file))
    with pytest.raises(RpmsError, match="a memory of the method 'trajectories', not of 'rpms'"):
        check_memory("alfworld", RunContext(memory_file=file))


def test_which_file_a_run_reads() -> None:
    def file(**settings: Any) -> Path | None:
        return file_of("alfworld", RunContext(**settings))

    assert file() == get_environment("alfworld").memory
    assert file(memory_method="reflexion") is None
    assert file(memory_method="expel", memory_file="m.jsonl") == Path("m.jsonl")


async def test_our_own_learns_and_saves_as_ever(tmp_path: Path) -> None:
    own = find_method("rpms")
    file = frozen(own, await own.learn([record()], None), tmp_path)
    check_memory("alfworld", RunContext(memory_file=file))
    carried = await own.carry({}, record(), None)  # type: ignore[arg-type]
    again = await own.carry(carried, record(), None)  # type: ignore[arg-type]
    assert carried["entries"] and len(again["entries"]) == len(carried["entries"])
