from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from rpms.models import SimPlanner, open_model
from rpms.models.opening import is_own
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


OWN = """
from langchain_core.language_models.fake_chat_models import FakeListChatModel

given = {}


def make(seed, temperature=9.0):
    given.update(seed=seed, temperature=temperature)
    return FakeListChatModel(responses=["Action: look"])


ready = FakeListChatModel(responses=["Action: inventory"])
seven = lambda: 7
"""


@pytest.fixture(params=["own_chat_module", "own_package.chat", "groq_of_mine"])
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's own, alone or within a package."""
    name = str(request.param)
    file = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    for known in (name, name.partition(".")[0]):  # another test's module of that name
        monkeypatch.delitem(sys.modules, known, raising=False)
    return name


def test_a_model_of_ones_own_by_its_import_path(module: str) -> None:
    assert is_own(f"{module}:make")
    made = open_model(f"{module}:make", temperature=0.5, seed=3)
    assert made.invoke("hello").text == "Action: look"
    assert sys.modules[module].given == {"seed": 3, "temperature": 0.5}
    assert open_model(f"{module}:ready").invoke("hello").text == "Action: inventory"


def test_what_is_no_model_is_refused(module: str) -> None:
    assert "makes a int, not a LangChain" in refusal(lambda: open_model(f"{module}:seven"))
    message = refusal(lambda: open_model(f"{module}:nothing"))
    assert message.startswith(f"cannot load the model '{module}:nothing'")


@pytest.mark.parametrize("name", ["openai:m", "anthropic:c", "groq:llama", "ollama:phi", "local:s"])
def test_a_providers_name_is_never_a_module(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with a module of that name at hand: who writes groq:llama means the provider."""
    (tmp_path / f"{name.partition(':')[0]}.py").write_text("llama = c = m = phi = s = 7")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not is_own(name)


@pytest.mark.parametrize("name", ["openai:gpt-4o-mini", "acme:a-b", "sim", "x:"])
def test_what_has_not_the_form_of_a_path_is_none(name: str) -> None:
    assert not is_own(name)
