"""Numbers, moments, names and forms of texts, as conditions compare them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from typing import Any
from uuid import UUID

Number = int | Decimal


class Special(Enum):
    """A marker instead of a value."""

    UNKNOWN = "unknown"
    ABSENT = "not given"
    INVALID = "of the wrong type"
    NO_ENTRY = "not in the table"


UNKNOWN, ABSENT, INVALID = Special.UNKNOWN, Special.ABSENT, Special.INVALID
NO_ENTRY = Special.NO_ENTRY
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)


def as_number(value: Any) -> Number | None:
    """A finite number, exactly as it is written; None for anything else.

    A float of JSON becomes decimal: 0.3 is the sum of 0.1 and 0.2.
    """
    if type(value) is float:
        return Decimal(str(value)) if isfinite(value) else None
    if type(value) is int:
        return value
    if isinstance(value, str):
        return _decimal(value)
    return value if isinstance(value, Decimal) and value.is_finite() else None


@lru_cache(maxsize=4096)
def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def as_moment(value: Any) -> datetime | None:
    """A date or a time in ISO's form, in UTC unless it says otherwise; None for anything else."""
    if isinstance(value, str):
        return _moment(value)
    return value if isinstance(value, datetime) and value.tzinfo else None


@lru_cache(maxsize=4096)
def _moment(value: str) -> datetime | None:
    if not _DATE.fullmatch(value.strip()):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


TYPES = ("text", "number", "boolean", "date", "list", "object")
"""The types that a rule may give an argument."""


def typed(value: Any, kind: str) -> Any:
    """The value of an argument; INVALID if it is not of the type that the rule gives it."""
    if not kind or isinstance(value, Special):
        return value
    fits = {
        "text": isinstance(value, str),
        "number": as_number(value) is not None,
        "boolean": isinstance(value, bool) or plain(str(value)) in ("true", "false"),
        "date": as_moment(value) is not None,
        "list": isinstance(value, list | tuple),
        "object": isinstance(value, dict),
    }
    return value if fits[kind] else INVALID


def as_word(value: Any) -> Any:
    """The value for equality: numbers by value, all else literally."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    number = as_number(value)
    return number if number is not None else value


@lru_cache(maxsize=65536)
def plain(name: str) -> str:
    """A normalised name: many tools ignore blanks around it, case and forms of letters."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def same_name(value: Any, other: Any) -> bool:
    """Return whether two arguments may name the same thing."""
    if isinstance(value, str) and isinstance(other, str):
        return plain(value) == plain(other)
    return bool(as_word(value) == as_word(other))


def matches(text: str, pattern: str) -> bool:
    """Return whether a text is of a form; in a pattern ``*`` is any text and ``?`` one letter.

    Each form is decided in one pass over the text: no pattern can be made slow.
    """
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
