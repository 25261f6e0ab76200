"""From uses to a rule: start from every literal, delete what accepted uses contradict.

Where answers may be false, as many contradictions are borne as chance brings about.

What is left may be true; what becomes a *condition* must also be needed: it explains refusals that
nothing else explains. The rest stays in doubt until an experiment settles it. Refusals that no
literal explains are about kinds of things: a kind is ruled out only where every literal held and
the other things were of kinds that work, and one never put to such a test stays unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from rpms.rule_learning.evidence import (
    CommandTemplate,
    Evidence,
    ObservedUse,
    ObservedUses,
    SignedAtom,
    Snapshot,
)
from rpms.rule_learning.noise import NO_NOISE, Noise, is_outvoted
from rpms.rules.predicates import StaticFacts

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
# Kinds of places that were this often apart, and never together, count as standing apart.
OFTEN_APART = 5

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
        truths = [_judge(table.get(kinds[at])) for at, table in self.single.items()]
        return False if False in truths else None if None in truths else True


def _judge(counts: tuple[int, int] | None) -> bool | None:
    """Once accepted, it works; where both were seen it is no matter of the kind."""
    if counts is None or (counts[0] and counts[1]):
        return None
    return bool(counts[0])


def make_tables(good: Counter[Kinds], bad: Counter[Kinds], parameters: int) -> Tables:
    """Tables of kinds that account for the ``bad`` uses, refused although all conditions held."""
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


def _singles(good: Counter[Kinds], bad: Counter[Kinds], taken: list[set[str]]) -> Tables:
    """A parameter gets a table if a kind of it alone can be held responsible for a refusal."""
    tables = Tables()
    for at, working in enumerate(taken):
        guilty: Counter[str] = Counter()
        for kinds, count in bad.items():
            others = (kind in taken[i] for i, kind in enumerate(kinds) if i != at)
            if kinds[at] not in working and all(others):
                guilty[kinds[at]] += count
        if guilty:
            table = {
                kind: (sum(n for k, n in good.items() if k[at] == kind), 0) for kind in working
            }
            table |= {kind: (0, count) for kind, count in guilty.items()}
            tables.single[at] = dict(sorted(table.items()))
    return tables


@dataclass(frozen=True)
class Hypothesis:
    """What is believed about one action.

    Attributes:
        template: the action.
        accepted: how many uses worked.
        refused: how many did not.
        conditions: literals that are needed and were never contradicted.
        tested: refusals that each of them alone accounts for.
        ways: where no single conjunction fits: one of these must hold of a parameter.
        about: that parameter.
        doubtful: literals that were never contradicted and never needed.
        tables: what kinds of things it takes.
        effects: changes common to all accepted uses.
    """

    template: CommandTemplate
    accepted: int = 0
    refused: int = 0
    conditions: list[SignedAtom] = field(default_factory=list)
    tested: dict[SignedAtom, int] = field(default_factory=dict)
    ways: list[SignedAtom] = field(default_factory=list)
    about: str = ""
    doubtful: list[SignedAtom] = field(default_factory=list)
    tables: Tables = field(default_factory=Tables)
    effects: list[SignedAtom] = field(default_factory=list)

    @property
    def unexplained(self) -> int:
        """Refusals that neither literals nor tables account for."""
        return self.tables.unexplained

    def allows(self, use: ObservedUse) -> bool | None:
        """Whether the rule calls a use possible; None where the belief or a table is silent."""
        truths = [self.tables.works(use.kinds), self.one_way(use)]
        if False in truths or any(map(use.denies, self.conditions)):
            return False
        return True if all(truths) and all(map(use.grants, self.conditions)) else None

    def one_way(self, use: ObservedUse) -> bool | None:
        """Whether one of the ways holds, where there are any."""
        if not self.ways or any(map(use.grants, self.ways)):
            return True
        return False if all(map(use.denies, self.ways)) else None


def induce(evidence: Evidence, noise: Noise = NO_NOISE) -> Hypothesis | None:
    """The rule that the uses of an action support; None if it was never accepted.

    Where answers may be false, so may be all that say it was; and a first rule, which bears with
    them, says which ones to leave out.
    """
    evidence = evidence.without(evidence.outvoted)
    if not noise.rate:
        return _induce(evidence, noise)
    if _is_chance(True, evidence.uses, evidence, noise):
        return None
    rule = _induce(evidence, noise)
    return rule and _induce(evidence.without(_disbelieved(rule, evidence, noise)), noise)


def _is_chance(worked: bool, uses: Iterable[ObservedUse], evidence: Evidence, noise: Noise) -> bool:
    """Whether all of these uses that were answered so may be false: so few, and none confirmed."""
    uses = list(uses)
    such = [use for use in uses if use.worked == worked]
    if not such or not noise.rate:
        return not such
    if any(evidence.confirms(use, noise) for use in such):
        return False
    return noise.bears(evidence.total(such), evidence.total(uses))


def _disbelieved(rule: Hypothesis, evidence: Evidence, noise: Noise) -> set[ObservedUse]:
    """What the rule says the opposite of, if there is no more of it than chance accounts for."""
    judged = {use: rule.allows(use) for use in evidence.uses}
    false = set[ObservedUse]()
    for expected in (True, False):
        uses = [use for use, allowed in judged.items() if allowed is expected]
        if _is_chance(not expected, uses, evidence, noise):
            false.update(use for use in uses if use.worked != expected)
    return false


def _induce(evidence: Evidence, noise: Noise) -> Hypothesis | None:
    accepted, template = evidence.accepted, evidence.template
    if not accepted:
        return None
    alive = survivors(evidence, noise)
    general = [literal for literal in alive if template.is_general(literal)]
    totals = evidence.total(accepted), evidence.total(evidence.refused)
    rule = _fit(Hypothesis(template, *totals), evidence, general, noise)
    if not _explained(rule, noise) or _decided(rule, evidence) < CLEAR:
        rule = _split(rule, evidence, noise)
    for literals in (general, alive):
        # What was known to hold in every accepted use may explain a refusal by not being known to
        # hold in it; what parameters cannot say may be about a thing that every home has.
        if not _explained(rule, noise) and not rule.ways:
            sure = {literal for literal in literals if _is_sure(literal, evidence, noise)}
            fitted = _fit(rule, evidence, literals, noise, sure)
            if not sure or fitted.unexplained < rule.unexplained:
                rule = fitted
    doubtful = [literal for literal in general if literal not in rule.conditions]
    return replace(rule, doubtful=doubtful, effects=changes(evidence, noise))


def _explained(rule: Hypothesis, noise: Noise) -> bool:
    """Whether the refusals that nothing accounts for may all be false."""
    return noise.bears(rule.unexplained, rule.accepted + rule.unexplained)


def _is_sure(literal: SignedAtom, evidence: Evidence, noise: Noise) -> bool:
    """Known to hold in every accepted use."""
    without = [use for use in evidence.uses if not use.grants(literal)]
    return _is_chance(True, without, evidence, noise)


def survivors(evidence: Evidence, noise: Noise = NO_NOISE) -> list[SignedAtom]:
    """Every literal that the accepted uses do not contradict and enough of them bear out.

    In order of preference: as it is before denied, about parameters before about named things.
    """
    accepted = evidence.accepted
    total = evidence.total(accepted)
    contradiction = ObservedUse(0, 0, (), True)
    for use in accepted:
        true, false = contradiction.true | use.true, contradiction.false | use.false
        contradiction = contradiction._replace(true=true, false=false)
    every = range(len(evidence.template.atoms))
    literals = [SignedAtom(number, positive) for positive in (True, False) for number in every]
    alive = [
        literal
        for literal in literals
        if not contradiction.denies(literal) or _is_borne(literal, evidence, noise)
    ]
    support = {
        literal: evidence.total(u for u in accepted if u.grants(literal)) for literal in alive
    }
    # What nearly all accepted uses leave open was not put to the test by them.
    general = evidence.template.is_general
    return [
        literal
        for literal in alive
        if support[literal] > (BORNE_OUT if general(literal) else NAMED_SO) * total
    ]


def _is_borne(literal: SignedAtom, evidence: Evidence, noise: Noise) -> bool:
    """A condition's contradictions are false answers to uses that should all have been refused."""
    if not noise.rate:
        return False
    without = [use for use in evidence.uses if use.denies(literal)]
    return _is_chance(True, without, evidence, noise)


