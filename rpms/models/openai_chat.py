"""An OpenAI-compatible chat model that is fast with long prompts.

The openai package validates each field of each message against every message type; at fifty
messages that takes longer than the rest of a step. Our messages are plain text and need no
conversion, so they are sent as the request's extra body, which the package does not validate. The
server receives the same JSON.

This module is imported only when such a model is opened, because the openai package is slow to
import.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

from httpx2 import create_ssl_context
from langchain_core.language_models import LanguageModelInput
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from openai import BaseModel, DefaultAsyncHttpxClient
from pydantic import model_validator

from rpms.models.replies import token_counts


class GarbledReply(ConnectionError):
    """The server's answer is not a chat reply; the call is worth a retry."""


class LoopwiseClient(DefaultAsyncHttpxClient):
    """An HTTP client with connections of their own for each event loop.

    A connection works only on the loop that opened it. A model is open for the whole process, which
    may run a second loop (``asyncio.run`` again) or several at once (in threads).
    """

    def __init__(self, **options: Any) -> None:
        # Certificates are read once, for all loops: that takes a tenth of a second.
        self._options = {"verify": create_ssl_context(), **options}
        self._clients: dict[asyncio.AbstractEventLoop, DefaultAsyncHttpxClient] = {}
        super().__init__(**self._options)

    async def send(self, request: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for old in [*self._clients]:
                if old.is_closed():
                    self._clients.pop(old, None)
            self._clients[loop] = DefaultAsyncHttpxClient(**self._options)
        return await self._clients[loop].send(request, **options)


class PlainChatOpenAI(ChatOpenAI):
    """``ChatOpenAI`` that sends messages without validating them, on any event loop."""

    @model_validator(mode="after")
    def _replace_shared_client(self) -> Self:
        """LangChain has one client per address, for all models and all event loops."""
        if not isinstance(self.http_async_client, LoopwiseClient):
            client = LoopwiseClient(proxy=self.openai_proxy)
            self.root_async_client = self.root_async_client.copy(http_client=client)
            self.async_client = self.root_async_client.chat.completions
        return self

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload = super()._get_request_payload(input_, stop=stop, **kwargs)
        if "messages" in payload:
            body = dict(payload.get("extra_body") or {})
            body["messages"] = payload["messages"]
            payload |= {"messages": [], "extra_body": body}
        return payload

    def _create_chat_result(
        self, response: Any, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        try:
            if isinstance(response, BaseModel):
                response = response.model_dump(warnings=False)
            if isinstance(response, dict):
                # Servers may send counts that are no numbers, and the package adds them up.
                response = {**response, "usage": _usage(response.get("usage"))}
            result = super()._create_chat_result(response, generation_info)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            # An overloaded server or a proxy may send half a document, a page of HTML or no
            # choices; the client raises the first exception it runs into.
            raise GarbledReply(f"not a chat reply: {error}") from error
        if not result.generations:
            raise GarbledReply("not a chat reply: no choices")
        return result


def _usage(usage: Any) -> dict[str, Any] | None:
    names = ("prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens")
    if (counts := token_counts(usage, *names)) is None:
        return None
    prompt, completion, cached = counts
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
