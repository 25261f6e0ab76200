"""Models by name: what opens, what is refused and how, and the list of all names."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rpms.models import SimPlanner, forget_models, open_model, opening
from rpms.models.chat import warn_of_another_world
from rpms.models.opening import LABELS, ModelChoice, choices, is_import_path
from rpms.models.weights import catalogue, folder
from rpms.vocabulary.errors import RpmsError
from tests.command_line import Rpms
from tests.openai_server import Answer, OpenAIServer


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*opening.KEYS.values(), "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    forget_models()


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


async def ask_thrice(url: str, rounds: int = 1) -> None:
    model = open_model("openai:m", base_url=url)
    for _ in range(rounds):
        await asyncio.gather(*(model.ainvoke("hello") for _ in range(3)))


def test_a_model_answers_on_one_event_loop_after_another(openai_server: OpenAIServer) -> None:
    """A second ``asyncio.run``, without the retry that would hide a call that was lost."""
    for _ in range(3):
        asyncio.run(ask_thrice(openai_server.url))
    assert len(openai_server.requests) == 9


def test_a_model_answers_on_several_event_loops_in_turn(openai_server: OpenAIServer) -> None:
    """As with a loop in each of two threads: both are open."""
    with asyncio.Runner() as first, asyncio.Runner() as second:
        for loop in (first, second, first, second):
            loop.run(ask_thrice(openai_server.url))
    assert len(openai_server.requests) == 12


def test_an_event_loop_keeps_its_connections(openai_server: OpenAIServer) -> None:
    asyncio.run(ask_thrice(openai_server.url, 5))
    assert len(openai_server.connections) == 3


@pytest.mark.parametrize("variable", ["OPENAI_PROXY", "HTTP_PROXY"])
def test_calls_go_through_the_proxy_that_is_set(
    variable: str, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, openai_server.url.removesuffix("/v1"))
    model = open_model("openai:m", base_url="http://host.invalid/v1")
    assert model.invoke("hello").text == "Action: look"
    assert asyncio.run(model.ainvoke("hello")).text == "Action: look"


OWN = """
from langchain_core.language_models.fake_chat_models import FakeListChatModel

given = {}


def make(seed, temperature=9.0):
    given.update(seed=seed, temperature=temperature)
    return FakeListChatModel(responses=["Action: look"])


ready = FakeListChatModel(responses=["Action: inventory"])
seven = lambda: 7
"""


@pytest.mark.parametrize("module", ["own_chat_module", "own_package.chat"])
def test_a_model_of_ones_own_by_its_import_path(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    for known in (module, module.partition(".")[0]):  # another test's module of that name
        monkeypatch.delitem(sys.modules, known, raising=False)
    assert is_import_path(f"{module}:make")
    assert open_model(f"{module}:make", 0.5, seed=3).invoke("hello").text == "Action: look"
    assert sys.modules[module].given == {"seed": 3, "temperature": 0.5}
    assert open_model(f"{module}:ready").invoke("hello").text == "Action: inventory"
    assert "makes a int, not a LangChain" in refusal(f"{module}:seven")
    message = refusal(f"{module}:nothing")
    assert message.startswith(f"cannot load the model '{module}:nothing'")


@pytest.mark.parametrize(
    "name",
    [
        "openai:m",
        "anthropic:c",
        "local:s",
        "openai:gpt-4o-mini",
        "acme:a-b",
        "sim",
        "x:",
        "community:ChatTongyi",
    ],
)
def test_what_is_no_import_path_is_no_model_of_ones_own(name: str) -> None:
    assert not is_import_path(name)


def test_a_providers_name_is_not_its_clients_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who writes groq:llama means the provider, though a package of that name is there too."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "groq.py").touch()
    assert is_import_path("groq:llama")
    (tmp_path / "langchain_groq.py").touch()
    importlib.invalidate_caches()
    assert not is_import_path("groq:llama")


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("anthropic:claude", "langchain_anthropic", "'.[anthropic]'"),
        ("community:ChatTongyi:qwen-max", "langchain_community", "'.[community]'"),
    ],
)
def test_a_provider_whose_package_is_missing_names_the_extra(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setitem(sys.modules, package, None)
    message = refusal(name)
    assert f"'{name.split(':')[0]}'" in message and extra in message


COMMUNITY = """
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from pydantic import ConfigDict, Field, model_validator

