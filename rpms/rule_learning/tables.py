"""Static properties as tables of kinds: what was accepted, what was refused and why.

A kind is ruled out only by a refusal that nothing else explains: every condition held and the
other things were of kinds that work. A kind that was never put to such a test stays unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

Kinds = tuple[str, ...]


@dataclass
class Tables:
    """What kinds of things an action takes.

    Attributes:
        single: for each parameter (by its place) that cares: kind -> (accepted, refused).
        pair: the same for pairs of kinds, where the parameters cannot be judged apart.
        unexplained: refusals that no table accounts for either.
    """

    single: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)
    pair: dict[Kinds, tuple[int, int]] = field(default_factory=dict)
    unexplained: int = 0

    def works(self, kinds: Kinds) -> bool | None:
        """Whether things of these kinds are taken; None if that was never tried."""
        if self.pair:
            return _judge(self.pair.get(kinds))
        found = [_judge(table.get(kinds[at])) for at, table in self.single.items()]
        return False if False in found else None if None in found else True


def _judge(counts: tuple[int, int] | None) -> bool | None:
    """Once accepted, it works; where both were seen it is no matter of the kind."""
    if counts is None or (counts[0] and counts[1]):
        return None
    return bool(counts[0])


def make_tables(
    accepted: Iterable[tuple[Kinds, int]], blocked: Iterable[tuple[Kinds, int]], parameters: int
) -> Tables:
    """Tables that account for refusals which no condition explains.

    Args:
        accepted: the kinds of uses that worked, with counts.
        blocked: the kinds of uses that were refused although every condition held.
        parameters: how many things the command names.
    """
    good, bad = _count(accepted), _count(blocked)
    if not bad:
        return Tables()
    taken = [{kinds[at] for kinds in good} for at in range(parameters)]
    apart = {kinds for kinds in bad if all(k in taken[at] for at, k in enumerate(kinds))}
    if not apart:
        return _singles(good, bad, taken)
    # Every kind works somewhere and yet this combination does not: it is about the pair, unless
    # most of these pairs have worked at other times.
    both = apart & good.keys()
    if parameters == 2 and len(both) * 2 < len(apart):
        pair = {k: (good[k], bad[k]) for k in sorted(good.keys() | bad.keys())}
        return Tables(pair=pair, unexplained=sum(bad[k] for k in both))
    rest = Counter({kinds: count for kinds, count in bad.items() if kinds not in apart})
    tables = _singles(good, rest, taken)
    tables.unexplained = sum(bad[kinds] for kinds in apart)
    return tables


def _count(counted: Iterable[tuple[Kinds, int]]) -> Counter[Kinds]:
    found: Counter[Kinds] = Counter()
    for kinds, number in counted:
        found[kinds] += number
    return found


def _singles(good: Counter[Kinds], bad: Counter[Kinds], taken: list[set[str]]) -> Tables:
    """A parameter gets a table if a kind of it alone can be held responsible for a refusal."""
    tables = Tables()
    for at, mine in enumerate(taken):
        guilty: Counter[str] = Counter()
        for kinds, count in bad.items():
            others = (kind in taken[i] for i, kind in enumerate(kinds) if i != at)
            if kinds[at] not in mine and all(others):
                guilty[kinds[at]] += count
        if guilty:
            table = {kind: (sum(n for k, n in good.items() if k[at] == kind), 0) for kind in mine}
            table |= {kind: (0, count) for kind, count in guilty.items()}
            tables.single[at] = dict(sorted(table.items()))
    return tables
