"""How many answers may be false, and what is believed all the same.

The rate is measured, never set: answers that were outvoted when the very same question was put
again. Where a world contradicts itself nowhere it is zero, and one contradiction is enough.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

LEAD = 2
"""By so many answers must one side lead at least: one alone was never asked again."""
OUTVOTED = 3
"""And so many times as many: what is answered now so, now otherwise depends on something unseen."""
CHANCE = 0.01
"""What chance would bring about less often than this is not put down to chance."""


def is_outvoted(count: int, against: int) -> bool:
    """Whether so few answers to one question are false, because so many said the opposite."""
    return against - count >= LEAD and against >= OUTVOTED * count


class Noise(NamedTuple):
    """The share of answers that are false."""

    rate: float = 0.0

    def bears(self, wrong: int, total: int) -> bool:
        """Whether so many of these answers may all be false: Chernoff's bound of the binomial."""
        if not wrong or wrong <= self.rate * total:
            return True
        if not self.rate:
            return False
        share = wrong / total
        distance = share * log(share / self.rate)
        if share < 1:
            distance += (1 - share) * log((1 - share) / (1 - self.rate))
        return exp(-total * distance) >= CHANCE

    def settles(self, lead: int, cases: int) -> bool:
        """Whether so many more answers one way settle a case, one of so many that were put."""
        return lead >= LEAD and self.proves(lead, cases)

    def proves(self, lead: int, candidates: int) -> bool:
        """Whether a lead of answers speaks for a statement, and not for any of so many by chance.

        The odds of each answer, multiplied, against those of drawing the statement blindly.
        """
        if lead <= 0 or not self.rate:
            return lead > 0
        return lead * log((1 - self.rate) / self.rate) > log(max(candidates, 1))


NO_NOISE = Noise()
"""Of a world that never contradicted itself."""
