"""OpenAI-compatible chat with long prompts, without the client's walk through every message.

The openai package compares each field of each message with every kind of message it knows
before sending it: at fifty messages that takes longer than everything else in a step together.
Our messages are plain text and need no translation, so they travel as the request's extra body,
which the package sends as it is. What arrives at the server is the same JSON.

Imported only when a model of this kind is opened: the package behind it is heavy.
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from openai import BaseModel

from rpms.models.replies import token_counts


class GarbledReply(ConnectionError):
    """The server answered with something that is no chat reply: worth another attempt."""


class PlainChatOpenAI(ChatOpenAI):
    """``ChatOpenAI`` for prompts that are already in the shape of the wire."""

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
                # Counts that are numbers, or none: the package adds up whatever a server sent.
                response = {**response, "usage": _usage(response.get("usage"))}
            result = super()._create_chat_result(response, generation_info)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            # An overloaded server or a proxy in between: half a document, a page of HTML, no
            # choices. The client says so with whatever broke first.
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
