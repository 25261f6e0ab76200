"""Methods by name and by path, what is refused before the first step, and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rpms import RunContext
from rpms.envs import get_environment
from rpms.memory_store import Note
from rpms.memory_store.methods import (
    METHODS,
    Ask,
    Learned,
    RecallRequest,
    Writer,
    after_trial,
    can_write,
    check_memory,
    file_of,
    find_method,
)
from rpms.memory_store.methods.note_method import NoteMethod, candidate
from rpms.memory_store.methods.writing import tidy
from rpms.models import retrying
from rpms.models.reply_cache import cached_replies
from rpms.models.retrying import FIRST_TRIES, RETRY
from rpms.vocabulary.errors import RpmsError
from rpms.vocabulary.recall import Recall
from rpms.vocabulary.turn import EpisodeRecord
from tests.memory_store.methods.samples import context, frozen, prompts_of, record
from tests.openai_server import Answer, OpenAIServer


class Slogan(NoteMethod):
    """A method of one's own, in ten lines."""

    name = "slogan"
    needs_file = False

    def recall(self, request: RecallRequest) -> list[Recall]:
        return [candidate(Note(id="s", kind="slogan", text="Keep calm."), request)]

    async def learn(self, records: Sequence[EpisodeRecord], ask: Ask | None) -> Learned:
        return Learned([])


HERE = "tests.memory_store.methods.test_registry:Slogan"


def test_who_carries_and_who_is_frozen() -> None:
    assert list(METHODS) == [
        "rpms", "trajectories", "reflexion", "expel", "awm", "langmem",
    ]  # fmt: skip
    assert [name for name, method in METHODS.items() if method.cumulative] == [
        "rpms", "reflexion"
    ]  # fmt: skip
    assert [name for name, method in METHODS.items() if not method.needs_file] == [
        "rpms", "reflexion"
    ]  # fmt: skip
    assert find_method("expel") is find_method("expel")


@pytest.mark.engine
def test_a_method_of_ones_own_plays() -> None:
    for text, recalls in prompts_of(0, RunContext(memory_method=HERE, max_steps=2)):
        assert "[Past Experience]\n  SLOGAN: Keep calm." in text and len(recalls) == 1


def test_wrong_names_are_answered_in_one_line() -> None:
    for name, words in (
        ("exple", "unknown memory method 'exple'; choose from rpms, "),
        ("no.such:Thing", "cannot load memory method 'no.such:Thing'"),
        ("json:dumps", "is no subclass of"),
    ):
        with pytest.raises(RpmsError, match=words) as error:
            find_method(name)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["expel", "awm", "trajectories"])
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
    cross_trial_memory = await own.carry({}, record(), None)  # type: ignore[arg-type]
    again = await own.carry(cross_trial_memory, record(), None)  # type: ignore[arg-type]
    assert cross_trial_memory["entries"] and len(again["entries"]) == len(
        cross_trial_memory["entries"]
    )


async def test_what_is_written_is_counted_over_the_trials(openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer("Plan: a", usage=(50, 5)))
    run = context(openai_server, memory_method="reflexion", guard="procedure", temperature=0.3)
    first = await after_trial("alfworld", run, {}, record(success=False))
    second = await after_trial("alfworld", run, first, record(success=False))
    assert second["spent"] == {"model_calls": 2, "prompt_tokens": 100, "output_tokens": 10}
    sent = openai_server.requests[0]
    assert sent["temperature"] == 0.3 and "response_format" not in sent
    assert max(sent.get("max_tokens") or 0, sent.get("max_completion_tokens") or 0) == 1024


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = RETRY._replace(initial_interval=0.01, max_interval=0.01, jitter=False)
    monkeypatch.setattr("rpms.models.retrying.RETRY", quick)


@pytest.mark.usefixtures("quickly")
async def test_errors_that_may_pass_are_tried_again_and_others_are_raised(
    openai_server: OpenAIServer,
) -> None:
    run = context(openai_server, memory_method="reflexion")
    openai_server.plays(Answer(status=503), "Plan: a")
    cross_trial_memory = await after_trial("alfworld", run, {}, record(success=False))
    assert cross_trial_memory["reflections"] == ["a"] and len(openai_server.requests) == 2
    openai_server.plays(Answer(status=400, error="no such thing"))
    with pytest.raises(Exception, match="no such thing"):
        await after_trial("alfworld", run, {}, record(success=False))
    assert len(openai_server.requests) == 1


@pytest.mark.usefixtures("quickly")
async def test_no_reply_in_time_is_an_error(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrying, "RETRY_DEADLINE_S", 0.0)
    openai_server.plays(Answer(wait=True))
    run = context(openai_server, memory_method="reflexion", timeout_s=0.1)
    with pytest.raises(Exception, match=r"no reply|timed out"):
        await after_trial("alfworld", run, {}, record(success=False))
    assert 1 <= len(openai_server.requests) <= FIRST_TRIES


async def test_a_reply_from_the_cache_costs_nothing(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.plays("Plan: a")
    run = context(openai_server, memory_method="reflexion")
    for calls in (1, 0):
        with cached_replies(str(tmp_path / "replies")):
            cross_trial_memory = await after_trial("alfworld", run, {}, record(success=False))
        assert (
            cross_trial_memory["reflections"] == ["a"]
            and cross_trial_memory["spent"]["model_calls"] == calls
        )


async def test_the_planner_writes_nothing_and_says_so() -> None:
    assert not can_write("sim") and not can_write("random") and can_write("openai:x")
    with pytest.raises(RpmsError, match=r"'reflexion' has its texts written .* 'sim' writes none"):
        await after_trial(
            "alfworld", RunContext(memory_method="reflexion"), {}, record(success=False)
        )
    with pytest.raises(RpmsError, match="give --model PROVIDER:NAME"):
        Writer("alfworld", RunContext(), "expel")


@pytest.mark.parametrize("name", ["trajectories", "awm"])
async def test_a_frozen_method_carries_nothing_and_asks_nobody(name: str) -> None:
    run = RunContext(memory_method=name)
    assert await after_trial("alfworld", run, {"method": name}, record(success=False)) == {}
    off = RunContext(memory_method="reflexion", memory=False)
    assert await after_trial("alfworld", off, {}, record(success=False)) == {}


def test_texts_are_tidied() -> None:
    assert tidy("\n a \n\n\nb\n") == "a\nb" and len(tidy("x" * 9999)) == 2000
