"""What rules-first arbitration made of an action that the model proposed."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

Verdict = Literal["accepted", "asked_again", "fell_back", "insisted", "replaced"]


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
        verdict: ``asked_again`` sends it back to the model, ``fell_back`` plays what is left when
            that did not help or the reply had no action, ``insisted`` plays it although something
            speaks against it, and ``replaced`` plays one that the procedure offers.
        rule: id of the rule that speaks against the proposal; empty if none does.
        reason: what it says.
        mend: what would make the proposal possible, in words, where the model was told.
        played: the action that goes to the environment; empty when asked again.
    """

    step: int
    proposal: str
    verdict: Verdict
    rule: str
    reason: str
    mend: str
    played: str