def _fit(
    rule: Hypothesis,
    evidence: Evidence,
    alive: Sequence[SignedAtom],
    noise: Noise,
    sure: Collection[SignedAtom] = (),
) -> Hypothesis:
    """Set cover of the refusals, then out with whatever nothing depends on."""
    conditions = cover(evidence, alive, sure)
    while True:
        rule = replace(rule, conditions=conditions, tables=_tables(evidence, conditions, noise))
        tested = {literal: _alone(rule, evidence, literal, sure) for literal in conditions}
        idle = [literal for literal in conditions if not noise.proves(tested[literal], len(alive))]
        if not idle:
            return replace(rule, tested=tested)
        # The last in order of preference goes first; another may then be the only reason.
        conditions = [literal for literal in conditions if literal != max(idle, key=alive.index)]


def _accounts(use: ObservedUse, literal: SignedAtom, sure: Collection[SignedAtom]) -> bool:
    """Whether a literal explains a refusal: it was false, or sure to be needed and not known."""
    return use.denies(literal) or (literal in sure and not use.grants(literal))


def cover(
    evidence: Evidence, alive: Sequence[SignedAtom], sure: Collection[SignedAtom] = ()
) -> list[SignedAtom]:
    """Greedy: again and again the literal that accounts for most refusals not yet explained."""
    # Many refusals have the same reasons: each set of reasons is looked at once.
    unexplained: Counter[frozenset[int]] = Counter()
    for use in evidence.refused:
        reasons = frozenset(n for n, literal in enumerate(alive) if _accounts(use, literal, sure))
        unexplained[reasons] += evidence.uses[use]
    chosen: list[int] = []
    while True:
        gain: Counter[int] = Counter()
        for reasons, count in unexplained.items():
            for number in reasons:
                gain[number] += count
        if not gain:
            return [alive[number] for number in sorted(chosen)]
        best = max(gain, key=lambda number: (gain[number], -number))
        chosen.append(best)
        unexplained = Counter({r: n for r, n in unexplained.items() if best not in r})


