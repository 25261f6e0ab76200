"""Estimates how many answers are false, and tests statements against that rate.

The rate is measured, never set: it is the share of answers that were outvoted when the same
question was asked again. It is zero for an environment that never contradicts itself; then a single
contradiction refutes a statement.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

LEAD = 2
"""The smallest lead of one side: a single answer was never repeated."""
OUTVOTED = 3
"""The smallest ratio of the two sides: mixed answers depend on something that is not observed."""
CHANCE = 0.01
"""The significance level: less likely counts are not explained by noise."""


def is_outvoted(count: int, against: int) -> bool:
    """True if ``against`` opposite answers outvote these ``count`` answers to one question."""
    return against - count >= LEAD and against >= OUTVOTED * count


class Noise(NamedTuple):
    """The share of answers that are false."""

    rate: float = 0.0

    def explains(self, wrong: int, total: int) -> bool:
        """True if noise can explain ``wrong`` false answers (Chernoff bound of the binomial)."""
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
        """True if this lead settles one of ``cases`` repeated questions."""
        return lead >= LEAD and self.proves(lead, cases)

    def proves(self, lead: int, candidates: int) -> bool:
        """True if this lead supports a statement, corrected for the number of candidates.

        Compares the product of the answers' odds with the odds of drawing the statement at random.
        """
        if lead <= 0 or not self.rate:
            return lead > 0
        return lead * log((1 - self.rate) / self.rate) > log(max(candidates, 1))


NO_NOISE = Noise()
"""The noise of an environment that never contradicted itself."""
