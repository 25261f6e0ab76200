"""Numbers, moments and names as conditions compare them."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from typing import Any

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
