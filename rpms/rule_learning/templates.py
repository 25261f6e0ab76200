"""What can be said to a world: its command templates, and the statements that may be about them.

The templates come from the world itself. For each of them every belief predicate over its
parameters is a candidate; nothing is left out because somebody knows that it does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

from rpms.rules.predicates import PREDICATES, Predicate, Wording, World
from rpms.rules.schema import ActionRule
from rpms.vocabulary.belief import Belief, kind_of

# Their second argument is a word, not a thing; kinds are learned as tables, states as they show.
_ABOUT_WORDS = {"kind", "state", "can_contain"}
# Never true of a belief, or about nothing that an action names.
_LEFT_OUT = {"changed", "looked_around", "here_closed"}
_WORDS = re.compile(r"[A-Za-z][\w -]*")


class Literal(NamedTuple):
    """An atom of a template by its number, as it is or denied."""

    atom: int
    positive: bool


class Template:
    """One kind of command, with the atoms that may matter to it.

    Atoms are numbered in the order they were met, so that what is known of a use fits in two
    integers: which atoms were true, and which were false. Those of neither are unknown.
    """

    def __init__(self, syntax: str, constants: Sequence[str] = ()) -> None:
        """Every atom over the parameters; ``constants`` are names that every home has."""
        self.syntax = syntax
        head = re.split(r"\s*\{", syntax)[0]
        self.name = re.sub(r"\W+", "_", head).strip("_") or "act"
        self._rule = ActionRule(
            id="L-ACT", name=self.name, syntax=syntax, preconditions=[], effects=[]
        )
        self.parameters: tuple[str, ...] = tuple(self._rule.parameters)
        self.constants = tuple(constants)
        self.atoms: list[Predicate] = []
        self._number: dict[Predicate, int] = {}
        # By the parameters (their places) that atoms are about, arguments as places.
        self.groups: dict[tuple[int, ...], list[tuple[int, Predicate]]] = {}
        # Templates of one shape have the same atoms under the same numbers.
        self.shape = 0
        for name, (arity, _) in PREDICATES.items():
            if name not in _ABOUT_WORDS | _LEFT_OUT:
                for chosen in permutations(self.parameters, arity):
                    self._add(Predicate(True, name, chosen))
        for constant in self.constants:
            self._add(Predicate(True, "at", (constant,)))

    def _add(self, atom: Predicate) -> None:
        if atom not in self._number:
            self._number[atom] = len(self.atoms)
            self.atoms.append(atom)
            places = {name: str(at) for at, name in enumerate(self.parameters)}
            about = tuple(at for at, name in enumerate(self.parameters) if name in atom.arguments)
            placed = atom._replace(arguments=tuple(places.get(a, a) for a in atom.arguments))
            self.groups.setdefault(about, []).append((1 << self._number[atom], placed))
            self.shape = hash((self.shape, placed))

    def match(self, action: str) -> Mapping[str, str] | None:
        """The things a command of this template names; None for any other command."""
        found = self._rule.pattern.match(action)
        return found.groupdict() if found else None

    def command(self, names: Mapping[str, str]) -> str:
        """The command about these things."""
        return self.syntax.format(**names)

    def is_general(self, literal: Literal) -> bool:
        """Whether it speaks of parameters only, and not of a thing by its name."""
        named = self.atoms[literal.atom].arguments
        return not named or named[0] in self.parameters

    def meet(self, belief: Belief) -> None:
        """States are words of the world: each becomes an atom when it is first seen.

        What no predicate could hold as its argument is no state: a list, a sentence, a reading.
        """
        for state in filter(_WORDS.fullmatch, dict.fromkeys(belief["flags"].values())):
            for name in (*self.parameters, *self.constants):
                self._add(Predicate(True, "state", (name, state)))

    def predicate(self, literal: Literal) -> Predicate:
        """A literal in the words of the manual."""
        return self.atoms[literal.atom]._replace(positive=literal.positive)

    def about(self, literal: Literal, names: Mapping[str, str]) -> Predicate:
        """A literal about the very things of a command."""
        predicate = self.predicate(literal)
        return predicate._replace(arguments=tuple(names.get(a, a) for a in predicate.arguments))

    def kinds(self, names: Mapping[str, str]) -> tuple[str, ...]:
        """What kinds of things a command names, in the order of its parameters."""
        return tuple(kind_of(names[parameter]) for parameter in self.parameters)


CERTAIN = World({}, {})
"""For a world that never showed two places at one spot."""


def doubting_world(belief: Belief) -> World:
    """No property of any kind is known, and any two places may stand at one spot.

    What a belief cannot tell must stay unknown: a wrong "no" would delete a condition that the
    world really has.
    """
    kinds = frozenset(kind_of(place) for place in belief["places"])
    return World({}, {}, [kinds], {}, {}, Wording())
