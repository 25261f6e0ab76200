"""Text that can be kept and shown: whole characters, nothing that steers a terminal, no keys.

A provider may repeat the key it refused in its error text, a model the one it was asked with, and
an address may carry a password or a key. Whatever text an error, an address or a reply becomes goes
through here before it reaches a state, a file or a terminal.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from urllib.parse import unquote

HIDDEN = "***"
SHORTEST = 8
"""Anything shorter is no key, and would blot out ordinary words."""
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
# C0 and C1 controls but tab and line end, what turns the reading direction, and halves of
# characters.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_of_addresses: set[str] = set()


def valid(text: str) -> str:
    """The text with every character whole: two halves are joined, a single one is marked.

    Servers send half a surrogate pair when a reply ends in the middle of an emoji; no file takes
    that.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def visible(text: str) -> str:
    """The text with its control characters written out, so that a terminal only shows them.

    Written as JSON writes them, so that JSON stays what it is.
    """
    return _CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def redact(text: str) -> str:
    """The text without keys: those that are known, and what looks like one."""
    text = _LOOKS.sub(HIDDEN, redact_known(valid(text)))
    return _PARAMETER.sub(rf"\1={HIDDEN}", _USER.sub(HIDDEN, text))


def redact_known(text: str) -> str:
    """The text without the keys of this environment and of its addresses; the rest stays."""
    for value in known_secrets():
        text = text.replace(value, HIDDEN)
    return text


def hide_secrets_of(address: str) -> None:
    """Know the password and the keys in an address from now on, wherever they turn up."""
    values = [match[0].partition(":")[2] for match in _USER.finditer(address)]
    values += [match[2] for match in _PARAMETER.finditer(address)]
    _of_addresses.update(v for v in (*values, *map(unquote, values)) if len(v) >= SHORTEST)


def known_secrets() -> list[str]:
    """Keys of this environment and of its addresses, the longest first: one may begin another."""
    values = {os.environ.get(name, "").strip() for name in os.environ if _names_a_key(name)}
    values = {value for value in values if len(value) >= SHORTEST}
    return sorted(values | _of_addresses, key=len, reverse=True)


@lru_cache(maxsize=4096)
def _names_a_key(name: str) -> bool:
    """Asked of every variable for every reply; the values are looked up each time."""
    return _NAMES.search(name) is not None
