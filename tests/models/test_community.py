"""With a stand-in for langchain-community: the package itself is an extra nobody needs here."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from rpms.models import open_model
from rpms.vocabulary.errors import RpmsError


class ChatSomething(BaseChatModel):
    """Spells its options in its own way."""

    model_name: str = Field(alias="model")
    temperature: float = 1.0
    num_predict: int = 0
    request_timeout: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "something"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.model_name))])


class ChatWithAddress(ChatSomething):
    base_url: str = ""


class ChatKeyless(ChatSomething):
    def __init__(self, **kwargs: Any) -> None:
        raise ValueError("Did not find some_api_key\nplease set it")


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("langchain_community.chat_models")
    for cls in (ChatSomething, ChatWithAddress, ChatKeyless):
        setattr(module, cls.__name__, cls)
    module.helper = print  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "langchain_community", ModuleType("langchain_community"))
    monkeypatch.setitem(sys.modules, "langchain_community.chat_models", module)
    open_model.cache_clear()


def test_a_chat_model_by_the_name_of_its_class() -> None:
    model = open_model("community:ChatSomething:llama3:8b", 0.25, 99, 7.0)
    assert isinstance(model, ChatSomething)
    assert (model.model_name, model.temperature) == ("llama3:8b", 0.25)
    assert (model.num_predict, model.request_timeout) == (99, 7.0)
    assert model.invoke("hello").text == "llama3:8b"


def test_an_address_reaches_a_class_that_takes_one() -> None:
    model = open_model("community:ChatWithAddress:m", base_url="http://127.0.0.1:1")
    assert isinstance(model, ChatWithAddress)
    assert model.base_url == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("name", "base_url", "message"),
    [
        ("community:ChatSomething", "", "use community:CLASS:NAME"),
        ("community::m", "", "use community:CLASS:NAME"),
        ("community:ChatNothing:m", "", "no chat model called 'ChatNothing'"),
        ("community:helper:m", "", "no chat model called 'helper'"),
        ("community:ChatSomething:m", "http://x", "'ChatSomething' takes no base url"),
        ("community:ChatKeyless:m", "", "ChatKeyless:m': Did not find some_api_key"),
    ],
)
def test_what_cannot_be_opened(name: str, base_url: str, message: str) -> None:
    with pytest.raises(RpmsError) as caught:
        open_model(name, base_url=base_url)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_community.chat_models", None)
    with pytest.raises(RpmsError) as caught:
        open_model("community:ChatOllama:llama3")
    assert str(caught.value) == (
        "provider 'community' is not installed: pip install 'rpms[community]'"
    )
