"""What rules-first arbitration made of an action that the model proposed."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

Verdict = Literal["accepted", "asked_again", "insisted", "replaced"]


class Choice(TypedDict):
    """An action worth considering: the Tier-3 rule it follows and why it serves the sub-goal."""

    action: str
    rule: str
    reason: str


class Decision(TypedDict):
    """One proposal and its fate.

    Attributes:
        step: the step it was made for.
        proposal: the action the model proposed; empty when none could be read.
        verdict: ``asked_again`` sends it back to the model, ``insisted`` plays it although
            something speaks against it, ``replaced`` plays another one.
        rule: id of the rule that speaks against the proposal; empty if none does.
        reason: what it says.
        played: the action that goes to the environment; empty when asked again.
    """

    step: int
    proposal: str
    verdict: Verdict
    rule: str
    reason: str
    played: str
