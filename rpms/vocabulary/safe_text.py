"""Makes text safe to keep and show: valid characters, no control sequences, no secrets.

A provider may repeat a rejected key in its error text, a model may repeat its key, and an address
may contain a password or a key. The text of an error, an address or a reply passes through here
before it reaches a state, a file or a terminal.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import lru_cache
from urllib.parse import unquote

HIDDEN = "***"
SHORTEST = 8
"""A shorter value is not taken for a key: it would hide ordinary words."""
_NAMES = re.compile(r"(API_?KEY|_KEY|TOKEN|SECRET|PASSWORD)S?$", re.IGNORECASE)
_LOOKS = re.compile(
    # Keys by their shape, also half masked by the server: sk-..., gsk_..., hf_..., AIza...
    r"\b(?:sk|pk|rk|gsk|xai|hf|key)[-_][\w*.-]{8,}|\bAIza[\w-]{16,}"
    r"|(?<=bearer )[\w.~+/=-]{8,}|(?<=basic )[\w.~+/=-]{8,}",
    re.IGNORECASE,
)
_USER = re.compile(r"(?<=://)[^/?#\s]+(?=@)")
_PARAMETER = re.compile(
    r"(?<=[?&;])([\w.-]{0,40}(?:key|token|secret|password|passwd|pwd|sig|signature|auth|code))"
    r"=([^&;#\s]+)",
    re.IGNORECASE,
)
# C0 and C1 controls except tab and newline, changes of the reading direction, and half
# characters.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_of_addresses: set[str] = set()


@lru_cache(maxsize=65_536)
def slug(text: str) -> str:
    """A file name for any label or task id; a checksum makes it unique."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:80]
    return f"{plain}-{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]}"


def valid(text: str) -> str:
    """Join split surrogate pairs, and mark single halves.

    Servers send half a surrogate pair when a reply ends in the middle of an emoji, and no file can
    store it.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def visible(text: str) -> str:
    """Escape control characters, so that a terminal shows them.

    The escapes are those of JSON, so JSON stays valid.
    """
    return _CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def redact(text: str) -> str:
    """Remove secrets: known ones, and texts that look like one."""
    text = _LOOKS.sub(HIDDEN, redact_known(valid(text)))
    return _PARAMETER.sub(rf"\1={HIDDEN}", _USER.sub(HIDDEN, text))


def redact_known(text: str) -> str:
    """Remove only the secrets of this process's environment variables and addresses."""
    for value in known_secrets():
        text = text.replace(value, HIDDEN)
    return text


def hide_secrets_of(address: str) -> None:
    """Add the password and the keys in an address to the known secrets."""
    values = [match[0].partition(":")[2] for match in _USER.finditer(address)]
    values += [match[2] for match in _PARAMETER.finditer(address)]
    _of_addresses.update(v for v in (*values, *map(unquote, values)) if len(v) >= SHORTEST)


def known_secrets() -> list[str]:
    """Secrets in environment variables and addresses, longest first: one may contain another."""
    values = {os.environ.get(name, "").strip() for name in os.environ if _names_a_key(name)}
    values = {value for value in values if len(value) >= SHORTEST}
    return sorted(values | _of_addresses, key=len, reverse=True)


@lru_cache(maxsize=4096)
def _names_a_key(name: str) -> bool:
    """Cached, because every variable is checked for every reply."""
    return _NAMES.search(name) is not None
