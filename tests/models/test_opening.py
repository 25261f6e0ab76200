"""Models by name: what opens, what is refused and how, and the list of all names.

langchain-community is a stand-in here: the package itself is an extra nobody needs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from pydantic import Field

from rpms.models import SimPlanner, open_model, opening
from rpms.models.opening import LABELS, Choice, choices, is_own
from rpms.models.weights import catalogue, folder
from rpms.vocabulary.errors import RpmsError
from tests.command_line import in_process
from tests.openai_server import Answer, OpenAIServer


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*opening.KEYS.values(), "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    open_model.cache_clear()


def refusal(name: str, **settings: Any) -> str:
    with pytest.raises(RpmsError) as caught:
        open_model(name, **settings)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400
    return message


@pytest.mark.parametrize("name", ["", "gpt-4o", "sim2", ":", "openai:", ":gpt-4o", "SIM"])
def test_unknown_model(name: str) -> None:
    assert isinstance(open_model("sim"), SimPlanner)
    assert refusal(name).startswith(f"unknown model '{name}'; use 'sim', or PROVIDER:NAME")


def test_unknown_provider() -> None:
    assert "acme:large" in refusal("acme:large")


@pytest.mark.parametrize(
    ("name", "key"),
    [("openai:gpt-4o-mini", "OPENAI_API_KEY"), ("anthropic:claude", "ANTHROPIC_API_KEY")],
)
def test_missing_key(name: str, key: str) -> None:
    message = refusal(name)
    assert message.startswith(f"model '{name}' needs a key: set {key}") and "--base-url" in message


def test_decoding_settings_reach_a_server_that_needs_no_key(openai_server: OpenAIServer) -> None:
    openai_server.plays("Action: look")
    model = open_model("openai:local", 0.25, 99, 5.0, openai_server.url)
    assert model.invoke("hello").text == "Action: look"
    sent = openai_server.requests[0]
    assert (sent["model"], sent["temperature"]) == ("local", 0.25)
    assert sent.get("max_tokens", sent.get("max_completion_tokens")) == 99


def test_a_key_that_is_set_is_sent_and_the_client_itself_never_retries(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1")
    openai_server.plays(Answer(status=500))
    with pytest.raises(Exception, match="500"):
        open_model("openai:local", base_url=openai_server.url).invoke("hello")
    assert len(openai_server.requests) == 1
    assert openai_server.headers[0]["authorization"] == "Bearer secret-1"


def test_the_same_settings_share_a_client() -> None:
    model = open_model("openai:m", base_url="http://127.0.0.1:1/v1")
    assert open_model("openai:m", base_url="http://127.0.0.1:1/v1") is model
    assert open_model("openai:m", 0.5, base_url="http://127.0.0.1:1/v1") is not model


OWN = """
from langchain_core.language_models.fake_chat_models import FakeListChatModel

given = {}


def make(seed, temperature=9.0):
    given.update(seed=seed, temperature=temperature)
    return FakeListChatModel(responses=["Action: look"])


