"""What a model said, or how a call failed, made fit to keep: once, where it enters.

Nothing behind this place meets half a character, a key of the environment, five megabytes of
text or a token count that is no number.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from rpms.vocabulary.safe_text import redact, redact_known, valid

CAPPED = "rpms_capped"
"""Set in the response metadata of a reply that was longer than it may be."""
TOKEN_CHARACTERS = 32
"""No tokenizer writes more per token on average, not even for blanks in long rows."""
MOST_TOKENS = 10**9
"""A larger count is a mistake of the server."""
LONGEST_ERROR = 1000
"""Characters kept of an error."""


def normalize_reply(reply: BaseMessage, max_tokens: int) -> AIMessage:
    """The reply as plain text, of no more characters than ``max_tokens`` can hold.

    The marks that it carries stay; normalizing it again changes nothing.
    """
    text = redact_known(valid(str(reply.text)))
    longest = max_tokens * TOKEN_CHARACTERS
    marks: dict[str, Any] = dict(reply.response_metadata)
    if len(text) > longest:
        text, marks[CAPPED] = text[:longest], True
    names = ("input_tokens", "output_tokens", "input_token_details", "cache_read")
    usage = None
    if counts := token_counts(getattr(reply, "usage_metadata", None), *names):
        prompt, output, cached = counts
        usage = UsageMetadata(
            input_tokens=prompt,
            output_tokens=output,
            total_tokens=prompt + output,
            input_token_details=InputTokenDetails(cache_read=min(cached or 0, prompt)),
        )
    return AIMessage(text, usage_metadata=usage, response_metadata=marks)


def token_counts(
    usage: Any, prompt: str, output: str, details: str, cached: str
) -> tuple[int, int, int | None] | None:
    """Tokens of prompt, reply and cached prefix, under the names that a provider has for them.

    None if either side of the call cannot be read.
    """
    if not isinstance(usage, dict):
        return None
    read, written = _number(usage.get(prompt)), _number(usage.get(output))
    if read is None or written is None:
        return None
    part = usage.get(details)
    return read, written, _number(part.get(cached)) if isinstance(part, dict) else None


def _number(value: Any) -> int | None:
    """A number of tokens, also where it is sent as text; None where it cannot be one."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if 0 <= number <= MOST_TOKENS else None


def fault_line(error: BaseException) -> str:
    """The kind of error and its first line; where no reply came, the address that was asked."""
    text = str(error)[: 4 * LONGEST_ERROR]  # cut first: a server may send megabytes
    line = redact(text.splitlines()[0])[:LONGEST_ERROR] if text else ""
    known = vars(error)
    # The clients' errors carry their request; httpx keeps it under the second name.
    request = known.get("request") or known.get("_request")
    if request is not None and "status_code" not in known:
        address = redact(str(request.url))[:LONGEST_ERROR]
        advice = "check the address, and that a server runs there"
        line = f"{line.rstrip('.')}: no reply from {address}; {advice}"
    return f"{type(error).__name__}: {line}"
