"""Suggests the nearest name for an unknown one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from rapidfuzz import process
from rapidfuzz.utils import default_process

ALIKE = 66.0
"""The similarity, 0 to 100, from which a word counts as misspelt."""


def nearest(word: str, choices: Collection[str], cutoff: float = 0.0) -> list[str]:
    """The choices by similarity; case and punctuation are ignored."""
    matches = process.extract(
        word, list(choices), processor=default_process, limit=len(choices), score_cutoff=cutoff
    )
    return list(dict.fromkeys(name for name, *_ in matches))


def offer(word: str, choices: Collection[str]) -> str:
    """The advice for an unknown word: the nearest choice, else all choices."""
    near = nearest(word, choices, ALIKE)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(choices)}"


class Strict(BaseModel):
    """A model of a file that people write: an unknown key is an error with a suggestion.

    Subclasses also name BaseModel, because linters read only the line of the class.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, data: Any) -> Any:
        keys = [field.alias or name for name, field in cls.model_fields.items()]
        for key in data if isinstance(data, dict) else ():
            if key not in keys:
                message = {"words": f"unknown key '{key}'; {offer(str(key), keys)}"}
                kind = PydanticCustomError("extra_forbidden", "{words}", message)
                problem = InitErrorDetails(type=kind, loc=(key,), input=data[key])
                raise ValidationError.from_exception_data(cls.__name__, [problem])
        return data
