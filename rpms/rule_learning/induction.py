"""From uses to a rule: start from every literal, delete what an accepted use contradicts.

What is left may be true; what is *kept* must also be needed: it explains refusals that nothing
else explains. The rest stays in doubt until an experiment settles it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from rpms.rule_learning.tables import Tables, make_tables
from rpms.rule_learning.templates import Literal, Template
from rpms.rule_learning.transitions import Evidence, Use

# One of several ways must account for as many accepted uses.
MIN_SUPPORT = 2
# A literal must have been seen to hold in more than this share of the accepted uses.
BORNE_OUT = 0.02
# The same for literals about a thing by its name: there are many, and one may fit by chance.
NAMED_SO = 0.6
# Where a conjunction leaves more of the accepted uses open than that, other forms are tried.
CLEAR = 0.8
# The changes that a simulated step can carry out, and whether it can also undo them.
EFFECTS = {
    "at": False, "open": False, "closed": False, "state": False,
    "holding": True, "in": True, "activated": True,
}  # fmt: skip


@dataclass
class Hypothesis:
    """What is believed about one action.

    Attributes:
        template: the action.
        kept: literals that are needed and were never contradicted.
        ways: where no single conjunction fits: one of these must hold of a parameter.
        about: that parameter.
        doubtful: literals that were never contradicted and never needed.
        tables: what kinds of things it takes.
        effects: changes common to all accepted uses.
        accepted: how many uses worked.
        refused: how many did not.
        tested: refusals that each kept literal alone accounts for.
        unexplained: refusals that neither literals nor tables account for.
    """

    template: Template
    kept: list[Literal] = field(default_factory=list)
    ways: list[list[Literal]] = field(default_factory=list)
    about: str = ""
    doubtful: list[Literal] = field(default_factory=list)
    tables: Tables = field(default_factory=Tables)
    effects: list[Literal] = field(default_factory=list)
    accepted: int = 0
    refused: int = 0
    tested: dict[Literal, int] = field(default_factory=dict)
    unexplained: int = 0

    def allows(self, use: Use) -> bool | None:
        """Whether the rule calls a use possible; None where the belief or a table is silent."""
        if any(use.denies(literal) for literal in self.kept):
            return False
        of_kinds = self.tables.works(use.kinds)
        ways = _any([_all(use, way) for way in self.ways]) if self.ways else True
        if of_kinds is False or ways is False:
            return False
        sure = all(use.grants(literal) for literal in self.kept) and of_kinds and ways
        return True if sure else None


def _all(use: Use, literals: Sequence[Literal]) -> bool | None:
    if any(use.denies(one) for one in literals):
        return False
    return True if all(use.grants(one) for one in literals) else None


def _any(truths: Sequence[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def induce(evidence: Evidence) -> Hypothesis | None:
    """The rule that the uses of an action support; None if it was never accepted."""
    accepted = evidence.accepted
    if not accepted:
        return None
    template = evidence.template
    alive = survivors(evidence)
    general = [one for one in alive if template.is_general(one)]
    found = Hypothesis(template, accepted=_sum(evidence, accepted))
    found.refused = _sum(evidence, evidence.refused)
    _keep(found, evidence, general)
    if found.unexplained or _decided(found, evidence) < CLEAR:
        _split(found, evidence)
    for more in (general, alive):
        # What was known to hold in every accepted use may explain a refusal by not being known to
        # hold in it; what parameters cannot say may be about a thing that every home has.
        if found.unexplained and not found.ways:
            sure = frozenset(one for one in more if all(use.grants(one) for use in accepted))
            _keep(found, evidence, more, sure)
    found.doubtful = [one for one in general if one not in found.kept]
    found.effects = changes(evidence)
    return found


def survivors(evidence: Evidence) -> list[Literal]:
    """Every literal that no accepted use contradicts and enough of them bear out.

    In order of preference: as it is before denied, about parameters before about named things.
    """
    accepted = evidence.accepted
    total = _sum(evidence, accepted)
    ever_true = ever_false = 0
    for use in accepted:
        ever_true, ever_false = ever_true | use.true, ever_false | use.false
    every = range(len(evidence.template.atoms))
    alive = [Literal(n, True) for n in every if not ever_false >> n & 1]
    alive += [Literal(n, False) for n in every if not ever_true >> n & 1]
    support = {one: _sum(evidence, (u for u in accepted if u.grants(one))) for one in alive}
    # What nearly all accepted uses leave open was not put to the test by them.
    general = evidence.template.is_general
    return [
        one for one in alive if support[one] > (BORNE_OUT if general(one) else NAMED_SO) * total
    ]


def _keep(
    found: Hypothesis,
    evidence: Evidence,
    alive: Sequence[Literal],
    sure: frozenset[Literal] = frozenset(),
) -> None:
    """Set cover of the refusals, then out with whatever nothing depends on."""
    before = (found.kept, found.tables, found.unexplained, found.tested)
    kept = cover(evidence, alive, sure)
    while True:
        found.kept = kept
        found.tables = _tables(evidence, kept)
        found.unexplained = found.tables.unexplained
        found.tested = {one: _alone(found, evidence, one, sure) for one in kept}
        idle = [one for one in kept if not found.tested[one]]
        if not idle:
            break
        # The last in order of preference goes first; another may then be the only reason left.
        kept = [one for one in kept if one != max(idle, key=alive.index)]
    if sure and found.unexplained >= before[2]:
        found.kept, found.tables, found.unexplained, found.tested = before


def _accounts(use: Use, literal: Literal, sure: Collection[Literal]) -> bool:
    """Whether a literal explains a refusal: it was false, or sure to be needed and not known."""
    return use.denies(literal) or (literal in sure and not use.grants(literal))


def cover(
    evidence: Evidence, alive: Sequence[Literal], sure: Collection[Literal] = ()
) -> list[Literal]:
    """Greedy: again and again the literal that accounts for most refusals not yet explained."""
    # Many refusals have the same reasons: each set of reasons is looked at once.
    left: Counter[frozenset[int]] = Counter()
    for use in evidence.refused:
        reasons = frozenset(n for n, one in enumerate(alive) if _accounts(use, one, sure))
        left[reasons] += evidence.uses[use]
    chosen: list[int] = []
    while True:
        gain: Counter[int] = Counter()
        for reasons, count in left.items():
            for number in reasons:
                gain[number] += count
        if not gain:
            return [alive[number] for number in sorted(chosen)]
        best = max(gain, key=lambda number: (gain[number], -number))
        chosen.append(best)
        left = Counter({r: count for r, count in left.items() if best not in r})


def _tables(evidence: Evidence, kept: Sequence[Literal]) -> Tables:
    blocked = [use for use in evidence.refused if all(use.grants(one) for one in kept)]
    return make_tables(
        ((use.kinds, evidence.uses[use]) for use in evidence.accepted),
        ((use.kinds, evidence.uses[use]) for use in blocked),
        len(evidence.template.parameters),
    )


def _alone(
    found: Hypothesis, evidence: Evidence, literal: Literal, sure: Collection[Literal]
) -> int:
    """Refusals of things of the right kinds for which this literal is the only reason."""
    others = [one for one in found.kept if one != literal]
    return sum(
        evidence.uses[use]
        for use in evidence.refused
        if _accounts(use, literal, sure)
        and all(use.grants(one) for one in others)
        and found.tables.works(use.kinds)
    )


def add_condition(found: Hypothesis, evidence: Evidence, literal: Literal) -> None:
    """Take up one condition more; the tables are then about what it leaves unexplained."""
    found.kept = [*found.kept, literal]
    found.doubtful = [one for one in found.doubtful if one != literal]
    found.tables = _tables(evidence, found.kept)
    found.unexplained = found.tables.unexplained
    found.tested = {one: _alone(found, evidence, one, ()) for one in found.kept}


def add_ways(found: Hypothesis, evidence: Evidence, ways: Sequence[Literal]) -> bool:
    """Take up that one of several must hold of a parameter; False where the form has no room."""
    about = {found.template.atoms[one.atom].arguments for one in ways}
    if found.ways or len(about) != 1 or len(next(iter(about))) != 1:
        return False
    found.ways, found.about = [[one] for one in ways], next(iter(about))[0]
    held = [use for use in evidence.refused if found.allows(use)]
    found.unexplained = min(found.unexplained, _sum(evidence, held))
    return True


def _split(found: Hypothesis, evidence: Evidence) -> None:
    """No conjunction fits: look for a parameter that may be in one of several conditions.

    Sequential covering. A way must never have held in a refusal, and the ways together must leave
    no accepted use out.
    """
    for parameter in found.template.parameters:
        ways = _ways(evidence, parameter)
        if not ways:
            continue
        tried = Hypothesis(found.template, ways=ways, about=parameter)
        held = [use for use in evidence.refused if tried.allows(use)]
        clearer = _decided(tried, evidence) > _decided(found, evidence)
        if _sum(evidence, held) < found.unexplained + clearer:
            found.ways, found.about, found.kept, found.tables = ways, parameter, [], Tables()
            found.tested, found.unexplained = {}, _sum(evidence, held)
            return


def _decided(found: Hypothesis, evidence: Evidence) -> float:
    """The share of accepted uses that the literals call possible, rather than leave open."""
    sure = [
        use
        for use in evidence.accepted
        if all(use.grants(one) for one in found.kept)
        and (not found.ways or any(_all(use, way) for way in found.ways))
    ]
    return _sum(evidence, sure) / _sum(evidence, evidence.accepted)


def _ways(evidence: Evidence, parameter: str) -> list[list[Literal]]:
    atoms = evidence.template.atoms
    mine = [
        Literal(number, positive)
        for positive in (True, False)
        for number, atom in enumerate(atoms)
        if set(atom.arguments) == {parameter}
    ]
    clean = [one for one in mine if not any(use.grants(one) for use in evidence.refused)]
    left, ways = evidence.accepted, []
    while left:
        gain = {one: sum(evidence.uses[u] for u in left if u.grants(one)) for one in clean}
        best = max(clean, key=lambda one: (gain[one], -mine.index(one)), default=None)
        if best is None or gain[best] < MIN_SUPPORT:
            break
        ways.append([best])
        left = [use for use in left if not use.grants(best)]
    # Where one way is undecided the use speaks against none of them.
    open_ = [use for use in left if any(not use.denies(way[0]) for way in ways)]
    return ways if len(open_) == len(left) and len(ways) > 1 else []


def changes(evidence: Evidence) -> list[Literal]:
    """What every accepted use brought about.

    A literal counts that was definitely false before some use and true after each: what was
    unknown before and is known now was only found out. Where it is unknown after most uses nothing
    can be said. States are another matter: a belief has one only once a text told of it, so one
    that was never known before the use and was there after every use is taken for its doing.
    """
    uses = evidence.changes
    total = sum(uses.values())
    found = []
    for number in range(len(evidence.template.atoms)):
        for positive in (True, False):
            bit = 1 << number
            held = sum(
                n for c, n in uses.items() if (c.then_true if positive else c.then_false) & bit
            )
            lost = any((c.then_false if positive else c.then_true) & bit for c in uses)
            turned = any(
                (c.false if positive else c.true) & bit
                and (c.then_true if positive else c.then_false) & bit
                for c in uses
            )
            if positive and evidence.template.atoms[number].name == "state":
                new = not any(c.true & bit for c in uses)
                turned = turned or (new and held == total >= MIN_SUPPORT)
            if turned and not lost and held * 2 > total:
                found.append(Literal(number, positive))
    return found


def written_effects(found: Hypothesis) -> list[Literal]:
    """Of all changes those that a simulated step can carry out, about parameters only."""
    atoms = found.template.atoms
    return [
        one
        for one in found.effects
        if atoms[one.atom].name in EFFECTS
        and found.template.is_general(one)
        and (one.positive or EFFECTS[atoms[one.atom].name])
    ]


def _sum(evidence: Evidence, uses: Iterable[Use]) -> int:
    return sum(evidence.uses[use] for use in uses)
