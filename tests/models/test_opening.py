from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from rpms.models import SimPlanner, open_model
from rpms.vocabulary.errors import RpmsError
from tests.openai_server import Answer, OpenAIServer


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    open_model.cache_clear()


def refusal(attempt: Callable[[], Any]) -> str:
    with pytest.raises(RpmsError) as caught:
        attempt()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


def test_sim() -> None:
    assert isinstance(open_model("sim"), SimPlanner)


@pytest.mark.parametrize("name", ["", "gpt-4o", "sim2", ":", "openai:", ":gpt-4o", "SIM"])
def test_unknown_model(name: str) -> None:
    message = refusal(lambda: open_model(name))
    assert message.startswith(f"unknown model '{name}'; use 'sim', or PROVIDER:NAME")


def test_unknown_provider() -> None:
    assert "acme:large" in refusal(lambda: open_model("acme:large"))


@pytest.mark.parametrize(
    ("name", "key"),
    [("openai:gpt-4o-mini", "OPENAI_API_KEY"), ("anthropic:claude", "ANTHROPIC_API_KEY")],
)
def test_missing_key(name: str, key: str) -> None:
    message = refusal(lambda: open_model(name))
    assert message.startswith(f"model '{name}' needs a key: set {key}")
    assert "--base-url" in message


def test_a_provider_whose_package_is_missing_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setitem(sys.modules, "langchain_anthropic", None)
    message = refusal(lambda: open_model("anthropic:claude"))
    assert message == "provider 'anthropic' is not installed: pip install 'rpms[anthropic]'"


def test_a_server_of_ones_own_needs_no_key(openai_server: OpenAIServer) -> None:
    openai_server.plays("Action: look")
    model = open_model("openai:local", base_url=openai_server.url)
    assert isinstance(model, BaseChatModel)
    assert model.invoke("hello").text == "Action: look"
    assert openai_server.requests[0]["model"] == "local"


def test_a_key_that_is_set_is_sent(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1")
    open_model("openai:local", base_url=openai_server.url).invoke("hello")
    assert openai_server.headers[0]["authorization"] == "Bearer secret-1"


def test_decoding_settings_reach_the_server(openai_server: OpenAIServer) -> None:
    open_model("openai:m", 0.25, 99, 5.0, openai_server.url).invoke("hello")
    sent = openai_server.requests[0]
    assert sent["temperature"] == 0.25
    assert sent.get("max_tokens", sent.get("max_completion_tokens")) == 99


def test_the_client_itself_never_retries(openai_server: OpenAIServer) -> None:
    openai_server.plays(Answer(status=500))
    with pytest.raises(Exception, match="500"):
        open_model("openai:m", base_url=openai_server.url).invoke("hello")
    assert len(openai_server.requests) == 1


def test_the_same_settings_share_a_client() -> None:
    one = open_model("openai:m", base_url="http://127.0.0.1:1/v1")
    assert open_model("openai:m", base_url="http://127.0.0.1:1/v1") is one
    assert open_model("openai:m", 0.5, base_url="http://127.0.0.1:1/v1") is not one
