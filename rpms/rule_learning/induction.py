"""Induces a rule from uses: start with every literal, delete those that accepted uses contradict.

The remaining literals may be true. A *condition* must also be needed: it explains rejections that
nothing else explains. The others stay doubtful until an experiment decides. Rejections that no
literal explains are attributed to kinds of things: a kind is ruled out only if every literal held
and the other things were of kinds that work. A kind without such a test stays unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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
from rpms.rules.predicates import StaticFacts

# The least number of accepted uses that each alternative of a disjunction must explain.
MIN_SUPPORT = 2
# A literal must have held in more than this share of the accepted uses.
GENERAL_SHARE = 0.02
# The same for literals with a constant: there are many, and one may fit by chance.
CONSTANT_SHARE = 0.6
# If a conjunction decides a smaller share of the accepted uses, a disjunction is tried.
CLEAR = 0.8
# The effects that a simulated step can apply, and whether it can also apply their negation.
EFFECTS = {
    "at": False, "open": False, "closed": False, "state": False,
    "holding": True, "in": True, "activated": True,
}  # fmt: skip
# Kinds of places that were apart this often, and never together, never share a spot.
OFTEN_APART = 5

Kinds = tuple[str, ...]


@dataclass
class Tables:
    """The kinds of things that an action accepts.

    Attributes:
        single: per relevant parameter (by its index): kind -> (accepted, rejected).
        pair: the same for pairs of kinds, if the parameters cannot be judged separately.
        unexplained: rejections that the tables do not explain either.
    """

    single: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)
    pair: dict[Kinds, tuple[int, int]] = field(default_factory=dict)
    unexplained: int = 0

    def works(self, kinds: Kinds) -> bool | None:
        """True or False for kinds that are accepted or rejected; None if they were never tried."""
        if self.pair:
            return _judge(self.pair.get(kinds))
        truths = [_judge(table.get(kinds[at])) for at, table in self.single.items()]
        return False if False in truths else None if None in truths else True


def _judge(counts: tuple[int, int] | None) -> bool | None:
    """Decide a kind by its counts; with both outcomes, the kind decides nothing."""
    if counts is None or (counts[0] and counts[1]):
        return None
    return bool(counts[0])


def make_tables(good: Counter[Kinds], bad: Counter[Kinds], parameters: int) -> Tables:
    """Tables of kinds that explain the ``bad`` uses, rejected although all conditions held."""
    if not bad:
        return Tables()
    taken = [{kinds[at] for kinds in good} for at in range(parameters)]
    apart = {kinds for kinds in bad if all(k in taken[at] for at, k in enumerate(kinds))}
    if not apart:
        return _singles(good, bad, taken)
    # Each kind works with another partner, but not in this combination, so the pair decides,
    # unless most of these pairs have worked at other times.
    both = apart & good.keys()
    if parameters == 2 and len(both) * 2 < len(apart):
        pair = {k: (good[k], bad[k]) for k in sorted(good.keys() | bad.keys())}
        return Tables(pair=pair, unexplained=sum(bad[k] for k in both))
    rest = Counter({kinds: count for kinds, count in bad.items() if kinds not in apart})
    tables = _singles(good, rest, taken)
    tables.unexplained = sum(bad[kinds] for kinds in apart)
    return tables


def _singles(good: Counter[Kinds], bad: Counter[Kinds], taken: list[set[str]]) -> Tables:
    """A parameter gets a table if one of its kinds alone can explain a rejection."""
    tables = Tables()
    for at, working in enumerate(taken):
        guilty: Counter[str] = Counter()
        for kinds, count in bad.items():
            rest = (kind in taken[i] for i, kind in enumerate(kinds) if i != at)
            if kinds[at] not in working and all(rest):
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
    """The induced rule of one action.

    Attributes:
        template: the action.
        accepted: the number of uses that worked.
        rejected: the number of uses that did not.
        conditions: literals that are needed and were never contradicted.
        tested: rejections that each condition alone explains.
        alternatives: if no conjunction fits, a disjunction over one parameter.
        parameter: that parameter.
        doubtful: literals that were never contradicted and never needed.
        tables: the kinds of things it accepts.
        effects: changes common to all accepted uses.
    """

    template: CommandTemplate
    accepted: int = 0
    rejected: int = 0
    conditions: list[SignedAtom] = field(default_factory=list)
    tested: dict[SignedAtom, int] = field(default_factory=dict)
    alternatives: list[SignedAtom] = field(default_factory=list)
    parameter: str = ""
    doubtful: list[SignedAtom] = field(default_factory=list)
    tables: Tables = field(default_factory=Tables)
    effects: list[SignedAtom] = field(default_factory=list)

    @property
    def unexplained(self) -> int:
        """Rejections that neither literals nor tables explain."""
        return self.tables.unexplained

    def allows(self, use: ObservedUse) -> bool | None:
        """True or False if the rule decides a use; None if the belief or a table is unknown."""
        truths = [self.tables.works(use.kinds), self.disjunction(use)]
        if False in truths or any(map(use.denies, self.conditions)):
            return False
        return True if all(truths) and all(map(use.grants, self.conditions)) else None

    def disjunction(self, use: ObservedUse) -> bool | None:
        """The truth value of the disjunction; True if there is none."""
        if not self.alternatives or any(map(use.grants, self.alternatives)):
            return True
        return False if all(map(use.denies, self.alternatives)) else None


def induce(evidence: Evidence) -> Hypothesis | None:
    """The rule that the uses of an action support; None if it was never accepted."""
    accepted, template = evidence.accepted, evidence.template
    if not accepted:
        return None
    alive = survivors(evidence)
    general = [literal for literal in alive if template.is_general(literal)]
    totals = evidence.total(accepted), evidence.total(evidence.rejected)
    rule = _fit(Hypothesis(template, *totals), evidence, general)
    if rule.unexplained or _decided(rule, evidence) < CLEAR:
        rule = _split(rule, evidence)
    for literals in (general, alive):
        # A literal that held in every accepted use may explain a rejection in which it is unknown.
        # The second round adds literals with constants, the names that every scene has.
        if rule.unexplained and not rule.alternatives:
            sure = {literal for literal in literals if all(use.grants(literal) for use in accepted)}
            fitted = _fit(rule, evidence, literals, sure)
            if not sure or fitted.unexplained < rule.unexplained:
                rule = fitted
    doubtful = [literal for literal in general if literal not in rule.conditions]
    return replace(rule, doubtful=doubtful, effects=changes(evidence))


def survivors(evidence: Evidence) -> list[SignedAtom]:
    """Every literal that no accepted use contradicts and enough of them support.

    Positive literals come before negated ones, parameters before constants.
    """
    accepted = evidence.accepted
    total = evidence.total(accepted)
    contradiction = ObservedUse(0, 0, (), True)
    for use in accepted:
        true, false = contradiction.true | use.true, contradiction.false | use.false
        contradiction = contradiction._replace(true=true, false=false)
    every = range(len(evidence.template.atoms))
    literals = [SignedAtom(number, positive) for positive in (True, False) for number in every]
    alive = [literal for literal in literals if not contradiction.denies(literal)]
    support = {
        literal: evidence.total(u for u in accepted if u.grants(literal)) for literal in alive
    }
    # A literal that nearly all accepted uses leave unknown was not tested by them.
    general = evidence.template.is_general
    return [
        literal
        for literal in alive
        if support[literal] > (GENERAL_SHARE if general(literal) else CONSTANT_SHARE) * total
    ]


def _fit(
    rule: Hypothesis,
    evidence: Evidence,
    alive: Sequence[SignedAtom],
    sure: Collection[SignedAtom] = (),
) -> Hypothesis:
    """Cover the rejections with literals, then remove the literals that are not needed."""
    conditions = cover(evidence, alive, sure)
    while True:
        rule = replace(rule, conditions=conditions, tables=_tables(evidence, conditions))
        tested = {literal: _alone(rule, evidence, literal, sure) for literal in conditions}
        idle = [literal for literal in conditions if not tested[literal]]
        if not idle:
            return replace(rule, tested=tested)
        # Remove the least preferred literal first; another may then be the only reason.
        conditions = [literal for literal in conditions if literal != max(idle, key=alive.index)]


def _explains(use: ObservedUse, literal: SignedAtom, sure: Collection[SignedAtom]) -> bool:
    """True if a literal explains a rejection: it was false, or it is sure and was unknown."""
    return use.denies(literal) or (literal in sure and not use.grants(literal))


def cover(
    evidence: Evidence, alive: Sequence[SignedAtom], sure: Collection[SignedAtom] = ()
) -> list[SignedAtom]:
    """Greedy set cover: repeatedly take the literal that explains most open rejections."""
    # Many rejections have the same reasons, so each set of reasons is counted once.
    unexplained: Counter[frozenset[int]] = Counter()
    for use in evidence.rejected:
        reasons = frozenset(n for n, literal in enumerate(alive) if _explains(use, literal, sure))
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


def _tables(evidence: Evidence, conditions: Sequence[SignedAtom]) -> Tables:
    good: Counter[Kinds] = Counter()
    bad: Counter[Kinds] = Counter()
    for use, count in evidence.uses.items():
        if use.worked:
            good[use.kinds] += count
        elif all(map(use.grants, conditions)):
            bad[use.kinds] += count
    return make_tables(good, bad, len(evidence.template.parameters))


def _alone(
    rule: Hypothesis, evidence: Evidence, literal: SignedAtom, sure: Collection[SignedAtom]
) -> int:
    """The number of rejections that only this literal explains, with kinds that work."""
    remaining = [condition for condition in rule.conditions if condition != literal]
    return evidence.total(
        use
        for use in evidence.rejected
        if _explains(use, literal, sure)
        and all(map(use.grants, remaining))
        and rule.tables.works(use.kinds)
    )


def _split(rule: Hypothesis, evidence: Evidence) -> Hypothesis:
    """Try a disjunction over one parameter, when no conjunction fits (sequential covering).

    An alternative must never have held in a rejection, and together they must cover every accepted
    use.
    """
    for parameter in rule.template.parameters:
        literals = _alternatives(evidence, parameter)
        if not literals:
            continue
        split = Hypothesis(rule.template, rule.accepted, rule.rejected,
                           alternatives=literals, parameter=parameter)  # fmt: skip
        unexplained = evidence.total(use for use in evidence.rejected if split.allows(use))
        clearer = _decided(split, evidence) > _decided(rule, evidence)
        if unexplained < rule.unexplained + clearer:
            return replace(split, tables=Tables(unexplained=unexplained))
    return rule


def _decided(rule: Hypothesis, evidence: Evidence) -> float:
    """The share of accepted uses that the literals call possible instead of unknown."""
    accepted = evidence.accepted
    sure = (
        use for use in accepted if all(map(use.grants, rule.conditions)) and rule.disjunction(use)
    )
    return evidence.total(sure) / max(evidence.total(accepted), 1)


def _alternatives(evidence: Evidence, parameter: str) -> list[SignedAtom]:
    atoms = evidence.template.atoms
    candidates = [
        SignedAtom(number, positive)
        for positive in (True, False)
        for number, atom in enumerate(atoms)
        if set(atom.arguments) == {parameter}
    ]
    clean = [
        literal
        for literal in candidates
        if not any(use.grants(literal) for use in evidence.rejected)
    ]
    open_uses, chosen = evidence.accepted, list[SignedAtom]()
    while open_uses:
        gain = {
            literal: evidence.total(use for use in open_uses if use.grants(literal))
            for literal in clean
        }
        best = max(
            clean, key=lambda literal: (gain[literal], -candidates.index(literal)), default=None
        )
        if best is None or gain[best] < MIN_SUPPORT:
            break
        chosen.append(best)
        open_uses = [use for use in open_uses if not use.grants(best)]
    # A use in which one alternative is unknown contradicts none of them.
    outside = any(all(map(use.denies, chosen)) for use in evidence.accepted)
    return chosen if len(chosen) > 1 and not outside else []


def changes(evidence: Evidence) -> list[SignedAtom]:
    """The literals that every accepted use made true.

    The literal must have been definitely false before some use and true after each: from unknown to
    true may be just an observation. If it is unknown after most uses, it is left out. States are
    different: a belief has one only after a text mentioned it, so a state that was never there
    before a use and always after it counts as an effect.
    """
    seen = evidence.changes
    total = seen.total()
    by_sign = {True: seen, False: {use.negated: count for use, count in seen.items()}}
    effects = []
    for number, atom in enumerate(evidence.template.atoms):
        bit = 1 << number
        for positive, uses in by_sign.items():
            true = sum(count for use, count in uses.items() if use.true_after & bit)
            false = sum(count for use, count in uses.items() if use.false_after & bit)
            turned = any(use.false & use.true_after & bit for use in uses)
            if positive and atom.name == "state":
                new = not any(use.true & bit for use in uses)
                turned = turned or (new and true == total >= MIN_SUPPORT)
            if turned and not false and true * 2 > total:
                effects.append(SignedAtom(number, positive))
    return effects


def writable(template: CommandTemplate, effects: Sequence[SignedAtom]) -> list[SignedAtom]:
    """The effects that a simulated step can apply and that mention only parameters."""
    names = {literal: template.atoms[literal.atom].name for literal in effects}
    return [
        literal
        for literal, name in names.items()
        if template.is_general(literal) and name in EFFECTS and (literal.positive or EFFECTS[name])
    ]


class Hypotheses:
    """The rules that the evidence so far supports."""

    def __init__(self, experience: ObservedUses) -> None:
        """Induce a rule for every template that ever worked."""
        self.experience = experience
        induced = {syntax: induce(evidence) for syntax, evidence in experience.evidence.items()}
        self.rules: dict[str, Hypothesis] = {s: rule for s, rule in induced.items() if rule}

    @cached_property
    def facts(self) -> StaticFacts:
        """The kinds of places that may share a spot, needed to conclude *not* at a place."""
        return StaticFacts({}, {}, may_share(self.experience))

    def judge(
        self, template: CommandTemplate, names: Mapping[str, str], snapshot: Snapshot
    ) -> bool | None:
        """True or False if a rule decides the command; None if it is open or there is no rule."""
        rule = self.rules.get(template.syntax)
        if rule is None:
            return None
        return rule.allows(
            ObservedUse(*snapshot.masks(template, names), template.kinds(names), False)
        )


def may_share(experience: ObservedUses) -> list[frozenset[str]]:
    """Groups of kinds of places of which any two may share a spot.

    Kinds that seldom occurred in one scene are in a group too: only kinds that were apart often
    enough are kept apart.
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
