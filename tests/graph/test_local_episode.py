"""A real language model plays a real game, from the command line to the last observation."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rpms import arun_episode
from rpms.commands import main as cli
from rpms.envs.manuals import load_manual
from rpms.models import forget_models
from rpms.vocabulary.context import RunContext

pytestmark = [pytest.mark.local, pytest.mark.engine]
STEPS = 2


def run(*words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> dict:  # type: ignore[type-arg]
    monkeypatch.setattr(sys, "argv", ["rpms", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    result: dict = json.loads(capsys.readouterr().out)  # type: ignore[type-arg]
    return result


def test_an_episode_with_a_real_model(
    local_model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is too weak to win; every part of the way to and from it must work."""
    words = ["run", "--model", local_model, "--task", "3", "--condition", "A", "--json",
             "--max-steps", str(STEPS), "--set", "constrain=grammar",
             "--set", "examples=0"]  # fmt: skip
    result = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert result["model"] == local_model
    assert (result["failure_mode"], result["error"]) == ("timeout", "")
    assert result["steps"] == len(result["history"]) == STEPS
    assert result["format_errors"] == 0
    _only_actions(result["history"])
    assert result["prompt_tokens"] > 200 * STEPS
    # Without knowledge blocks the prompt only grows, so all but the newest turn is kept.
    assert result["cached_tokens"] > 0.3 * result["prompt_tokens"]

    # The same again on an event loop, with most of it read before. The words may differ: a prefix
    # that is reused rounds differently from one that is read again.
    forget_models()
    context = RunContext.for_condition("A", model=local_model, max_steps=STEPS, examples=0,
                                       constrain="grammar")  # fmt: skip
    again = asyncio.run(arun_episode(3, context=context))
    assert (again["steps"], again["error"], again["format_errors"]) == (STEPS, "", 0)
    _only_actions(again["history"])
    assert again["cached_tokens"] > 0.6 * again["prompt_tokens"]


def _only_actions(history: Sequence[Mapping[str, Any]]) -> None:
    rules = load_manual("alfworld").actions
    for turn in history:
        assert any(rule.pattern.match(turn["action"]) for rule in rules), turn
