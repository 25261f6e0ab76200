"""A real language model plays a real game, from the command line to the last observation."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from models import open_model
from nodes.context import RunContext
from rpms import arun_episode, cli
from rules import load_manual

pytestmark = [pytest.mark.local, pytest.mark.engine]
STEPS = 3


def run(*words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> dict:  # type: ignore[type-arg]
    monkeypatch.setattr(sys, "argv", ["rpms", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    found: dict = json.loads(capsys.readouterr().out)  # type: ignore[type-arg]
    return found


def test_an_episode_with_a_real_model(
    local_model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is too weak to win; every part of the way to and from it must work."""
    words = ["run", "--model", local_model, "--task", "3", "--condition", "A", "--json",
             "--max-steps", str(STEPS), "--constrain", "grammar"]  # fmt: skip
    result = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert result["model"] == local_model
    assert (result["failure_mode"], result["error"]) == ("timeout", "")
    assert result["steps"] == len(result["history"]) == STEPS
    assert result["format_errors"] == 0
    rules = load_manual("alfworld").actions
    for turn in result["history"]:
        assert any(rule.pattern.match(turn["action"]) for rule in rules), turn
    assert result["prompt_tokens"] > 1000 * STEPS
    # Without knowledge blocks the prompt only grows, so all but the newest turn is kept.
    assert result["cached_tokens"] > 0.6 * result["prompt_tokens"] - 500

    # The same again on an event loop: the same actions, and nothing to read but what is new.
    open_model.cache_clear()
    context = RunContext.for_condition("A", model=local_model, max_steps=STEPS, constrain="grammar")
    again = asyncio.run(arun_episode(3, context=context))
    assert [turn["action"] for turn in again["history"]] == [
        turn["action"] for turn in result["history"]
    ]
    assert again["cached_tokens"] > 0.8 * again["prompt_tokens"]
