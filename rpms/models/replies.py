"""Clean model replies and errors once, before anything else reads them.

Later code never sees invalid characters, API keys, megabytes of text or token counts that are no
numbers.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult

from rpms.vocabulary.safe_text import redact, redact_known, valid

REPLAYED = "rpms_replayed"
"""Set in the response metadata of a reply from a cache."""
CAPPED = "rpms_capped"
"""Set in the response metadata of a reply that was cut off."""
TOKEN_CHARACTERS = 32
"""No tokenizer has more characters per token on average, not even for long runs of blanks."""
MOST_TOKENS = 10**9
"""A larger count is a mistake of the server."""
LONGEST_ERROR = 1000
"""Characters kept of an error."""


def normalize_reply(reply: BaseMessage, max_tokens: int) -> AIMessage:
    """Return the reply as plain text, cut to the characters that ``max_tokens`` can hold.

    Response metadata is kept. Normalizing a reply twice changes nothing.
    """
    text = redact_known(valid(str(reply.text)))
    longest = max_tokens * TOKEN_CHARACTERS
    marks: dict[str, Any] = dict(reply.response_metadata)
    if len(text) > longest:
        text, marks[CAPPED] = text[:longest], True
    names = ("input_tokens", "output_tokens", "input_token_details", "cache_read")
    reported, usage = getattr(reply, "usage_metadata", None), None
    # This is how LangChain marks the replies of its cache.
    if isinstance(reported, dict) and reported.get("total_cost") == 0:
        marks[REPLAYED] = True
    if counts := token_counts(reported, *names):
        prompt, output, cached = counts
        usage = UsageMetadata(
            input_tokens=prompt,
            output_tokens=output,
            total_tokens=prompt + output,
            input_token_details=InputTokenDetails(cache_read=min(cached or 0, prompt)),
        )
    return AIMessage(text, usage_metadata=usage, response_metadata=marks)


def answer(text: str, messages: list[BaseMessage], model: str) -> ChatResult:
    """Return a reply in a provider's format, with estimated token counts."""
    spent, written = count_tokens_approximately(messages), len(text) // 4
    usage = UsageMetadata(input_tokens=spent, output_tokens=written, total_tokens=spent + written)
    reply = AIMessage(text, usage_metadata=usage, response_metadata={"model_name": model})
    return ChatResult(generations=[ChatGeneration(message=reply)])


def token_counts(
    usage: Any, prompt: str, output: str, details: str, cached: str
) -> tuple[int, int, int | None] | None:
    """Read the tokens of prompt, reply and cached prefix under a provider's names for them.

    None if the count of the prompt or the reply is missing.
    """
    if not isinstance(usage, dict):
        return None
    prompt_count, output_count = _number(usage.get(prompt)), _number(usage.get(output))
    if prompt_count is None or output_count is None:
        return None
    part = usage.get(details)
    return prompt_count, output_count, _number(part.get(cached)) if isinstance(part, dict) else None


def _number(value: Any) -> int | None:
    """Parse a number of tokens, which may be sent as text; None if it is not valid."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if 0 <= number <= MOST_TOKENS else None


def fault_line(error: BaseException) -> str:
    """Return the error's class and first line, and the address if no reply came."""
    text = str(error)[: 4 * LONGEST_ERROR]  # cut first: a server may send megabytes
    line = redact(text.splitlines()[0])[:LONGEST_ERROR] if text else ""
    attributes = vars(error)
    # The clients' errors have their request as an attribute; in httpx it is the second name.
    request = attributes.get("request") or attributes.get("_request")
    if request is not None and "status_code" not in attributes:
        address = redact(str(request.url))[:LONGEST_ERROR]
        advice = "check the address, and that a server runs there"
        line = f"{line.rstrip('.')}: no reply from {address}; {advice}"
    return f"{type(error).__name__}: {line}"
