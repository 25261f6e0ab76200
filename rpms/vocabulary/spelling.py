"""A word that does not exist is answered with the one that was meant."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from rapidfuzz import process
from rapidfuzz.utils import default_process

ALIKE = 66.0
"""How like a known word, 0 to 100, one must be to be taken for a slip."""


def nearest(word: str, known: Collection[str], least: float = 0.0) -> list[str]:
    """The known words, most alike first; case and punctuation do not count."""
    matches = process.extract(
        word, list(known), processor=default_process, limit=len(known), score_cutoff=least
    )
    return list(dict.fromkeys(name for name, *_ in matches))


def offer(word: str, known: Collection[str]) -> str:
    """What to say after a word that is unknown: the one that was meant, else all there are."""
    near = nearest(word, known, ALIKE)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"


class Strict(BaseModel):
    """Data of a file that people write: an unknown key is refused, and the nearest one offered.

    What extends it names BaseModel too: linters look no further than a class's own line.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, data: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in data if isinstance(data, dict) else ():
            if key not in known:
                words = {"words": f"unknown key '{key}'; {offer(str(key), known)}"}
                kind = PydanticCustomError("extra_forbidden", "{words}", words)
                fault = InitErrorDetails(type=kind, loc=(key,), input=data[key])
                raise ValidationError.from_exception_data(cls.__name__, [fault])
        return data