__all__ = ["ChatElsewhere", "ChatNameless"]


class ChatElsewhere(FakeListChatModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    responses: list[str] = ["Action: look"]
    model_name: str = Field("none", alias="model")
    temperature: float = 9.0
    max_tokens: int = 0

    @model_validator(mode="before")
    @classmethod
    def has_key(cls, values: dict[str, Any]) -> dict[str, Any]:
        import os
        if "ELSEWHERE_KEY" not in os.environ:
            raise ValueError("Did not find ELSEWHERE_KEY")
        return values


class ChatNameless(FakeListChatModel):
    responses: list[str] = ["Action: inventory"]
"""


def test_a_chat_model_of_langchain_community_by_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each class gets the settings that it knows, in a package of the real one's shape."""
    (tmp_path / "langchain_community").mkdir()
    (tmp_path / "langchain_community" / "chat_models.py").write_text(COMMUNITY)
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("langchain_community", "langchain_community.chat_models"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    named = "community:ChatElsewhere:llama3:8b"
    assert refusal(named).endswith(f"'{named}': Value error, Did not find ELSEWHERE_KEY")
    monkeypatch.setenv("ELSEWHERE_KEY", "k")
    model: Any = open_model(named, 0.25, 99)
    assert (model.model_name, model.temperature, model.max_tokens) == ("llama3:8b", 0.25, 99)
    assert model.invoke("hello").text == "Action: look"
    assert open_model("community:ChatElsewhere").model_dump()["model_name"] == "none"
    assert open_model("community:ChatNameless").invoke("hello").text == "Action: inventory"
    assert refusal("community:ChatNameless:big").endswith("takes no name of a model")
    assert "takes no base URL" in refusal(named, base_url="http://127.0.0.1:1")
    assert "did you mean 'ChatElsewhere'?" in refusal("community:ChatElsewere:m")
    for module in ("langchain_community", "langchain_community.chat_models"):
        sys.modules.pop(module, None)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, ModelChoice]:
    """What a machine without keys, packages and weights gets to see."""
    monkeypatch.setenv("RPMS_CACHE", str(tmp_path))
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    return {choice.name: choice for choice in choices()}


def test_ours_work_everywhere_and_the_others_say_what_they_need(
    bare: dict[str, ModelChoice],
) -> None:
    ready = {name for name, choice in bare.items() if not choice.missing}
    assert ready == {*LABELS, "MODULE:NAME"}
    runtime = "run 'make local' or pip install -e '.[local]' in a clone of RPMS"
    assert bare["local:smollm2"].missing == runtime
    for name in catalogue():
        need = f"{runtime} and run 'rpms models pull {name}'"
        assert bare[f"local:{name}"].missing == need
    assert "'.[anthropic]'" in bare["anthropic:NAME"].missing
    assert "'.[community]'" in bare["community:CLASS:NAME"].missing


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
    bare: dict[str, ModelChoice], rpms: Rpms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = rpms("models", "list")
    usable, _, rest = done.out.partition("Not yet")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    for name, choice in bare.items():
        assert name in (rest if choice.missing else usable)
    listed = json.loads(rpms("models", "list", "--json").out)
    assert {entry["name"] for entry in listed if entry["usable"]} == {*LABELS, "MODULE:NAME"}


@pytest.mark.parametrize(("env", "warnings"), [("alfworld", 0), ("telecom", 1)])
def test_a_model_tuned_for_another_world_is_named_once(
    env: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    name = "local:smollm2-alfworld?threads=2"
    warn_of_another_world.cache_clear()
    for _ in range(2):
        warn_of_another_world(env, name)
    assert len(caplog.messages) == warnings
    assert all(f"'{name}' was tuned for alfworld" in message for message in caplog.messages)
