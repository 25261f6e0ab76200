"""A person approves, changes and refuses, and the model reads why."""

from __future__ import annotations

import builtins
import runpy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import Field

from rpms import RunContext

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "approval.py"


class Listening(GenericFakeChatModel):
    """Says what is scripted, and keeps the last message each time."""

    heard: list[str] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.heard.append(messages[-1].text)
        return super()._generate(messages, *args, **kwargs)


@pytest.mark.engine
@pytest.mark.parametrize("guard", ["off", "offer"])
def test_approve_change_refuse(guard: str) -> None:
    replies = ["look", "look", "go to shelf 1", "inventory"]
    model = Listening(messages=iter([AIMessage(f"Action: {action}") for action in replies]))
    edit = {"type": "edit", "action": "inventory"}
    reject = {"type": "reject", "message": "Not the shelf."}
    answers = iter([{"type": "approve"}, edit, reject, {"type": "approve"}])
    questions = []

    def answer(question: dict[str, Any]) -> dict[str, str]:
        questions.append(question["action"])
        return next(answers)

    context = RunContext.for_condition("A", max_steps=3, guard=guard)
    result = runpy.run_path(str(SCRIPT))["play"](answer, context=context, model=model)
    assert questions == replies
    played = [turn["action"] for turn in result["history"]]
    assert played == ["look", "inventory", "inventory"]
    assert model.heard[-1] == "That was refused: Not the shelf. Choose another action."
    assert (result["steps"], result["model_calls"]) == (3, 4)


@pytest.mark.engine
def test_at_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["look", "no, not yet."])
    monkeypatch.setattr(builtins, "input", lambda _: next(typed, ""))
    script = runpy.run_path(str(SCRIPT))
    script["play"](script["ask"], context=RunContext(max_steps=3))
    out = capsys.readouterr().out
    assert out.count("The agent would: ") == 4