ready = FakeListChatModel(responses=["Action: inventory"])
seven = lambda: 7
"""


@pytest.mark.parametrize("module", ["own_chat_module", "own_package.chat", "groq_of_mine"])
def test_a_model_of_ones_own_by_its_import_path(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    for known in (module, module.partition(".")[0]):  # another test's module of that name
        monkeypatch.delitem(sys.modules, known, raising=False)
    assert is_own(f"{module}:make")
    assert open_model(f"{module}:make", 0.5, seed=3).invoke("hello").text == "Action: look"
    assert sys.modules[module].given == {"seed": 3, "temperature": 0.5}
    assert open_model(f"{module}:ready").invoke("hello").text == "Action: inventory"
    assert "makes a int, not a LangChain" in refusal(f"{module}:seven")
    message = refusal(f"{module}:nothing")
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


class ChatSomething(FakeListChatModel):
    """Spells its options in its own way."""

    responses: list[str] = Field(default=["hello"])
    model_name: str = Field(alias="model")
    temperature: float = 1.0
    num_predict: int = 0
    request_timeout: float = 0.0


class ChatWithAddress(ChatSomething):
    base_url: str = ""


class ChatKeyless(ChatSomething):
    def __init__(self, **kwargs: Any) -> None:
        raise ValueError("Did not find some_api_key\nplease set it")


@pytest.fixture
def community(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("langchain_community.chat_models")
    for cls in (ChatSomething, ChatWithAddress, ChatKeyless):
        setattr(module, cls.__name__, cls)
    module.helper = print  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "langchain_community", ModuleType("langchain_community"))
    monkeypatch.setitem(sys.modules, "langchain_community.chat_models", module)


@pytest.mark.usefixtures("community")
def test_a_chat_model_of_the_community_by_the_name_of_its_class() -> None:
    model = open_model("community:ChatSomething:llama3:8b", 0.25, 99, 7.0)
    assert isinstance(model, ChatSomething) and model.invoke("hello").text == "hello"
    assert (model.model_name, model.temperature) == ("llama3:8b", 0.25)
    assert (model.num_predict, model.request_timeout) == (99, 7.0)
    model = open_model("community:ChatWithAddress:m", base_url="http://127.0.0.1:1")
    assert isinstance(model, ChatWithAddress) and model.base_url == "http://127.0.0.1:1"


@pytest.mark.usefixtures("community")
@pytest.mark.parametrize(
    ("name", "base_url", "message"),
    [
        ("ChatSomething", "", "use community:CLASS:NAME"),
        (":m", "", "use community:CLASS:NAME"),
        ("ChatNothing:m", "", "no chat model called 'ChatNothing'"),
        ("helper:m", "", "no chat model called 'helper'"),
        ("ChatSomething:m", "http://x", "'ChatSomething' takes no base url"),
        ("ChatKeyless:m", "", "ChatKeyless:m': Did not find some_api_key"),
    ],
)
def test_what_the_community_cannot_open(name: str, base_url: str, message: str) -> None:
    assert message in refusal(f"community:{name}", base_url=base_url)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("anthropic:claude", "langchain_anthropic", "anthropic"),
     ("community:ChatOllama:llama3", "langchain_community.chat_models", "community")],
)  # fmt: skip
def test_a_provider_whose_package_is_missing_names_the_extra(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setitem(sys.modules, "langchain_community", ModuleType("langchain_community"))
    monkeypatch.setitem(sys.modules, module, None)
    assert refusal(name) == f"provider '{extra}' is not installed: pip install 'rpms[{extra}]'"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Choice]:
    """What a machine without keys, packages and weights gets to see."""
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    return {choice.name: choice for choice in choices()}


def test_ours_work_everywhere_and_the_others_say_what_they_need(bare: dict[str, Choice]) -> None:
    ready = {name for name, choice in bare.items() if not choice.missing}
    assert ready == {*LABELS, "MODULE:NAME"}
    assert bare["local:smollm2"].missing == "run 'make local'"
    for name in catalogue():
        need = f"run 'make local' and run 'rpms models pull {name}'"
        assert bare[f"local:{name}"].missing == need
    assert bare["groq:NAME"].missing == "pip install langchain-groq and set GROQ_API_KEY"
    assert "'rpms[anthropic]'" in bare["anthropic:NAME"].missing


@pytest.mark.usefixtures("bare")
def test_a_key_and_weights_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: object())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-shown")
    name = next(iter(catalogue()))
    folder().mkdir(parents=True)
    (folder() / catalogue()[name].file).touch()
    now = {choice.name: choice for choice in choices()}
    assert not now["openai:NAME"].missing and not now[f"local:{name}"].missing
    assert now["anthropic:NAME"].missing == "set ANTHROPIC_API_KEY"
    assert "sk-not-shown" not in str(now)


def test_the_command_prints_all_of_them(
    bare: dict[str, Choice], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rpms = in_process(monkeypatch, capsys)
    done = rpms("models", "list")
    usable, _, rest = done.out.partition("Not yet")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    for name, choice in bare.items():
        assert name in (rest if choice.missing else usable)
    listed = json.loads(rpms("models", "list", "--json").out)
    assert {entry["name"] for entry in listed if entry["usable"]} == {*LABELS, "MODULE:NAME"}