def _tables(evidence: Evidence, conditions: Sequence[SignedAtom], noise: Noise) -> Tables:
    good: Counter[Kinds] = Counter()
    bad: Counter[Kinds] = Counter()
    for use, count in evidence.uses.items():
        if use.worked and not any(map(use.denies, conditions)):
            good[use.kinds] += count
        elif not use.worked and all(map(use.grants, conditions)):
            bad[use.kinds] += count
    for kinds in good.keys() & bad.keys() if noise.rate else ():
        if is_outvoted(good[kinds], bad[kinds]):
            del good[kinds]
        elif is_outvoted(bad[kinds], good[kinds]):
            del bad[kinds]
    return make_tables(good, bad, len(evidence.template.parameters))


def _alone(
    rule: Hypothesis, evidence: Evidence, literal: SignedAtom, sure: Collection[SignedAtom]
) -> int:
    """By how many uses of the right kinds were refused for this literal alone, less accepted."""
    others = [condition for condition in rule.conditions if condition != literal]
    tests = [
        use
        for use in evidence.uses
        if (use.denies(literal) if use.worked else _accounts(use, literal, sure))
        and all(map(use.grants, others))
        and rule.tables.works(use.kinds)
    ]
    return evidence.total(tests) - 2 * evidence.total(use for use in tests if use.worked)


def _split(rule: Hypothesis, evidence: Evidence, noise: Noise) -> Hypothesis:
    """No conjunction fits: look for a parameter that may be in one of several conditions.

    Sequential covering. A way must never have held in a refusal, and the ways together must leave
    no accepted use out.
    """
    for parameter in rule.template.parameters:
        ways = _ways(evidence, parameter, noise)
        if not ways:
            continue
        other = Hypothesis(rule.template, rule.accepted, rule.refused, ways=ways, about=parameter)
        unexplained = evidence.total(use for use in evidence.refused if other.allows(use))
        clearer = _decided(other, evidence) > _decided(rule, evidence)
        if unexplained < rule.unexplained + clearer:
            return replace(other, tables=Tables(unexplained=unexplained))
    return rule


def _decided(rule: Hypothesis, evidence: Evidence) -> float:
    """The share of accepted uses that the literals call possible, rather than leave open."""
    accepted = [use for use in evidence.accepted if not any(map(use.denies, rule.conditions))]
    sure = (use for use in accepted if all(map(use.grants, rule.conditions)) and rule.one_way(use))
    return evidence.total(sure) / max(evidence.total(accepted), 1)


