"""A model call that failed, as one line for people."""

from __future__ import annotations

from rpms.vocabulary.safe_text import redact

LONGEST_ERROR = 1000
"""Characters kept of an error."""


def fault_line(error: BaseException) -> str:
    """The kind of error and its first line; where no reply came, the address that was asked."""
    said = str(error)[: 4 * LONGEST_ERROR]  # cut first: a server may send megabytes
    line = redact(said.splitlines()[0])[:LONGEST_ERROR] if said else ""
    known = vars(error)
    # The clients' errors carry their request; httpx keeps it under the second name.
    request = known.get("request") or known.get("_request")
    if request is not None and "status_code" not in known:
        asked = redact(str(request.url))[:LONGEST_ERROR]
        advice = "check the address, and that a server runs there"
        line = f"{line.rstrip('.')}: no reply from {asked}; {advice}"
    return f"{type(error).__name__}: {line}"
