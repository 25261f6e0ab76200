"""Evidence: the uses of each command, described by three-valued atoms, and their outcomes.

The command templates come from the environment. Every belief predicate over the parameters of a
template is a candidate atom; no prior knowledge removes one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, permutations
from typing import NamedTuple

from rpms.rules.predicates import CONDITIONS, Predicate, StaticFacts, reading
from rpms.rules.schema import ActionRule
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.naming import Truth

# Predicates whose second argument is a word, not a thing (kinds are learned as tables, states when
# they appear), and those that are never true of a belief or refer to no parameter of an action.
_NO_ATOMS = {"kind", "state", "seen", "at_most", "delivered", "can_contain", "changed",
             "looked_around", "here_closed"}  # fmt: skip
_WORDS = re.compile(r"[A-Za-z][\w -]*")

CERTAIN = StaticFacts({}, {})
"""For an environment that never showed two places at one spot."""

Masks = tuple[int, int]
"""Two bit masks over the atoms of a template: the true atoms and the false atoms."""


class SignedAtom(NamedTuple):
    """An atom of a template by its number, positive or negated."""

    atom: int
    positive: bool


class CommandTemplate:
    """One kind of command, with the atoms that may matter to it.

    Atoms are numbered in the order they were added, so two bit masks describe a use: the true atoms
    and the false atoms. Atoms in neither are unknown.
    """

    def __init__(self, syntax: str, constants: Sequence[str] = ()) -> None:
        """Add every atom over the parameters; ``constants`` are names that every scene has."""
        self.syntax = syntax
        head = re.split(r"\s*(?:\w+=)?\{", syntax)[0]
        self.name = re.sub(r"\W+", "_", head).strip("_") or "act"
        self._rule = ActionRule(
            id="L-ACT", name=self.name, syntax=syntax, preconditions=[], effects=[]
        )
        self.parameters: tuple[str, ...] = tuple(self._rule.parameters)
        self.constants = tuple(constants)
        self.atoms: list[Predicate] = []
        self._added: set[Predicate] = set()
        # Atoms by the positions of the parameters they mention, with positions as arguments.
        self.groups: dict[tuple[int, ...], list[tuple[int, Predicate]]] = {}
        # Templates of the same shape have the same atoms under the same numbers.
        self.shape = 0
        for condition in reading("things"):
            if condition.name not in _NO_ATOMS:
                for chosen in permutations(self.parameters, condition.arity):
                    self._add(Predicate(True, condition.name, chosen))
        for constant in self.constants:
            self._add(Predicate(True, "at", (constant,)))

    def _add(self, atom: Predicate) -> None:
        if atom not in self._added:
            bit = 1 << len(self.atoms)
            self.atoms.append(atom)
            self._added.add(atom)
            places = {name: index for index, name in enumerate(self.parameters)}
            indices = tuple(index for name, index in places.items() if name in atom.arguments)
            indexed = atom.bind({name: str(index) for name, index in places.items()})
            self.groups.setdefault(indices, []).append((bit, indexed))
            self.shape = hash((self.shape, indexed))

    def match(self, action: str) -> Mapping[str, str] | None:
        """The things that a command of this template names; None for other commands."""
        names = self._rule.pattern.match(action)
        return names.groupdict() if names else None

    def command(self, names: Mapping[str, str]) -> str:
        return self.syntax.format(**names)

    def is_general(self, literal: SignedAtom) -> bool:
        """True if the literal mentions only parameters, no thing by name."""
        arguments = self.atoms[literal.atom].arguments
        return not arguments or arguments[0] in self.parameters

    def add_states(self, belief: Belief) -> None:
        """Add an atom for each state word when it first appears in a belief.

        Text that cannot be an argument of a predicate is not a state: lists, sentences, readings.
        """
        records = (record.split(", ") for record in belief["flags"].values())
        states = [facts for facts in records if all(map(_WORDS.fullmatch, facts))]
        for state in dict.fromkeys(chain(*states)):
            for name in (*self.parameters, *self.constants):
                self._add(Predicate(True, "state", (name, state)))

    def predicate(self, literal: SignedAtom) -> Predicate:
        """The literal as a predicate of the manual."""
        return self.atoms[literal.atom]._replace(positive=literal.positive)

    def kinds(self, names: Mapping[str, str]) -> tuple[str, ...]:
        """The kinds of the named things, in the order of the parameters."""
        return tuple(kind_of(names[parameter]) for parameter in self.parameters)


class ObservedUse(NamedTuple):
    """One use of a template: the true and the false atoms before it, and its outcome."""

    true: int
    false: int
    kinds: tuple[str, ...]
    worked: bool

    def denies(self, literal: SignedAtom) -> bool:
        """True if the literal was definitely false."""
        return bool((self.false if literal.positive else self.true) >> literal.atom & 1)

    def grants(self, literal: SignedAtom) -> bool:
        """True if the literal was definitely true."""
        return bool((self.true if literal.positive else self.false) >> literal.atom & 1)


class Change(NamedTuple):
    """An accepted use: the true and the false atoms before and after it."""

    true: int
    false: int
    true_after: int
    false_after: int

    @property
    def negated(self) -> Change:
        """The same change from the view of the negated literals."""
        return Change(self.false, self.true, self.false_after, self.true_after)


@dataclass
class Evidence:
    """All uses of one template; equal uses are counted together."""

    template: CommandTemplate
    uses: Counter[ObservedUse] = field(default_factory=Counter)
    changes: Counter[Change] = field(default_factory=Counter)

    @property
    def accepted(self) -> list[ObservedUse]:
        return [use for use in self.uses if use.worked]

    @property
    def rejected(self) -> list[ObservedUse]:
        return [use for use in self.uses if not use.worked]

    def total(self, uses: Iterable[ObservedUse]) -> int:
        """The number of times these uses were observed."""
        return sum(self.uses[use] for use in uses)


class Snapshot:
    """A belief that evaluates each atom only once."""

    def __init__(self, belief: Belief, facts: StaticFacts) -> None:
        self.belief, self.facts = belief, facts
        self._cache: dict[tuple[object, ...], Masks] = {}

    def masks(self, template: CommandTemplate, names: Mapping[str, str]) -> Masks:
        """The true and the false atoms of a template for these things."""
        values = tuple(names[parameter] for parameter in template.parameters)
        true = false = 0
        for indices, atoms in template.groups.items():
            key = (template.shape, indices, *(values[index] for index in indices))
            masks = self._cache.get(key)
            if masks is None:
                masks = self._cache[key] = self._evaluate(atoms, values)
            true |= masks[0]
            false |= masks[1]
        return true, false

    def _evaluate(self, atoms: Sequence[tuple[int, Predicate]], values: Sequence[str]) -> Masks:
        true = false = 0
        filled = {str(index): value for index, value in enumerate(values)}
        for bit, (_, name, arguments) in atoms:
            bound = [filled.get(argument, argument) for argument in arguments]
            truth: Truth = CONDITIONS[name].evaluate(self.belief, self.facts, *bound)
            if truth:
                true |= bit
            elif truth is False:
                false |= bit
        return true, false


class ObservedUses:
    """The evidence for all templates, and the kinds of places that share a spot."""

    def __init__(
        self, syntaxes: Iterable[str], constants: Sequence[str] = (), states: bool = True
    ) -> None:
        """Start without evidence; with ``states=False``, states are no candidate conditions."""
        self.states = states
        self.evidence = {
            s: Evidence(CommandTemplate(s, constants)) for s in dict.fromkeys(syntaxes)
        }
        self.together: Counter[frozenset[str]] = Counter()
        self.apart: Counter[frozenset[str]] = Counter()
        self.doubts = False
        # For progress reports: these stay when the evidence is discarded.
        self.commands = 0
        self.worked: set[str] = set()

    @property
    def templates(self) -> list[CommandTemplate]:
        return [evidence.template for evidence in self.evidence.values()]

    def match(self, action: str) -> tuple[CommandTemplate, Mapping[str, str]] | None:
        """The template of a command, and the things that the command names."""
        for template in self.templates:
            if (names := template.match(action)) is not None:
                return template, names
        return None

    def look_at(self, belief: Belief) -> Snapshot:
        """A snapshot of a belief, without static facts about kinds.

        If places may share a spot, "not at a place" is never certain: a wrong "false" would
        delete a true condition.
        """
        kinds = frozenset(kind_of(place) for place in belief["places"])
        if not self.states:
            belief = Belief(**{**belief, "flags": {}})
        return Snapshot(belief, StaticFacts({}, {}, [kinds]) if self.doubts else CERTAIN)

    def note(self, action: str, before: Snapshot, after: Belief, worked: bool) -> None:
        """Add one use; a command without a template is ignored."""
        self.commands += 1
        matched = self.match(action)
        if matched and worked:
            self.worked.add(matched[0].syntax)
        if after["reachable"] and not self.doubts:
            # The evidence so far assumed that different places are at different spots.
            self.doubts = True
            for evidence in self.evidence.values():
                evidence.uses.clear()
                evidence.changes.clear()
            return
        if matched is None:
            return
        template, names = matched
        template.add_states(before.belief)
        true, false = before.masks(template, names)
        evidence = self.evidence[template.syntax]
        kinds = template.kinds(names)
        evidence.uses[ObservedUse(true, false, kinds, worked)] += 1
        if worked:
            snapshot = self.look_at(after)
            template.add_states(snapshot.belief)
            masks = snapshot.masks(template, names)
            evidence.changes[Change(true, false, *masks)] += 1

    def note_spots(self, belief: Belief) -> None:
        """Count, at the end of a scene, the kinds that share a spot and those that do not."""
        spots = {place: frozenset(spot) for place, spot in belief["spots"].items()}
        for place, other in combinations(spots, 2):
            pair = frozenset((kind_of(place), kind_of(other)))
            (self.together if other in spots[place] else self.apart)[pair] += 1