def _ways(evidence: Evidence, parameter: str, noise: Noise) -> list[SignedAtom]:
    atoms = evidence.template.atoms
    about = [
        SignedAtom(number, positive)
        for positive in (True, False)
        for number, atom in enumerate(atoms)
        if set(atom.arguments) == {parameter}
    ]
    clean = []
    for literal in about:
        uses = [use for use in evidence.uses if use.grants(literal)]
        if _is_chance(False, uses, evidence, noise):
            clean.append(literal)
    open_uses, ways = evidence.accepted, list[SignedAtom]()
    while open_uses:
        gain = {
            literal: evidence.total(use for use in open_uses if use.grants(literal))
            for literal in clean
        }
        best = max(clean, key=lambda literal: (gain[literal], -about.index(literal)), default=None)
        if best is None or gain[best] < MIN_SUPPORT:
            break
        ways.append(best)
        open_uses = [use for use in open_uses if not use.grants(best)]
    # Where one way is undecided the use speaks against none of them.
    outside = [use for use in evidence.uses if all(map(use.denies, ways))]
    fit = _is_chance(True, outside, evidence, noise)
    return ways if fit and len(ways) > 1 else []


def changes(evidence: Evidence, noise: Noise = NO_NOISE) -> list[SignedAtom]:
    """What every accepted use brought about.

    A literal counts that was definitely false before some use and true after each: what was
    unknown before and is known now was only found out. Where it is unknown after most uses nothing
    can be said. States are another matter: a belief has one only once a text told of it, so one
    that was never known before the use and was there after every use is taken for its doing.
    """
    seen = evidence.changes
    total = seen.total()
    by_sign = {True: seen, False: {use.denied: count for use, count in seen.items()}}
    effects = []
    for number, atom in enumerate(evidence.template.atoms):
        bit = 1 << number
        for positive, uses in by_sign.items():
            held = sum(count for use, count in uses.items() if use.then_true & bit)
            lost = sum(count for use, count in uses.items() if use.then_false & bit)
            turned = any(use.false & use.then_true & bit for use in uses)
            if positive and atom.name == "state":
                new = not any(use.true & bit for use in uses)
                turned = turned or (new and held == total >= MIN_SUPPORT)
            if turned and noise.bears(lost, total) and held * 2 > total:
                effects.append(SignedAtom(number, positive))
    return effects


def writable(template: CommandTemplate, effects: Sequence[SignedAtom]) -> list[SignedAtom]:
    """Of all changes those that a simulated step can carry out, about parameters only."""
    names = {literal: template.atoms[literal.atom].name for literal in effects}
    return [
        literal
        for literal, name in names.items()
        if template.is_general(literal) and name in EFFECTS and (literal.positive or EFFECTS[name])
    ]


class Hypotheses:
    """The rules that the experience so far supports."""

    def __init__(self, experience: ObservedUses) -> None:
        """Induce a rule for every template that ever worked."""
        self.experience, self.noise = experience, experience.noise
        induced = {
            syntax: induce(evidence, self.noise) for syntax, evidence in experience.evidence.items()
        }
        self.rules: dict[str, Hypothesis] = {s: rule for s, rule in induced.items() if rule}

    @cached_property
    def facts(self) -> StaticFacts:
        """Which kinds of places may share a spot, for telling that one is *not* at another."""
        return StaticFacts({}, {}, may_share(self.experience))

    def judge(
        self, template: CommandTemplate, names: Mapping[str, str], now: Snapshot
    ) -> bool | None:
        """Whether a command is called possible; None where that is open, or nothing is known."""
        rule = self.rules.get(template.syntax)
        if rule is None:
            return None
        return rule.allows(ObservedUse(*now.masks(template, names), template.kinds(names), False))


def may_share(experience: ObservedUses) -> list[frozenset[str]]:
    """Groups of kinds of places any two of which may stand at one spot.

    Two kinds that were seldom met in one home are left undecided, too: only what was found apart
    often enough is kept apart.
    """
    pairs = {
        pair
        for pair in {*experience.together, *experience.apart}
        if experience.together[pair] or experience.apart[pair] < OFTEN_APART
    }
    linked = {pair for pair in pairs if len(pair) == 2}
    groups: list[frozenset[str]] = [pair for pair in sorted(pairs, key=sorted) if len(pair) == 1]
    kinds = sorted({kind for pair in linked for kind in pair})
    ungrouped = set(linked)
    while ungrouped:
        group = set(min(ungrouped, key=sorted))
        for kind in kinds:
            if kind not in group and all(frozenset((kind, other)) in linked for other in group):
                group.add(kind)
        groups.append(frozenset(group))
        ungrouped = {pair for pair in ungrouped if not pair <= group}
    return [group for group in groups if len(group) > 1 or not any(group < g for g in groups)]
