"""The closest call of an episode; the demo's own test asks the real model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from rpms.vocabulary.errors import RpmsError
from tools import reply_margins
from tools.reply_margins import Margin, least_margin

LOG = {
    "messages": ["the task", "go north", "there is no north", "an observation"],
    "steps": [
        {"step": 1, "prompt": [["user", 0]], "vetoes": [["assistant", 1], ["user", 2]]},
        {"step": 2, "prompt": [["user", 3]]},
        {"step": 3},  # interrupted before its prompt
    ],
}


class Surer:
    """A model that is the surer the fewer messages it reads."""

    asked: list[list[str]]

    def __init__(self) -> None:
        self.asked = []

    def invoke(self, prompt: list[Any], **options: Any) -> Any:
        assert options == {"logprobs": True, "top_logprobs": 2}
        self.asked.append([message["content"] for message in prompt])
        pair = [
            {"token": "go", "logprob": -1.0},
            {"token": "look", "logprob": -1.0 - 6.0 / len(prompt)},
        ]
        logprobs = {"content": [{"top_logprobs": pair}]}
        return SimpleNamespace(response_metadata={"logprobs": logprobs})


def test_the_closest_call_is_found_in_every_prompt_also_after_a_veto() -> None:
    model = Surer()
    assert least_margin(LOG, model) == Margin(2.0, 1, "go", "look")
    assert model.asked == [
        ["the task"], ["the task", "go north", "there is no north"], ["an observation"]
    ]  # fmt: skip


def test_an_episode_without_a_prompt_has_none() -> None:
    assert least_margin({"messages": [], "steps": [{"step": 1}]}, Surer()) is None


def test_a_model_without_log_probabilities_is_refused() -> None:
    with pytest.raises(RpmsError, match="no log-probabilities"):
        least_margin(LOG, GenericFakeChatModel(messages=iter([AIMessage("go")])))


def test_a_folder_that_is_no_run_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["reply_margins", str(tmp_path), "--model", "sim"])
    assert reply_margins.main() == 2
    assert capsys.readouterr().err.count("\n") == 1
