"""Numbers and times as run files may hold them.

A file can be edited by hand or damaged in one digit. Whatever it says, nothing that is computed
from it runs out of bounds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from rpms.vocabulary.limits import MOST_TIMES

Count = Annotated[int, Field(ge=0, le=10**15)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Real = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
"""Seconds, dollars, or an average of counts."""
Times = Annotated[int, Field(ge=1, le=MOST_TIMES)]
Plain = bool | Whole | Real | str | None
"""A setting."""


def _moment(text: str) -> str:
    if text and not 1970 <= datetime.fromisoformat(text).year < 9000:
        raise ValueError("no time that a run can have been played at")
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""As ``datetime.isoformat`` writes it; empty where nobody noted it."""
