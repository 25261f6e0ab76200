"""What can be said to a world, and how it answered: uses of commands in three-valued statements.

The templates come from the world itself. For each of them every belief predicate over its
parameters is a candidate; nothing is left out because somebody knows that it does not matter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, permutations
from typing import NamedTuple

from rpms.rule_learning.noise import Noise, is_outvoted
from rpms.rules.predicates import PREDICATES, Predicate, StaticFacts
from rpms.rules.schema import ActionRule
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.naming import Truth

# Their second argument is a word, not a thing (kinds are learned as tables, states as they show);
# and those never true of a belief, or about nothing that an action names.
_NO_ATOMS = {"kind", "state", "seen", "at_most", "delivered", "can_contain", "changed",
             "looked_around", "here_closed"}  # fmt: skip
_WORDS = re.compile(r"[A-Za-z][\w -]*")

CERTAIN = StaticFacts({}, {})
"""For a world that never showed two places at one spot."""

Masks = tuple[int, int]
"""Which atoms of a template are true, and which are false, by their numbers."""


class SignedAtom(NamedTuple):
    """An atom of a template by its number, as it is or denied."""

    atom: int
    positive: bool


class CommandTemplate:
    """One kind of command, with the atoms that may matter to it.

    Atoms are numbered in the order they were met, so that what is known of a use fits in two
    integers: which atoms were true, and which were false. Those of neither are unknown.
    """

    def __init__(self, syntax: str, constants: Sequence[str] = ()) -> None:
        """Every atom over the parameters; ``constants`` are names that every home has."""
        self.syntax = syntax
        head = re.split(r"\s*(?:\w+=)?\{", syntax)[0]
        self.name = re.sub(r"\W+", "_", head).strip("_") or "act"
        self._rule = ActionRule(
            id="L-ACT", name=self.name, syntax=syntax, preconditions=[], effects=[]
        )
        self.parameters: tuple[str, ...] = tuple(self._rule.parameters)
        self.constants = tuple(constants)
        self.atoms: list[Predicate] = []
        self._known: set[Predicate] = set()
        # By the parameters (their places) that atoms are about, arguments as places.
        self.groups: dict[tuple[int, ...], list[tuple[int, Predicate]]] = {}
        # Templates of one shape have the same atoms under the same numbers.
        self.shape = 0
        for name, (arity, _) in PREDICATES.items():
            if name not in _NO_ATOMS:
                for chosen in permutations(self.parameters, arity):
                    self._add(Predicate(True, name, chosen))
        for constant in self.constants:
            self._add(Predicate(True, "at", (constant,)))

    def _add(self, atom: Predicate) -> None:
        if atom not in self._known:
            bit = 1 << len(self.atoms)
            self.atoms.append(atom)
            self._known.add(atom)
            about = tuple(at for at, name in enumerate(self.parameters) if name in atom.arguments)
            placed = atom.bind({name: str(at) for at, name in enumerate(self.parameters)})
            self.groups.setdefault(about, []).append((bit, placed))
            self.shape = hash((self.shape, placed))

    def match(self, action: str) -> Mapping[str, str] | None:
        """The things a command of this template names; None for any other command."""
        names = self._rule.pattern.match(action)
        return names.groupdict() if names else None

    def command(self, names: Mapping[str, str]) -> str:
        """The command about these things."""
        return self.syntax.format(**names)

    def is_general(self, literal: SignedAtom) -> bool:
        """Whether it speaks of parameters only, and not of a thing by its name."""
        named = self.atoms[literal.atom].arguments
        return not named or named[0] in self.parameters

    def meet(self, belief: Belief) -> None:
        """States are words of the world: each becomes an atom when it is first seen.

        What no predicate could hold as its argument is no state: a list, a sentence, a reading.
        """
        records = (record.split(", ") for record in belief["flags"].values())
        states = [facts for facts in records if all(map(_WORDS.fullmatch, facts))]
        for state in dict.fromkeys(chain(*states)):
            for name in (*self.parameters, *self.constants):
                self._add(Predicate(True, "state", (name, state)))

    def predicate(self, literal: SignedAtom) -> Predicate:
        """A literal in the words of the manual."""
        return self.atoms[literal.atom]._replace(positive=literal.positive)

    def kinds(self, names: Mapping[str, str]) -> tuple[str, ...]:
        """What kinds of things a command names, in the order of its parameters."""
        return tuple(kind_of(names[parameter]) for parameter in self.parameters)


class ObservedUse(NamedTuple):
    """One use of a template: which atoms were true and which false before, and the answer."""

    true: int
    false: int
    kinds: tuple[str, ...]
    worked: bool

    def denies(self, literal: SignedAtom) -> bool:
        """The literal was definitely false."""
        return bool((self.false if literal.positive else self.true) >> literal.atom & 1)

    def grants(self, literal: SignedAtom) -> bool:
        """The literal was definitely true."""
        return bool((self.true if literal.positive else self.false) >> literal.atom & 1)


class Change(NamedTuple):
    """What an accepted use left behind: atoms before and after."""

    true: int
    false: int
    then_true: int
    then_false: int
    kinds: tuple[str, ...] = ()

    @property
    def use(self) -> ObservedUse:
        """What was done."""
        return ObservedUse(self.true, self.false, self.kinds, True)

    @property
    def denied(self) -> Change:
        """The same change, seen by the denied literals."""
        return Change(self.false, self.true, self.then_false, self.then_true, self.kinds)


@dataclass
class Evidence:
    """Everything seen of one template, equal uses counted together."""

    template: CommandTemplate
    uses: Counter[ObservedUse] = field(default_factory=Counter)
    changes: Counter[Change] = field(default_factory=Counter)

    @property
    def accepted(self) -> list[ObservedUse]:
        """The uses that worked."""
        return [use for use in self.uses if use.worked]

    @property
    def refused(self) -> list[ObservedUse]:
        """Those that did not."""
        return [use for use in self.uses if not use.worked]

    def total(self, uses: Iterable[ObservedUse]) -> int:
        """How often these were seen."""
        return sum(self.uses[use] for use in uses)

    @property
    def outvoted(self) -> set[ObservedUse]:
        """Those that were mostly answered the other way in the very same situation."""
        return {
            use
            for use, count in self.uses.items()
            if is_outvoted(count, self.uses[use._replace(worked=not use.worked)])
        }

    def confirms(self, use: ObservedUse, noise: Noise) -> bool:
        """Whether a use was answered so again and again, in the very same situation."""
        lead = self.uses[use] - self.uses[use._replace(worked=not use.worked)]
        return noise.settles(lead, self.uses.total())

    def without(self, false: set[ObservedUse]) -> Evidence:
        """The same without answers that are not believed, nor what they seemed to change."""
        if not false:
            return self
        return Evidence(
            self.template,
            Counter({use: count for use, count in self.uses.items() if use not in false}),
            Counter({c: count for c, count in self.changes.items() if c.use not in false}),
        )


class Snapshot:
    """A belief that many atoms are asked of: each is evaluated once."""

    def __init__(self, belief: Belief, facts: StaticFacts) -> None:
        """Ask a belief."""
        self.belief, self.facts = belief, facts
        self._known: dict[tuple[object, ...], Masks] = {}

    def masks(self, template: CommandTemplate, names: Mapping[str, str]) -> Masks:
        """Which atoms of a template are true, and which are false, of these things."""
        values = tuple(names[parameter] for parameter in template.parameters)
        true = false = 0
        for about, atoms in template.groups.items():
            key = (template.shape, about, *(values[at] for at in about))
            masks = self._known.get(key)
            if masks is None:
                masks = self._known[key] = self._ask(atoms, values)
            true |= masks[0]
            false |= masks[1]
        return true, false

    def _ask(self, atoms: Sequence[tuple[int, Predicate]], values: Sequence[str]) -> Masks:
        true = false = 0
        filled = {str(at): value for at, value in enumerate(values)}
        for bit, (_, name, arguments) in atoms:
            named = [filled.get(argument, argument) for argument in arguments]
            truth: Truth = PREDICATES[name][1](self.belief, self.facts, *named)
            if truth:
                true |= bit
            elif truth is False:
                false |= bit
        return true, false


class ObservedUses:
    """What was seen of all templates, and which kinds of places share a spot."""

    def __init__(
        self, syntaxes: Iterable[str], constants: Sequence[str] = (), states: bool = True
    ) -> None:
        """Nothing yet; without ``states``, those on record are no conditions to try."""
        self.states = states
        self.evidence = {
            s: Evidence(CommandTemplate(s, constants)) for s in dict.fromkeys(syntaxes)
        }
        self.together: Counter[frozenset[str]] = Counter()
        self.apart: Counter[frozenset[str]] = Counter()
        self.doubts = False
        # How far it is: these stay when what was noted has to be given up.
        self.commands = 0
        self.worked: set[str] = set()

    @property
    def templates(self) -> list[CommandTemplate]:
        """In the order the world gave them."""
        return [evidence.template for evidence in self.evidence.values()]

    @property
    def noise(self) -> Noise:
        """Of all answers, the share that was outvoted."""
        false = sum(evidence.total(evidence.outvoted) for evidence in self.evidence.values())
        total = sum(evidence.uses.total() for evidence in self.evidence.values())
        return Noise(false / total if total else 0.0)

    def match(self, action: str) -> tuple[CommandTemplate, Mapping[str, str]] | None:
        """The template that a command belongs to, and what it names."""
        for template in self.templates:
            if (names := template.match(action)) is not None:
                return template, names
        return None

    def look_at(self, belief: Belief) -> Snapshot:
        """A belief to be asked, by somebody who knows no property of any kind.

        Where places may share a spot, being elsewhere is never certain: a wrong "no" would delete a
        condition that the world really has.
        """
        kinds = frozenset(kind_of(place) for place in belief["places"])
        if not self.states:
            belief = Belief(**{**belief, "flags": {}})
        return Snapshot(belief, StaticFacts({}, {}, [kinds]) if self.doubts else CERTAIN)

    def note(self, action: str, before: Snapshot, after: Belief, worked: bool) -> None:
        """Add one use; a command that follows no template says nothing."""
        self.commands += 1
        matched = self.match(action)
        if matched and worked:
            self.worked.add(matched[0].syntax)
        if after["reachable"] and not self.doubts:
            # All that was noted so far took it for granted that one place is not another.
            self.doubts = True
            for evidence in self.evidence.values():
                evidence.uses.clear()
                evidence.changes.clear()
            return
        if matched is None:
            return
        template, names = matched
        template.meet(before.belief)
        true, false = before.masks(template, names)
        evidence = self.evidence[template.syntax]
        kinds = template.kinds(names)
        evidence.uses[ObservedUse(true, false, kinds, worked)] += 1
        if worked:
            then_seen = self.look_at(after)
            template.meet(then_seen.belief)
            then = then_seen.masks(template, names)
            evidence.changes[Change(true, false, *then, kinds)] += 1

    def note_spots(self, belief: Belief) -> None:
        """At the end of a home: which kinds were found side by side, and which apart."""
        spots = {place: frozenset(spot) for place, spot in belief["spots"].items()}
        for place, other in combinations(spots, 2):
            pair = frozenset((kind_of(place), kind_of(other)))
            (self.together if other in spots[place] else self.apart)[pair] += 1
