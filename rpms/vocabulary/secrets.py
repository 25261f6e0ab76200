"""Keys stay out of everything that is kept or shown.

A provider may repeat the key it refused in its error text, a model the one it was asked with, and
an address may carry a password or a key. Whatever text an error, an address or a reply becomes goes
through here before it reaches a state, a file or a terminal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote

from rpms.vocabulary.plain_text import valid

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
_of_addresses: set[str] = set()


def redact(text: str) -> str:
    """The text without keys: those that are known, and what looks like one."""
    text = _LOOKS.sub(HIDDEN, redact_known(valid(text)))
    return _PARAMETER.sub(rf"\1={HIDDEN}", _USER.sub(HIDDEN, text))


def redact_known(text: str) -> str:
    """The text without the keys of this environment and of its addresses; the rest stays."""
    for value in _values():
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


def hide_secrets_of(address: str) -> None:
    """Know the password and the keys in an address from now on, wherever they turn up."""
    _of_addresses.update(value for value in _carried(address) if len(value) >= SHORTEST)


def _carried(address: str) -> Iterator[str]:
    users = (found[0].partition(":")[2] for found in _USER.finditer(address))
    for value in (*users, *(found[2] for found in _PARAMETER.finditer(address))):
        yield from (value, unquote(value))


def _values() -> list[str]:
    """The longest first, in case one key begins like another."""
    found = {os.environ.get(name, "").strip() for name in os.environ if _names_a_key(name)}
    found = {key for key in found if len(key) >= SHORTEST}
    return sorted(found | _of_addresses, key=len, reverse=True)


@lru_cache(maxsize=4096)
def _names_a_key(name: str) -> bool:
    """Asked of every variable for every reply; the values are looked up each time."""
    return _NAMES.search(name) is not None
