"""Keys stay out of everything that is kept or shown.

A provider may repeat the key it refused in its error text, and an address may carry a password.
Whatever text an error becomes goes through here before it reaches a state, a file or a terminal.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

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
_USER = re.compile(r"(?<=://)[^/\s@]+@")


def redact(text: str) -> str:
    """The text without keys: those of the environment, and what looks like one."""
    return _USER.sub(f"{HIDDEN}@", _LOOKS.sub(HIDDEN, redact_known(text)))


def redact_known(text: str) -> str:
    """The text without the keys of this environment; everything else stays as it is."""
    for value in _values():
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


def _values() -> list[str]:
    """The longest first, in case one key begins like another."""
    found = {os.environ.get(name, "").strip() for name in os.environ if _names_a_key(name)}
    return sorted((key for key in found if len(key) >= SHORTEST), key=len, reverse=True)


@lru_cache(maxsize=4096)
def _names_a_key(name: str) -> bool:
    """Asked of every variable for every reply; the values are looked up each time."""
    return _NAMES.search(name) is not None
