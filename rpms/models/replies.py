"""What a model said, made fit to keep: once, where it enters.

Nothing behind this place meets half a character, a key of the environment, five megabytes of
text or a token count that is no number.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from rpms.vocabulary.plain_text import valid
from rpms.vocabulary.secrets import redact_known

CAPPED = "rpms_capped"
"""Set in the response metadata of a reply that was longer than it may be."""
TOKEN_CHARACTERS = 32
"""No tokenizer writes more per token on average, not even for blanks in long rows."""
MOST_TOKENS = 10**9
"""A larger count is a mistake of the server."""


def taken_in(reply: BaseMessage, max_tokens: int) -> AIMessage:
    """The reply as plain text, of no more characters than ``max_tokens`` can hold.

    The marks that it carries stay; taking it in again changes nothing.
    """
    text = redact_known(valid(str(reply.text)))
    longest = max_tokens * TOKEN_CHARACTERS
    marks: dict[str, Any] = dict(reply.response_metadata)
    if len(text) > longest:
        text, marks[CAPPED] = text[:longest], True
    told = reply.usage_metadata if isinstance(reply, AIMessage) else None
    return AIMessage(text, usage_metadata=_counts(told), response_metadata=marks)


def token_count(told: Any) -> int | None:
    """A number of tokens, also where it is sent as text; None where it cannot be one."""
    try:
        number = float(told)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if 0 <= number <= MOST_TOKENS else None


def _counts(told: Any) -> UsageMetadata | None:
    """What a provider says the call cost, if both sides of it can be read."""
    if not isinstance(told, dict):
        return None
    spent, written = (token_count(told.get(name)) for name in ("input_tokens", "output_tokens"))
    if spent is None or written is None:
        return None
    details = told.get("input_token_details")
    reused = token_count(details.get("cache_read")) if isinstance(details, dict) else None
    return UsageMetadata(
        input_tokens=spent,
        output_tokens=written,
        total_tokens=spent + written,
        input_token_details=InputTokenDetails(cache_read=min(reused or 0, spent)),
    )
