from __future__ import annotations

import pytest

from rpms.envs import get_environment
from rpms.models.constrained import ConstrainedModel
from rpms.nodes.chat import open_chat
from rpms.vocabulary.context import RunContext

SERVER = RunContext(model="openai:small", base_url="http://127.0.0.1:9/v1")


@pytest.mark.parametrize("env", ["alfworld", "scienceworld"])
def test_the_world_sets_the_length_of_replies_unless_the_run_does(env: str) -> None:
    usual = open_chat(env, SERVER)
    assert getattr(usual, "max_tokens") == get_environment(env).max_tokens  # noqa: B009
    assert getattr(open_chat(env, SERVER.with_(max_tokens=77)), "max_tokens") == 77  # noqa: B009


@pytest.mark.parametrize("settings", [{"constrain": "grammar"}, {"guard": "policy"}])
def test_replies_are_held_where_the_run_asks_for_it(settings: dict[str, str]) -> None:
    held = open_chat("alfworld", SERVER.with_(**settings))
    assert isinstance(held, ConstrainedModel)
    assert "go to {place}" in held.syntaxes
    assert not isinstance(open_chat("alfworld", SERVER), ConstrainedModel)
