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
from langchain_openai import ChatOpenAI


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
