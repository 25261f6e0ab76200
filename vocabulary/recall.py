"""A recalled memory and everything that happened to it on the way to the prompt."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

Stage = Literal["", "scf", "arbitration"]


class Recall(TypedDict):
    """One candidate of M_cand with its fate; the list is passed from stage to stage.

    Entries that a stage drops stay in the list with the reason, so that the state, the log and
    the viewer can always tell why a memory did not reach the prompt.

    Attributes:
        entry: the stored entry, as plain data.
        score: retrieval score d_gamma times the entry's weight.
        dropped_by: the stage that removed it, empty while it is still in.
        reason: why it was removed.
        warning: the arbiter's note for an entry that stays in.
        rule: id of the rule behind the removal or the warning.
    """

    entry: dict[str, Any]
    score: float
    dropped_by: Stage
    reason: str
    warning: str
    rule: str


def surviving(recalls: list[Recall]) -> list[Recall]:
    """Those that no stage has dropped."""
    return [recall for recall in recalls if not recall["dropped_by"]]
