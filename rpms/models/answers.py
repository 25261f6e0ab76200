"""How the models of this process answer: as a provider would, tokens counted by estimate."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult


def answer(text: str, messages: list[BaseMessage], model: str) -> ChatResult:
    """A reply with token counts that are estimated."""
    spent, written = count_tokens_approximately(messages), len(text) // 4
    usage = UsageMetadata(input_tokens=spent, output_tokens=written, total_tokens=spent + written)
    reply = AIMessage(text, usage_metadata=usage, response_metadata={"model_name": model})
    return ChatResult(generations=[ChatGeneration(message=reply)])
