"""A chat model that asks the response cache first.

LangChain's own ``cache`` serialises every message of a prompt as an object for its key, which takes
nearly as long as the rest of a call. Here the key is plain JSON of the fields that are sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field

from rpms.models.response_cache import ResponseCache

NOT_SENT = frozenset({"id", "response_metadata", "usage_metadata"})
"""Fields of a message that a model never sees."""


def question_of(messages: Sequence[BaseMessage], **options: Any) -> str:
    """Return the part of the key that differs between the calls of one model.

    ``options`` are the arguments of the call, such as ``stop`` and the ``choices`` of a constrained
    reply. Fields and options without a value are left out.
    """
    sent = [
        {name: value for name, value in vars(message).items() if value and name not in NOT_SENT}
        for message in messages
    ]
    arguments = {name: value for name, value in options.items() if value is not None}
    return json.dumps([sent, arguments], sort_keys=True, default=repr)


class CachedModel(BaseChatModel):
    """A chat model whose ``invoke`` and ``ainvoke`` return cached replies where there are any.

    A cached reply is traced and streamed like a new one. The cache stores texts, so a model with
    bound tools does not use it.
    """

    inner: BaseChatModel
    replies: ResponseCache

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    def invoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        messages = _messages(input)
        question = question_of(messages, stop=stop, **kwargs)
        if (found := self.replies.lookup(question)) is not None:
            return self._replay(found).invoke(messages, config, stop=stop, **kwargs)
        reply = self.inner.invoke(messages, config, stop=stop, **kwargs)
        self.replies.update(question, reply)
        return reply

    async def ainvoke(
        self,
        input: LanguageModelInput,
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        messages = _messages(input)
        question = question_of(messages, stop=stop, **kwargs)
        # The file may be locked, and the first lookup asks the server for its models.
        if (found := await asyncio.to_thread(self.replies.lookup, question)) is not None:
            return await self._replay(found).ainvoke(messages, config, stop=stop, **kwargs)
        reply = await self.inner.ainvoke(messages, config, stop=stop, **kwargs)
        await asyncio.to_thread(self.replies.update, question, reply)
        return reply

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.inner.bind_tools(tools, **kwargs)

    def _replay(self, reply: AIMessage) -> BaseChatModel:
        model = self.inner
        return _Replay(
            inner=model, reply=reply, name=model.get_name(), tags=model.tags,
            metadata=model.metadata, cache=False,
        )  # fmt: skip

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self.inner._generate(messages, *args, **kwargs)


def innermost(model: Any) -> Any:
    """Return the model of a provider inside of our wrappers."""
    wrapped = isinstance(model, BaseChatModel) and hasattr(model, "inner")
    return innermost(model.inner) if wrapped else model


class _Replay(BaseChatModel):
    """Returns one cached reply; in a trace it has the name and the parameters of the model."""

    inner: BaseChatModel = Field(repr=False)  # LangChain serialises the representation
    reply: AIMessage = Field(repr=False)

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return dict(self.inner._identifying_params)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.inner._get_ls_params(stop=stop, **kwargs)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply)])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)


def _messages(prompt: LanguageModelInput) -> list[BaseMessage]:
    return convert_to_messages([prompt] if isinstance(prompt, str) else prompt)
