"""Forms of texts: patterns with ``*`` and ``?``, and forms with a name, such as ``email``.

Each is decided in one pass over the text: no pattern can be made slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import UUID

from rpms.rules.scalars import as_moment


def matches(text: str, pattern: str) -> bool:
    """Return whether a text is of a form; in a pattern ``*`` is any text and ``?`` one letter."""
    if pattern in FORMS:
        return FORMS[pattern](text)
    at, place, star, retry = 0, 0, -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "*":
            star, retry, place = place, at, place + 1
        elif place < len(pattern) and pattern[place] in ("?", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:  # the last star takes one letter more
            retry += 1
            at, place = retry, star + 1
        else:
            return False
    return not pattern[place:].strip("*")


def _is_email(text: str) -> bool:
    name, _, host = text.rpartition("@")
    parts = host.split(".")
    fine = bool(name) and "@" not in name and not re.search(r"[\s,;<>]", text)
    return fine and len(parts) > 1 and all(re.fullmatch(r"[\w-]+", part) for part in parts)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_phone(text: str) -> bool:
    digits = re.sub(r"[ ()./-]", "", text.removeprefix("+"))
    return digits.isascii() and digits.isdigit() and 7 <= len(digits) <= 15


def _is_iban(text: str) -> bool:
    bare = text.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", bare, re.ASCII):
        return False
    return int("".join(str(int(letter, 36)) for letter in bare[4:] + bare[:4])) % 97 == 1


FORMS: dict[str, Callable[[str], bool]] = {
    "email": _is_email,
    "uuid": _is_uuid,
    "date": lambda text: as_moment(text) is not None,
    "phone": _is_phone,
    "iban": _is_iban,
}
