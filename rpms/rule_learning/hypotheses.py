"""What is believed about all actions at once, asked of a belief that is still open."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from rpms.rule_learning.induction import Hypothesis, induce
from rpms.rule_learning.templates import Template
from rpms.rule_learning.transitions import Experience, Snapshot, Use
from rpms.rules.predicates import World
from rpms.rules.schema import Wording


class Hypotheses:
    """The rules that the experience so far supports."""

    def __init__(self, experience: Experience) -> None:
        """Induce a rule for every template that ever worked."""
        self.experience = experience
        found = {one.template.syntax: induce(one) for one in experience.evidence.values()}
        self.rules: dict[str, Hypothesis] = {s: rule for s, rule in found.items() if rule}

    @cached_property
    def world(self) -> World:
        """Which kinds of places may share a spot, for telling that one is *not* at another."""
        return World({}, {}, may_share(self.experience), {}, {}, Wording())

    def judge(self, template: Template, names: Mapping[str, str], now: Snapshot) -> bool | None:
        """Whether a command is called possible; None where that is open, or nothing is known."""
        rule = self.rules.get(template.syntax)
        if rule is None:
            return None
        return rule.allows(Use(*now.masks(template, names), template.kinds(names), False))


# Kinds of places that were this often apart, and never together, count as standing apart.
OFTEN = 5


def may_share(experience: Experience) -> list[frozenset[str]]:
    """Groups of kinds of places any two of which may stand at one spot.

    Two kinds that were seldom met in one home are left undecided, too: only what was found apart
    often enough is kept apart.
    """
    pairs = {
        pair
        for pair in {*experience.together, *experience.apart}
        if experience.together[pair] or experience.apart[pair] < OFTEN
    }
    linked = {pair for pair in pairs if len(pair) == 2}
    groups: list[frozenset[str]] = [pair for pair in sorted(pairs, key=sorted) if len(pair) == 1]
    kinds = sorted({kind for pair in linked for kind in pair})
    left = set(linked)
    while left:
        group = set(min(left, key=sorted))
        for kind in kinds:
            if kind not in group and all(frozenset((kind, one)) in linked for one in group):
                group.add(kind)
        groups.append(frozenset(group))
        left = {pair for pair in left if not pair <= group}
    return [one for one in groups if len(one) > 1 or not any(one < other for other in groups)]
