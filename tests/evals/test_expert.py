"""The expert's lessons, and the processes that play them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from rpms.envs import Task, get_environment
from rpms.evals.arms import Variant
from rpms.evals.expert import (
    Assignment,
    Lesson,
    assign,
    may_be_trained_on,
    play,
    refuse_judged,
    taught,
)
from rpms.graph import build_graph
from rpms.models.controls import answer
from rpms.nodes.manual import load_manual
from rpms.nodes.reply import read_action
from rpms.nodes.state import EpisodeInput
from rpms.vocabulary.context import RunContext
from rpms.vocabulary.errors import RpmsError
from tests.processes import children, wait_until, wait_until_gone

SPLIT = "generated_seen"
ROLES = {"system": "system", "human": "user", "ai": "assistant"}


def homes(count: int) -> list[Task]:
    return get_environment("alfworld").tasks(SPLIT, count)


def lesson(number: int, letter: str, mistakes: float = 0.0, **settings: Any) -> Lesson:
    context = RunContext.for_condition(letter, **settings)
    return play(Assignment(homes(number + 1)[number], letter, context, {}, mistakes, seed=1))


class Parrot(BaseChatModel):
    """Says what it was given, and keeps what it was asked."""

    replies: list[str]
    asked: list[list[dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append([{"role": ROLES[m.type], "content": m.text} for m in messages])
        return answer(self.replies[len(self.asked) - 1], messages, "parrot")


@pytest.mark.engine
@pytest.mark.parametrize(
    ("letter", "settings"),
    [
        ("A", {}),
        ("B", {}),
        ("C", {}),
        ("D", {"layout": "cache_friendly"}),
        ("B", {"guard": "verify"}),
    ],
)
def test_the_prompts_are_those_of_a_run(letter: str, settings: dict[str, Any]) -> None:
    found = lesson(3, letter, 0.3, **settings)
    parrot = Parrot(replies=[one.reply for one in found.decisions], asked=[])
    context = RunContext.for_condition(letter, **settings)
    asked = EpisodeInput(env="alfworld", split=SPLIT, task=found.about["task"])
    result = build_graph(model=parrot).invoke(asked, context=context)
    assert parrot.asked == [one.prompt for one in found.decisions]
    assert bool(result["success"]) == found.won


@pytest.mark.engine
def test_every_mistake_is_followed_by_recovery_and_none_is_a_target() -> None:
    lessons = [lesson(number, "B", 0.4) for number in range(4)]
    assert any(found.won for found in lessons)
    decided = [one.target for found in lessons for one in found.decisions]
    assert decided.count(False) > 4
    for found in lessons:
        targets = [one.target for one in found.decisions]
        assert targets[0]
        assert (False, False) not in pairwise(targets)
    plain = lesson(0, "B")
    assert all(one.target for one in plain.decisions) and plain.won


@pytest.mark.engine
def test_replies_have_a_thought_and_an_action() -> None:
    for one in lesson(2, "D").decisions:
        reply = read_action(one.reply, "alfworld", load_manual("alfworld"))
        assert reply.action and reply.thought
        assert one.reply == f"Thought: {reply.thought}\nAction: {reply.action}"


@pytest.mark.engine
def test_memory_is_followed_where_it_is_shown() -> None:
    found = [lesson(number, letter) for number in range(6) for letter in "AC"]
    followed = Counter(
        one.about["condition"] for one in found for said in one.decisions
        if "was found in such places before" in said.reply
    )  # fmt: skip
    assert followed["A"] == 0 < followed["C"]


@pytest.mark.engine
def test_the_same_seed_gives_the_same_lessons_on_any_number_of_processes() -> None:
    arms = [(letter, Variant(RunContext.for_condition(letter))) for letter in "AB"]
    here = [*taught(assign(homes(4), arms, 0.3, 7), 0)]
    assert [*taught(assign(homes(4), arms, 0.3, 7), 2)] == here
    assert [*taught(assign(homes(4), arms, 0.3, 8), 0)] != here


def test_lessons_are_played_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []
    monkeypatch.setattr("rpms.evals.expert.play", lambda one: played.append(one))
    lessons = taught(iter(range(1000)), 0)  # type: ignore[arg-type]
    next(lessons)
    next(lessons)
    assert played == [0, 1]


def test_every_goal_type_gets_every_arm() -> None:
    arms = [(letter, Variant(RunContext.for_condition(letter))) for letter in "ABCD"]
    world = get_environment("alfworld")
    given = {
        (world.parse_goal(one.task["goal"])["type"], one.label)
        for one in assign(homes(24), arms, 0.0, 0)
    }
    assert len(given) == 24


@pytest.mark.parametrize(("env", "split", "may"), [
    ("alfworld", "generated_seen", True), ("alfworld", "generated_unseen", True),
    ("alfworld", "train", True), ("alfworld", "valid_train", False),
    ("alfworld", "valid_seen", False), ("alfworld", "valid_unseen", False),
    ("scienceworld", "train", True), ("scienceworld", "train_mini", True),
    ("scienceworld", "dev", False), ("scienceworld", "dev_mini", False),
    ("scienceworld", "test", False),
])  # fmt: skip
def test_nothing_is_trained_on_what_judges(env: str, split: str, may: bool) -> None:
    assert may_be_trained_on(env, split) == may
    if not may:
        with pytest.raises(RpmsError, match=f"nothing is trained on {env} {split}"):
            refuse_judged(env, split)


CALLED = [
    *("-m", "rpms", "export", "--format", "chat", "--expert"),
    *("--limit", "400", "--workers", "2", "--out"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes")
@pytest.mark.parametrize("when", ["they are starting", "they play"])
def test_nobody_plays_on_when_the_writer_is_killed(tmp_path: Path, when: str) -> None:
    out = tmp_path / "lines.jsonl"
    with subprocess.Popen([sys.executable, *CALLED, str(out)], stderr=subprocess.DEVNULL) as writer:
        try:
            if when == "they play":
                wait_until(lambda: out.exists() and out.stat().st_size, writer)
            # Two who play, and the process with which Python tidies up after them.
            wait_until(lambda: len(children(writer.pid)) >= 3, writer)
            started = children(writer.pid)
        finally:
            writer.kill()
    wait_until_gone(started)
