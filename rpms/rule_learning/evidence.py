"""What was done and how the world answered: one use of an action, in three-valued statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from rpms.rule_learning.templates import CERTAIN, Literal, Template, doubting_world
from rpms.rules.predicates import PREDICATES, Predicate, World
from rpms.vocabulary.belief import Belief, kind_of
from rpms.vocabulary.naming import Truth


class Use(NamedTuple):
    """One use of a template: which atoms were true and which false before, and the answer."""

    true: int
    false: int
    kinds: tuple[str, ...]
    worked: bool

    def denies(self, literal: Literal) -> bool:
        """The literal was definitely false."""
        return bool((self.false if literal.positive else self.true) >> literal.atom & 1)

    def grants(self, literal: Literal) -> bool:
        """The literal was definitely true."""
        return bool((self.true if literal.positive else self.false) >> literal.atom & 1)


class Change(NamedTuple):
    """What an accepted use left behind: atoms before and after."""

    true: int
    false: int
    then_true: int
    then_false: int


@dataclass
class Evidence:
    """Everything seen of one template, equal uses counted together."""

    template: Template
    uses: Counter[Use] = field(default_factory=Counter)
    changes: Counter[Change] = field(default_factory=Counter)

    @property
    def accepted(self) -> list[Use]:
        """The uses that worked."""
        return [use for use in self.uses if use.worked]

    @property
    def refused(self) -> list[Use]:
        """Those that did not."""
        return [use for use in self.uses if not use.worked]

    def total(self, uses: Iterable[Use]) -> int:
        """How often these were seen."""
        return sum(self.uses[use] for use in uses)


class Snapshot:
    """A belief that many atoms are asked of: each is evaluated once."""

    def __init__(self, belief: Belief, world: World | None = None) -> None:
        """Ask a belief; by default nothing is known about kinds."""
        self.belief = belief
        self.world = world or doubting_world(belief)
        self._known: dict[tuple[object, ...], tuple[int, int]] = {}

    def masks(self, template: Template, names: Mapping[str, str]) -> tuple[int, int]:
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

    def _ask(
        self, atoms: Sequence[tuple[int, Predicate]], values: Sequence[str]
    ) -> tuple[int, int]:
        true = false = 0
        filled = {str(at): value for at, value in enumerate(values)}
        for bit, (_, name, arguments) in atoms:
            named = [filled.get(one, one) for one in arguments]
            truth: Truth = PREDICATES[name][1](self.belief, self.world, *named)
            if truth:
                true |= bit
            elif truth is False:
                false |= bit
        return true, false


class Experience:
    """What was seen of all templates, and which kinds of places share a spot."""

    def __init__(self, syntaxes: Iterable[str], constants: Sequence[str] = ()) -> None:
        """Nothing yet."""
        self.evidence = {s: Evidence(Template(s, constants)) for s in dict.fromkeys(syntaxes)}
        self.together: Counter[frozenset[str]] = Counter()
        self.apart: Counter[frozenset[str]] = Counter()
        self.doubts = False
        # How far it is: these stay when what was noted has to be given up.
        self.commands = 0
        self.worked: set[str] = set()

    @property
    def templates(self) -> list[Template]:
        """In the order the world gave them."""
        return [one.template for one in self.evidence.values()]

    def match(self, action: str) -> tuple[Template, Mapping[str, str]] | None:
        """The template that a command belongs to, and what it names."""
        for template in self.templates:
            if (names := template.match(action)) is not None:
                return template, names
        return None

    def look_at(self, belief: Belief) -> Snapshot:
        """A belief to be asked; where places may share a spot, being elsewhere is never certain."""
        return Snapshot(belief, None if self.doubts else CERTAIN)

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
        use = Use(true, false, template.kinds(names), worked)
        evidence = self.evidence[template.syntax]
        evidence.uses[use] += 1
        if worked:
            template.meet(after)
            then = self.look_at(after).masks(template, names)
            evidence.changes[Change(true, false, *then)] += 1

    def note_spots(self, belief: Belief) -> None:
        """At the end of a home: which kinds were found side by side, and which apart."""
        spots = {place: frozenset(spot) for place, spot in belief["spots"].items()}
        for one, other in combinations(spots, 2):
            pair = frozenset((kind_of(one), kind_of(other)))
            (self.together if other in spots[one] else self.apart)[pair] += 1
