"""A recalled memory and everything that happened to it on the way to the prompt."""

from __future__ import annotations

import re
from typing import Any, Literal

from typing_extensions import TypedDict

Stage = Literal["", "scf", "arbitration", "budget"]
BLANK = re.compile(r"\{([^{}]+)\}")
"""A role where another home has a name of its own: ``{object}``."""
NOTE = "note"
"""Type of an entry that is a text of another memory method; ``kind`` says what that calls it."""


class Advice(TypedDict):
    """What an entry says in this home and at this moment, in names that exist here.

    The state filter and the arbiter judge these words, and the prompt prints them.

    Attributes:
        actions: what to do, or for a lesson what not to do.
        needs: conditions, in words.
        then: what follows, in words.
        places: where to look, best first.
    """

    actions: list[str]
    needs: list[str]
    then: list[str]
    places: list[str]


class Recall(TypedDict):
    """One candidate of M_cand with its fate; the list is passed from stage to stage.

    Entries that a stage drops stay in the list with the reason, so that the state, the log and
    the viewer can always tell why a memory did not reach the prompt.

    Attributes:
        entry: the stored entry, as plain data.
        advice: what it says here and now.
        score: retrieval score, d_gamma times the entry's weight.
        count: how often its like was seen.
        dropped_by: the stage that removed it, empty while it is still in.
        reason: why it was removed.
        warning: the arbiter's note for an entry that stays in.
        rule: id of the rule behind the removal or the warning.
    """

    entry: dict[str, Any]
    advice: Advice
    score: float
    count: int
    dropped_by: Stage
    reason: str
    warning: str
    rule: str


def new_recall(entry: dict[str, Any], score: float, count: int, advice: Advice) -> Recall:
    """A candidate that nothing has happened to yet."""
    return Recall(
        entry=entry, advice=advice, score=score, count=count,
        dropped_by="", reason="", warning="", rule="",
    )  # fmt: skip


def new_advice(
    actions: list[str],
    *,
    needs: list[str] | None = None,
    then: list[str] | None = None,
    places: list[str] | None = None,
) -> Advice:
    """Advice with nothing but what is given."""
    return Advice(actions=actions, needs=needs or [], then=then or [], places=places or [])


def surviving(recalls: list[Recall]) -> list[Recall]:
    """Those that no stage has dropped."""
    return [recall for recall in recalls if not recall["dropped_by"]]
