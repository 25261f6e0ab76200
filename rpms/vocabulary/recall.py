"""A recalled memory and everything that happened to it on the way to the prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from typing_extensions import TypedDict

RecallOutcome = Literal[
    "", "not groundable", "scf", "arbitration", "covered", "contradicted", "duplicate",
    "over top-k", "over token budget",
]  # fmt: skip
RECALL_OUTCOMES: tuple[RecallOutcome, ...] = get_args(RecallOutcome)
"""What becomes of a candidate, in the order in which it may; the empty one is shown."""
BLANK = re.compile(r"\{([^{}]+)\}")
"""A role where another home has a name of its own: ``{object}``."""
NOTE = "note"
"""Type of an entry that is a text of another memory method; ``kind`` says what that calls it."""


class Advice(TypedDict):
    """What an entry says in this home and at this moment.

    Attributes:
        actions: what to do, or for a lesson what not to do, in names that exist here: this is what
            the state filter and the arbiter judge.
        printed: the same in the run's ``memory_form``, as the prompt prints it; where that is
            ``grounded``, what is judged is what is printed.
        done: those of its steps that lie behind or are done already: they are not printed.
        by_kind: the actions name kinds of things, because nothing here is known to play a part in
            them: only what is so for the whole kind can be held against them.
        needs: conditions, in words.
        then: what follows, in words.
        places: where to look, best first.
    """

    actions: list[str]
    printed: list[str]
    done: list[str]
    by_kind: bool
    needs: list[str]
    then: list[str]
    places: list[str]


class Recall(TypedDict):
    """One candidate of M_cand with its outcome; the list is passed from stage to stage.

    Entries that a stage drops stay in the list with the reason, so that the state, the log and
    the viewer can always tell why a memory did not reach the prompt.

    Attributes:
        entry: the stored entry, as plain data.
        advice: what it says here and now.
        score: retrieval score, d_gamma times the entry's weight.
        count: how often its like was seen.
        dropped_by: its outcome; empty while it is still in, and shown if that stays so.
        reason: why it was dropped.
        warning: the arbiter's note for an entry that stays in.
        rule: id of the rule behind the removal or the warning.
    """

    entry: dict[str, Any]
    advice: Advice
    score: float
    count: int
    dropped_by: RecallOutcome
    reason: str
    warning: str
    rule: str


def new_recall(entry: dict[str, Any], score: float, count: int, advice: Advice) -> Recall:
    """A candidate that nothing has happened to yet."""
    return Recall(
        entry=entry, advice=advice, score=score, count=count,
        dropped_by="", reason="", warning="", rule="",
    )  # fmt: skip


def drop(recall: Recall, outcome: RecallOutcome, reason: str, rule: str = "") -> Recall:
    """The candidate with its outcome; the one that was passed on stays as it is."""
    return {**recall, "dropped_by": outcome, "reason": reason, "rule": rule or recall["rule"]}


def new_advice(
    actions: list[str],
    *,
    printed: list[str] | None = None,
    by_kind: bool = False,
    needs: list[str] | None = None,
    then: list[str] | None = None,
    places: list[str] | None = None,
) -> Advice:
    """Advice with nothing but what is given; printed as it is judged unless said otherwise."""
    return Advice(
        actions=actions, printed=actions if printed is None else printed, done=[], by_kind=by_kind,
        needs=needs or [], then=then or [], places=places or [],
    )  # fmt: skip


def surviving(recalls: Sequence[Recall]) -> list[Recall]:
    """Those that no stage has dropped."""
    return [recall for recall in recalls if not recall["dropped_by"]]
